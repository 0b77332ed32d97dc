"""Listeners: where the daemon listens, and which address it advertises to clients.

Several named listeners, as in Kafka: one for clients inside a container network, one for those
outside. Each client gets the address advertised for the listener it connected to.
Reads the values of `listeners`, `advertised.listeners`, `listener.security.protocol.map` and
`controller.listener.names`. Kafka's counterpart: SocketServerConfigs.listenerListToEndPoints.
"""

import re
import socket
from collections.abc import Iterable, Mapping
from enum import Enum

from msgspec import Struct

from protocol.java_text import split_list, trim

_ENDPOINT = re.compile(
    r"(?P<name>[A-Za-z0-9_.-]+)://"
    r"(\[(?P<six>[0-9A-Fa-f:.%]+)\]|(?P<host>[^\[\]/:,\s]*))"
    r":(?P<port>[0-9]{1,5})"
)
_LABEL = re.compile(r"[A-Za-z0-9_-]{1,63}")  # DNS: a label has at most 63 bytes
_HOST_NAME_MAX = 255  # bytes, in DNS
_UNROUTABLE = ("", "0.0.0.0", "::", "0:0:0:0:0:0:0:0")


class BadAddress(ValueError):
    """A text that is no address; the message says of which form it should be."""


class ListenerAddress(Struct, frozen=True):
    """One entry of `listeners` or `advertised.listeners`."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}://{_bracketed(self.host)}:{self.port}"


class SecurityProtocol(Enum):
    """What clients of a listener speak below and before Kafka's protocol."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def has_tls(self) -> bool:
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def has_sasl(self) -> bool:
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


class Listener(Struct, frozen=True):
    """A socket to open and the address that clients of this socket are sent to."""

    name: str
    host: str
    """The address to bind; empty binds all addresses of the machine."""
    port: int
    """0 lets the system pick one."""
    advertised_host: str
    advertised_port: int
    """0 is the port that was bound."""
    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT


class BadListeners(ValueError):
    """A list of listeners that cannot be used; names the key to change."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(reason)
        self.key = key


def parse_listener(text: str) -> ListenerAddress:
    """Read NAME://HOST:PORT; listener names are upper-case, however they were written."""
    match = _ENDPOINT.fullmatch(trim(text))
    if match is None:
        raise BadAddress(f"{text!r} is not of the form NAME://HOST:PORT")
    return _endpoint(text, match)


def parse_host_port(text: str) -> tuple[str, int]:
    """Read HOST:PORT, an IPv6 address in brackets."""
    match = _ENDPOINT.fullmatch(f"X://{trim(text)}")
    if match is None:
        raise BadAddress(f"{text!r} is not of the form HOST:PORT")
    endpoint = _endpoint(text, match)
    return endpoint.host, endpoint.port


def _endpoint(text: str, match: re.Match[str]) -> ListenerAddress:
    port = int(match["port"])
    if port > 65_535:
        raise BadAddress(f"{text!r} has a port above 65535")
    if match["host"] and not _is_host_name(match["host"]):
        raise BadAddress(f"{text!r}: {match['host']!r} is not a host name")
    return ListenerAddress(match["name"].upper(), match["six"] or match["host"] or "", port)


def _is_host_name(host: str) -> bool:
    """Can clients resolve it? A DNS name, or an IPv4 address."""
    if not host.isascii():  # an internationalized name; the codec is slow to import
        try:
            host = host.encode("idna").decode()
        except UnicodeError:
            return False
    labels = host.removesuffix(".").split(".")
    return len(host) <= _HOST_NAME_MAX and all(map(_LABEL.fullmatch, labels))


def with_listener_name(text: str) -> str:
    """The value of --listen or --advertise with a listener name: PLAINTEXT if it has none."""
    return text if "://" in text else f"PLAINTEXT://{text}"


