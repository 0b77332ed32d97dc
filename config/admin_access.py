"""Admin access: the credentials and host names that the admin port accepts.

Reads the values of `rollcall.admin.*`. An error names the key and no secret.
"""

import re
import socket
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Final

from msgspec import Struct

from config.keys import Config
from config.listeners import BadAddress, parse_host_port
from protocol.java_text import trim

# RFC 6750: what may follow the word Bearer.
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")

_LISTENER: Final = "rollcall.admin.listener"
_LOCAL_NAMES: Final = frozenset(("localhost", "ip6-localhost", "ip6-loopback"))


class BadAdminAccess(ValueError):
    """A value that cannot be used; names the key to change."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(reason)
        self.key = key


class AdminAccess(Struct, frozen=True):
    """`tokens` and `passwords` (by user) are secrets; without any, the port asks for none."""

    tokens: tuple[str, ...]
    passwords: Mapping[str, str]
    open_paths: frozenset[str]
    host_names: frozenset[str]
    """In lower case, without a port. Addresses are not in it."""
    is_loopback: bool

    @property
    def asks_for_credentials(self) -> bool:
        return bool(self.tokens or self.passwords)


def admin_access(config: Config) -> AdminAccess:
    """Raises BadAdminAccess."""
    host = _admin_host(config)
    return AdminAccess(
        tuple(_tokens(config.rollcall_admin_token)),
        dict(_users(config.rollcall_admin_users)),
        frozenset(config.rollcall_admin_open_paths),
        frozenset(_host_names(config, host)),
        _is_loopback(host),
    )


def check_admin(config: Config) -> Iterator[str]:
    """The warnings about values that are valid, and unsafe together. Raises BadAdminAccess."""
    access = admin_access(config)
    has_tls = bool(config.rollcall_admin_ssl_certificate)
    if config.rollcall_admin_ssl_key and not has_tls:
        name = "rollcall.admin.ssl.certificate"
        raise BadAdminAccess(name, "required with rollcall.admin.ssl.key")
    if not config.rollcall_admin_listener or access.is_loopback:
        return
    where = f"The admin port ({_LISTENER} = {config.rollcall_admin_listener})"
    if not access.asks_for_credentials:
        yield (
            f"{where} is open to other machines and asks for no credentials: set "
            "rollcall.admin.token or rollcall.admin.users, or listen on 127.0.0.1"
        )
    elif not has_tls:
        yield (
            f"{where} receives credentials from other machines unencrypted: set "
            "rollcall.admin.ssl.certificate"
        )


def _tokens(text: str) -> Iterator[str]:
    for word in _words(text):
        if not _TOKEN.fullmatch(word):
            raise BadAdminAccess(
                "rollcall.admin.token",
                "a token has letters, digits and . _ ~ + / - only, and = at its end",
            )
        yield word


def _users(text: str) -> Iterator[tuple[str, str]]:
    names: set[str] = set()
    for position, entry in enumerate(_words(text), 1):
        name, _, password = entry.partition(":")
        if not name or not password:
            raise BadAdminAccess(
                "rollcall.admin.users", f"entry {position} is not of the form NAME:PASSWORD"
            )
        if name in names:
            raise BadAdminAccess("rollcall.admin.users", f"{name} occurs twice")
        names.add(name)
        yield name, password


def _words(text: str) -> Iterator[str]:
    """Not `split_list`: a list's words would be plain text and could be shown."""
    return filter(None, (trim(word) for word in re.split(r"[,\n]", text)))


def _host_names(config: Config, host: str) -> Iterator[str]:
    yield from _LOCAL_NAMES
    names = [host, socket.gethostname(), *config.rollcall_admin_allowed_hosts]
    for listener in config.endpoints:
        names += [listener.host, listener.advertised_host]
    for name in names:
        if name:
            yield name.lower().removesuffix(".")


def _admin_host(config: Config) -> str:
    if not config.rollcall_admin_listener:
        return "127.0.0.1"
    try:
        return parse_host_port(config.rollcall_admin_listener)[0]
    except BadAddress as bad:
        raise BadAdminAccess(_LISTENER, str(bad)) from None


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host.lower() in _LOCAL_NAMES
