"""PLAIN: a user name and a password in the clear (RFC 4616).

The passwords come from the configuration. Kafka's counterparts: `PlainSaslServer`,
`PlainServerCallbackHandler`; the messages are its own, with the order of its checks.
"""

from collections.abc import Mapping
from hmac import compare_digest
from typing import Final

from security.sasl.exchange import SaslFailure

PLAIN: Final = "PLAIN"
_PARTS: Final = 3  # [authzid] NUL authcid NUL password


class PlainServer:
    """Implements SaslServer. `users` has the password of each user."""

    mechanism = PLAIN
    expires_at_ms: int | None = None

    def __init__(self, users: Mapping[str, str]) -> None:
        self._users = users
        self.is_complete = False
        self.claimed_name = self.principal_name = ""

    def evaluate(self, token: bytes) -> bytes:
        parts = token.decode("utf-8", "replace").split("\0", _PARTS)
        if len(parts) != _PARTS:
            raise SaslFailure(
                f"Invalid SASL/PLAIN response: expected {_PARTS} tokens, got {len(parts)}"
            )
        authorization_id, user, password = parts
        self.claimed_name = user
        if not user:
            raise SaslFailure("Authentication failed: username not specified")
        if not password:
            raise SaslFailure("Authentication failed: password not specified")
        if not self._is_password(user, password):
            raise SaslFailure("Authentication failed: Invalid username or password")
        if authorization_id and authorization_id != user:
            raise SaslFailure(
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            )
        self.principal_name = user
        self.is_complete = True
        return b""

    def _is_password(self, user: str, password: str) -> bool:
        """An unknown user costs as much time as a known one."""
        expected = self._users.get(user)
        is_equal = compare_digest(_bytes(expected or ""), _bytes(password))
        return is_equal and expected is not None


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
