"""TLS context: what a listener offers in its handshakes, made from its keys.

The private key reaches OpenSSL through a file in memory (memfd): it is never written to a disk.
Kafka's counterpart: `DefaultSslEngineFactory`.
"""

import ssl
from typing import Final

from msgspec import Struct

from broker.net.tls.certificate import CertificateFacts, certificate_facts
from broker.net.tls.cipher_suites import BadSuites, choose_suites
from config.key_stores import BadStore, in_memory, read_key_store, read_trusted
from config.security_keys import SecurityKeys

_VERIFY: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


class ServerContext(Struct, frozen=True):
    """OpenSSL's context, and what its certificate says."""

    context: ssl.SSLContext
    certificate: CertificateFacts


def make_context(values: SecurityKeys) -> ServerContext:
    """Of one listener. Raises BadStore."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    _set_versions(context, values)
    store = read_key_store(values)
    with in_memory(store.chain_pem) as chain, in_memory(store.key_pem) as key:
        try:
            context.load_cert_chain(chain, key)
        except ssl.SSLError as bad:
            reason = bad.reason or str(bad)
            raise BadStore("ssl.keystore.location", f"OpenSSL refuses it: {reason}") from None
    context.verify_mode = _VERIFY[values.ssl_client_auth]
    trusted = read_trusted(values)
    if trusted is not None:
        # As in Java: a certificate in the trust store is trusted, though it be no root.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        try:
            context.load_verify_locations(cadata=trusted)
        except ssl.SSLError as bad:
            reason = bad.reason or str(bad)
            raise BadStore("ssl.truststore.location", f"OpenSSL refuses it: {reason}") from None
    return ServerContext(context, certificate_facts(store.certificate_pem))


def _set_versions(context: ssl.SSLContext, values: SecurityKeys) -> None:
    try:
        suites = choose_suites(values.ssl_cipher_suites)
        if suites.older:
            context.set_ciphers(suites.older)
    except (BadSuites, ssl.SSLError) as bad:
        reason = "OpenSSL has none of them" if isinstance(bad, ssl.SSLError) else str(bad)
        raise BadStore("ssl.cipher.suites", reason) from None
    enabled = set(values.ssl_enabled_protocols)
    has_older = "TLSv1.2" in enabled and suites.allows_tls_1_2
    has_newer = "TLSv1.3" in enabled and suites.allows_tls_1_3
    if not has_older and not has_newer:
        raise BadStore("ssl.cipher.suites", "none of them is for a version that is enabled")
    oldest = ssl.TLSVersion.TLSv1_2 if has_older else ssl.TLSVersion.TLSv1_3
    newest = ssl.TLSVersion.TLSv1_3 if has_newer else ssl.TLSVersion.TLSv1_2
    context.minimum_version, context.maximum_version = oldest, newest
