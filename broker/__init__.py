"""The shell: sockets, clock, disk, logs and metrics. Everything that waits is here."""
