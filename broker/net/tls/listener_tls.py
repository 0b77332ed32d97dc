"""TLS of a listener: its current context, and how a changed certificate replaces it.

The files of the stores are looked at every few seconds in a thread. A change is read whole
before it is used; a store that cannot be used, or whose names differ where they may not
(`ssl.allow.dn.changes`, `ssl.allow.san.changes`), leaves the context as it is, and says so once.
Kafka's counterpart: `SslFactory.reconfigure`. Kafka reloads when a config is altered only.
"""

import ssl
from pathlib import Path

from broker.net.tls.certificate import distinguished_name
from broker.net.tls.channel import PlainConnection, TlsChannel
from broker.net.tls.contexts import ServerContext, make_context
from broker.net.tls.handshakes import HandshakeQueue
from config.key_stores import BadStore, store_files
from config.security_keys import SecurityKeys
from seams.principal import ANONYMOUS, USER_TYPE, Principal
from security.ssl_principal import BadRules, NoMatchingRule, SslPrincipalMapper

_Stamp = tuple[tuple[int, int, int] | None, ...]


class ListenerTls:
    """Of one listener. `reload` may be called in any thread; the values of a config win."""

    def __init__(self, name: str, values: SecurityKeys) -> None:
        """Raises BadStore."""
        self.name = name
        self._values = values
        self._stamp = _stamp(values)
        self._current = make_context(values)
        try:
            self.mapper = SslPrincipalMapper(values.ssl_principal_mapping_rules)
        except BadRules as bad:
            raise BadStore("ssl.principal.mapping.rules", str(bad)) from None

    def context(self) -> ssl.SSLContext:
        """Of the next handshake."""
        return self._current.context

    def channel(self, plain: PlainConnection, queue: HandshakeQueue) -> TlsChannel:
        """For a connection that was accepted."""
        return TlsChannel(plain, self.context, queue)

    def principal(self, certificate: bytes | None) -> Principal:
        """Of a client's certificate in DER. Raises NoMatchingRule."""
        if certificate is None:
            return ANONYMOUS
        try:
            name = distinguished_name(certificate)
        except Exception as bad:  # noqa: BLE001 - a library reads what a client sends
            raise NoMatchingRule(f"the certificate cannot be read: {bad}") from None
        return Principal(USER_TYPE, self.mapper.user(name))

    @property
    def certificate_ends_at_s(self) -> float:
        """When the server's certificate ends, in seconds since the epoch."""
        return self._current.certificate.ends_at_s

    def reload(self, values: SecurityKeys | None = None, *, is_forced: bool = False) -> bool:
        """Use the files as they are now; False if they are as before. Raises BadStore.

        `values` replace those of the start, as a dynamic config does.
        """
        asked = values or self._values
        stamp = _stamp(asked)
        if stamp == self._stamp and asked == self._values and not is_forced:
            return False
        self._stamp = stamp  # a bad file is reported once, not at each look
        fresh = self.check(asked)
        if values is None and asked is not self._values:
            return False  # a config has replaced these values while their files were read
        self._current, self._values = fresh, asked
        return True

    def check(self, values: SecurityKeys) -> ServerContext:
        """Read the stores of these values, to use them instead. Raises BadStore."""
        fresh = make_context(values)
        _check_names(self._current, fresh, values)
        return fresh


def _check_names(before: ServerContext, after: ServerContext, values: SecurityKeys) -> None:
    old, new = before.certificate, after.certificate
    if not values.ssl_allow_dn_changes and old.distinguished_name != new.distinguished_name:
        raise BadStore(
            "ssl.keystore.location",
            "Keystore DistinguishedName does not match: existing={alias=kafka, "
            f"DN={old.distinguished_name}}}, new={{alias=kafka, DN={new.distinguished_name}}}",
        )
    if not values.ssl_allow_san_changes and not old.alternative_names <= new.alternative_names:
        missing = ", ".join(sorted(old.alternative_names - new.alternative_names))
        raise BadStore(
            "ssl.keystore.location",
            f"Keystore SubjectAlternativeNames do not match: {missing} is missing",
        )


def _stamp(values: SecurityKeys) -> _Stamp:
    return tuple(map(_file_stamp, store_files(values)))


def _file_stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