def resolve_listeners(
    listeners: Iterable[str],
    advertised: Iterable[str],
    security_protocols: str,
    controller_names: Iterable[str],
) -> tuple[Listener, ...]:
    """All listeners to open, in the order given. Raises BadListeners."""
    protocols = _protocol_map(security_protocols)
    # A configuration written for KRaft also names a controller's listener; we have no controller.
    controllers = {name.upper() for name in controller_names}
    bound = [e for e in _endpoints("listeners", listeners) if e.name not in controllers]
    advertised_by_name = {
        e.name: e
        for e in _endpoints("advertised.listeners", advertised)
        if e.name not in controllers
    }
    if not bound:
        raise BadListeners("listeners", "must have at least one listener for clients")
    _check_ports(bound)
    by_name = {endpoint.name: _protocol_of(endpoint, protocols) for endpoint in bound}
    for endpoint in advertised_by_name.values():
        if all(endpoint.name != e.name for e in bound):
            raise BadListeners(
                "advertised.listeners", f"{endpoint.name} is not one of the names in listeners"
            )
        if endpoint.host in _UNROUTABLE:
            raise BadListeners(
                "advertised.listeners", f"{endpoint}: clients cannot connect to this address"
            )
    return tuple(
        _listener(endpoint, advertised_by_name.get(endpoint.name), by_name[endpoint.name])
        for endpoint in bound
    )


def _listener(
    bound: ListenerAddress, advertised: ListenerAddress | None, protocol: SecurityProtocol
) -> Listener:
    if advertised is None:
        if bound.host in _UNROUTABLE and bound.host:
            raise BadListeners(
                "advertised.listeners",
                f"required, because clients cannot connect to {bound.host} (listeners): set the "
                "address that clients use with --advertise HOST:PORT",
            )
        # An empty host listens on every address and advertises the machine's name: Kafka's rule.
        advertised = ListenerAddress(bound.name, bound.host or _machine_name(), bound.port)
    return Listener(bound.name, bound.host, bound.port, advertised.host, advertised.port, protocol)


def _machine_name() -> str:
    name = socket.gethostname()
    if not _is_host_name(name):
        raise BadListeners(
            "advertised.listeners",
            f"required, because this machine's name, {name!r}, is not a valid host name",
        )
    return name


def _endpoints(key: str, texts: Iterable[str]) -> list[ListenerAddress]:
    endpoints: list[ListenerAddress] = []
    for text in texts:
        try:
            endpoint = parse_listener(text)
        except BadAddress as bad:
            raise BadListeners(key, str(bad)) from None
        if any(endpoint.name == other.name for other in endpoints):
            raise BadListeners(
                key, f"{endpoint.name} occurs twice; each listener needs its own name"
            )
        endpoints.append(endpoint)
    return endpoints


def _check_ports(bound: list[ListenerAddress]) -> None:
    for number, endpoint in enumerate(bound):
        for other in bound[:number]:
            if endpoint.port == other.port != 0 and endpoint.host == other.host:
                raise BadListeners(
                    "listeners", f"{other.name} and {endpoint.name} have the same address"
                )


def _protocol_map(text: str) -> Mapping[str, str]:
    protocols: dict[str, str] = {}
    for entry in filter(None, split_list(text)):
        name, colon, protocol = entry.partition(":")
        if not colon or not trim(name) or not trim(protocol):
            raise BadListeners(
                "listener.security.protocol.map", f"{entry!r} is not of the form NAME:PROTOCOL"
            )
        protocols[trim(name).upper()] = trim(protocol).upper()
    return protocols


def _protocol_of(endpoint: ListenerAddress, protocols: Mapping[str, str]) -> SecurityProtocol:
    protocol = protocols.get(endpoint.name)
    if protocol is None:
        raise BadListeners(
            "listener.security.protocol.map",
            f"has no protocol for the listener {endpoint.name}; add {endpoint.name}:PLAINTEXT",
        )
    try:
        return SecurityProtocol(protocol)
    except ValueError:
        known = ", ".join(each.value for each in SecurityProtocol)
        raise BadListeners(
            "listener.security.protocol.map",
            f"{endpoint.name} is {protocol}, which is none of {known}",
        ) from None


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
