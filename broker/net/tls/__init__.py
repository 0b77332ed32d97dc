"""TLS: certificates, handshakes and the channel between a socket and its connection."""
