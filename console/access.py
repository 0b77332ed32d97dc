"""Access rules: whether the admin port answers a request at all, by its head alone.

In this order: the target's form, the host name (DNS rebinding), the origin (requests of foreign
pages), a body (none is taken), the credentials, the path. A path is one of those that are served,
letter for letter: no form of `..`, `//` or %2F reaches another page than the one that was checked.
Pages of the console have one free segment, the name of a group or topic, which nothing decodes
here. Reads no clock and no socket. ADR 0037.
"""

import re
from base64 import b64decode
from binascii import Error as BadBase64
from collections.abc import Mapping, Sequence
from enum import Enum
from hashlib import sha256
from hmac import compare_digest
from ipaddress import ip_address
from typing import Final, NamedTuple

from config.admin_access import AdminAccess

REALM: Final = "rollcall"

TOKEN_USER: Final = "token"
"""Browsers ask for a name and a password, never for a bearer token: with this name, the token is
the password."""

_AUTHORITY: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s\[\]:/@\\?#]+)(?::[0-9]{1,5})?")


NO_HEADERS: Final[Mapping[str, str]] = {}


class RequestHead(NamedTuple):
    """What the rules know of a request. Header names are in lower case."""

    method: str
    target: str
    is_http_1_0: bool
    headers: Mapping[str, Sequence[str]]

    def only(self, name: str) -> str | None:
        """The value of a header; None without one. Raises ValueError if there are several."""
        values = self.headers.get(name, ())
        if len(values) > 1:
            raise ValueError(name)
        return values[0] if values else None


class AccessRefusal(NamedTuple):
    """The answer instead of a page."""

    status: int
    text: str
    headers: Mapping[str, str] = NO_HEADERS
    is_guess: bool = False
    """Credentials that are wrong: the answer is delayed."""


class _Found(Enum):
    RIGHT = "right"
    WRONG = "wrong"
    NONE = "none"


class AccessRules:
    """The rules of one admin port. Of the credentials it has digests only."""

    def __init__(
        self,
        access: AdminAccess,
        paths: frozenset[str],
        named_paths: re.Pattern[str] | None = None,
    ) -> None:
        """`named_paths` matches the whole of each path with a free segment."""
        self._paths = paths
        self._named_paths = named_paths
        self._open_paths = access.open_paths
        self._host_names = access.host_names
        self._is_loopback = access.is_loopback
        self._digests = [
            *(_digest("bearer", token) for token in access.tokens),
            *(_digest("basic", f"{TOKEN_USER}:{token}") for token in access.tokens),
            *(_digest("basic", f"{user}:{word}") for user, word in access.passwords.items()),
        ]
        schemes = ["Bearer", "Basic"] if access.tokens else ["Basic"]
        self._challenge = ", ".join(f'{scheme} realm="{REALM}"' for scheme in schemes)

    def has_credentials(self, head: RequestHead) -> bool:
        """Whether the request is an attempt: only then a wrong answer teaches anything."""
        return bool(self._digests) and "authorization" in head.headers

    def refusal(self, head: RequestHead) -> AccessRefusal | None:
        """None: the request is answered."""
        try:
            return (
                self._wrong_target(head)
                or self._foreign_host(head)
                or _foreign_origin(head)
                or _with_body(head)
                or self._unauthenticated(head)
                or self._unknown_path(head)
            )
        except ValueError as several:
            return AccessRefusal(400, f"The header {several} occurs twice")

    def _wrong_target(self, head: RequestHead) -> AccessRefusal | None:
        """An absolute address, `*` and `host:port` are for proxies."""
        return (
            None if head.target.startswith("/") else AccessRefusal(400, "The target is not a path")
        )

    def _foreign_host(self, head: RequestHead) -> AccessRefusal | None:
        host = head.only("host")
        if host is None:
            # No browser speaks HTTP/1.0; simple health checks do.
            return None if head.is_http_1_0 else AccessRefusal(400, "The header Host is missing")
        name = _host_of(host)
        if name is None:
            return AccessRefusal(400, "The header Host is not of the form HOST:PORT")
        if self._is_own(name):
            return None
        return AccessRefusal(421, "Not a name of this admin port; see rollcall.admin.allowed.hosts")

    def _is_own(self, name: str) -> bool:
        """An address cannot be rebound, as no name server is asked for it.

        With a port for this machine only, it is one of this machine only.
        """
        try:
            address = ip_address(name)
        except ValueError:
            return name in self._host_names
        return address.is_loopback or not self._is_loopback

    def _unauthenticated(self, head: RequestHead) -> AccessRefusal | None:
        if not self._digests or _path_of(head) in self._open_paths:
            return None
        found = self._check(head.only("authorization"))
        if found is _Found.RIGHT:
            return None
        return AccessRefusal(
            401,
            "Credentials are required" if found is _Found.NONE else "Wrong credentials",
            {"WWW-Authenticate": self._challenge},
            is_guess=found is _Found.WRONG,
        )

    def _check(self, header: str | None) -> _Found:
        if header is None:
            return _Found.NONE
        scheme, _, word = header.strip().partition(" ")
        word = word.strip()
        match scheme.lower():
            case "bearer":
                given = _digest("bearer", word)
            case "basic":
                given = _digest("basic", _decoded(word))
            case _:
                return _Found.WRONG
        is_right = False
        for digest in self._digests:  # all of them: the time must not depend on which it is
            is_right |= compare_digest(given, digest)
        return _Found.RIGHT if is_right else _Found.WRONG

    def _unknown_path(self, head: RequestHead) -> AccessRefusal | None:
        path = _path_of(head)
        if path in self._paths or (self._named_paths and self._named_paths.fullmatch(path)):
            return None
        return AccessRefusal(404, "404 Not Found")


def _foreign_origin(head: RequestHead) -> AccessRefusal | None:
    """A person may follow a link from another site, in a window of its own; no page may ask."""
    refused = AccessRefusal(403, "Requests of other sites' pages are refused")
    site = head.only("sec-fetch-site")
    is_link = (
        head.method == "GET"
        and head.only("sec-fetch-mode") == "navigate"
        and head.only("sec-fetch-dest") in (None, "document")
    )
    if site in ("cross-site", "same-site") and not is_link:
        return refused
    origin = head.only("origin")
    if origin is None:
        return None
    _, _, authority = origin.partition("://")
    is_own = authority != "" and authority.lower() == (head.only("host") or "").lower()
    return None if is_own else refused


def _with_body(head: RequestHead) -> AccessRefusal | None:
    length = head.only("content-length")
    if "transfer-encoding" in head.headers or length not in (None, "0"):
        return AccessRefusal(413, "The admin port takes no request bodies", {"Connection": "close"})
    return None


def _path_of(head: RequestHead) -> str:
    return head.target.partition("?")[0]


def _host_of(authority: str) -> str | None:
    match = _AUTHORITY.fullmatch(authority)
    return None if match is None else match[1].strip("[]").lower().removesuffix(".")


def _decoded(word: str) -> str:
    """NAME:PASSWORD; a text that cannot be either is a wrong password."""
    try:
        return b64decode(word, validate=True).decode()
    except (BadBase64, ValueError):
        return ""


def _digest(scheme: str, word: str) -> bytes:
    return sha256(f"{scheme}\0{word}".encode(errors="surrogateescape")).digest()
