"""Admin TLS: the certificate of the admin port, loaded at the start and again when it changes.

A certificate that cannot be loaded stops the start; at a reload the one before stays.
"""

import ssl
from pathlib import Path
from typing import Final

from broker.net.sockets import CannotListen
from config.keys import Config

_KEY: Final = "rollcall.admin.ssl.certificate"

FileVersions = tuple[tuple[int, int, int], ...]
"""Which versions of the files there are."""


class AdminCertificate:
    """`context` serves new connections, with the current certificate.

    Its methods read files: not for the event loop.
    """

    def __init__(self, certificate: str, key: str, password: str) -> None:
        """Raises CannotListen."""
        self._certificate = Path(certificate)
        self._key = Path(key or certificate)
        self._password = password
        self._stamp = self._current_versions()
        self.context = self._load()

    def reload_changed(self) -> bool:
        """Load the files again if they have changed; whether they had.

        Raises CannotListen, once for each change, and keeps the certificate.
        """
        stamp = self._current_versions()
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        self._load()  # in a context of its own: the one that serves must stay whole
        self._load_into(self.context)
        return True

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
        context.set_alpn_protocols(["http/1.1"])
        self._load_into(context)
        return context

    def _load_into(self, context: ssl.SSLContext) -> None:
        try:
            # Always a password: without one OpenSSL would ask at the terminal.
            context.load_cert_chain(self._certificate, self._key, self._password.encode)
        except ssl.SSLError as failed:
            reason = (failed.reason or "no PEM").replace("_", " ").lower()
            words = f"{self._certificate} cannot be loaded with the key in {self._key}: {reason}"
            raise _refused(words) from None
        except OSError as failed:
            words = f"{self._certificate} or {self._key}: {failed.strerror}"
            raise _refused(words) from None

    def _current_versions(self) -> FileVersions:
        """A file that is not there has a stamp too: its coming back is a change."""
        found: list[tuple[int, int, int]] = []
        for path in (self._certificate, self._key):
            try:
                stat = path.stat()
                found.append((stat.st_ino, stat.st_mtime_ns, stat.st_size))
            except OSError:
                found.append((0, 0, 0))
        return tuple(found)


def _refused(words: str) -> CannotListen:
    refused = CannotListen(words)
    refused.key = _KEY
    return refused


def admin_certificate(config: Config) -> AdminCertificate | None:
    """None without TLS. Raises CannotListen."""
    if not config.rollcall_admin_listener or not config.rollcall_admin_ssl_certificate:
        return None
    return AdminCertificate(
        config.rollcall_admin_ssl_certificate,
        config.rollcall_admin_ssl_key,
        config.rollcall_admin_ssl_key_password,
    )
