"""OAUTHBEARER: the client shows a token that another server has signed (RFC 7628).

A bad token is answered with a JSON object first; the failure follows when the client has
acknowledged it with one byte. As in Kafka, a client that sends another token instead is asked
again. Extensions are checked in form and ignored. Kafka's counterparts: `OAuthBearerSaslServer`,
`OAuthBearerClientInitialResponse`.
"""

import re
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from security.sasl.exchange import InvalidCredentials, SaslFailure

OAUTHBEARER: Final = "OAUTHBEARER"

INVALID_TOKEN: Final = '{"status":"invalid_token"}'
"""The challenge, and the message of the failure that follows."""

_ACKNOWLEDGED: Final = b"\x01"

_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_PAIRS: Final = r"(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*"
_INITIAL: Final = re.compile(rf"n,(?:a=(?P<authzid>{_NAME}))?,\x01(?P<pairs>{_PAIRS})\x01")
_AUTH: Final = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)", re.ASCII)


class ValidToken(Struct, frozen=True):
    """What was found in a token whose signature and claims are right."""

    principal_name: str
    expires_at_ms: int


class InvalidToken(Exception):
    """The message is for our log. It has nothing of the token's signature."""


class OauthBearerServer:
    """Implements SaslServer."""

    mechanism = OAUTHBEARER

    def __init__(self, validate: Callable[[str], ValidToken]) -> None:
        """`validate` raises InvalidToken."""
        self._validate = validate
        self._refused: str | None = None  # why, once the client was told
        self.is_complete = False
        self.claimed_name = self.principal_name = ""
        self.expires_at_ms: int | None = None

    def evaluate(self, token: bytes) -> bytes:
        if self.is_complete:
            raise SaslFailure("Unexpected challenge in Sasl server state", "the exchange is over")
        if self._refused is not None and token == _ACKNOWLEDGED:
            raise SaslFailure(INVALID_TOKEN, self._refused)
        self._refused = None
        authorization_id, bearer = _parse_initial(token)
        try:
            valid = self._validate(bearer)
        except InvalidToken as fault:
            self._refused = str(fault) or "the token is invalid"
            return INVALID_TOKEN.encode()
        if authorization_id and authorization_id != valid.principal_name:
            raise SaslFailure(
                "Authentication failed: Client requested an authorization id "
                f"({authorization_id}) that is different from the token's principal name "
                f"({valid.principal_name})"
            )
        self.principal_name = valid.principal_name
        self.expires_at_ms = valid.expires_at_ms
        self.is_complete = True
        return b""


def _parse_initial(message: bytes) -> tuple[str, str]:
    """The authorization id, which may be empty, and the token. Raises SaslFailure."""
    initial = _INITIAL.fullmatch(message.decode("utf-8", "replace"))
    if initial is None:
        raise _malformed("the client first message is malformed")
    pairs = dict(pair.partition("=")[::2] for pair in initial["pairs"].split("\x01"))
    if "auth" not in pairs:
        raise _malformed("the client first message has no token")
    auth = _AUTH.fullmatch(pairs["auth"])
    if auth is None:
        raise _malformed("the token in the client first message is malformed")
    if auth["scheme"].lower() != "bearer":
        raise _malformed("the scheme in the client first message is not Bearer")
    return initial["authzid"] or "", auth["token"]


def _malformed(reason: str) -> InvalidCredentials:
    return InvalidCredentials(OAUTHBEARER, reason)
