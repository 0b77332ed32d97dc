"""SASL exchange: the server's side of a mechanism, as the connection sees it.

A connection makes one `SaslServer` for each authentication and feeds it the client's tokens. The
server knows no socket and no clock. Kafka's counterparts: `SaslServer`; of `SaslFailure` the
`SaslAuthenticationException`, and of `InvalidCredentials` the `SaslException`.
"""

from typing import Protocol


class SaslFailure(Exception):
    """The client is not who it says, or what it sent is no token of the mechanism."""

    def __init__(self, message: str, reason: str = "") -> None:
        """`message` is for the client, `reason` for our log. Neither has a password or a token."""
        super().__init__(message)
        self.message = message
        self.reason = reason or message

    def client_message(self, *, is_reauthentication: bool = False) -> str:  # noqa: ARG002
        """What SaslAuthenticate answers, with SASL_AUTHENTICATION_FAILED."""
        return self.message


class InvalidCredentials(SaslFailure):
    """The client learns no more than the mechanism: another text might say which users exist."""

    def __init__(self, mechanism: str, reason: str) -> None:
        super().__init__(_generic(mechanism, "authentication"), reason)
        self._mechanism = mechanism

    def client_message(self, *, is_reauthentication: bool = False) -> str:
        when = "re-authentication" if is_reauthentication else "authentication"
        return _generic(self._mechanism, when)


def _generic(mechanism: str, when: str) -> str:
    return (
        f"Authentication failed during {when} due to invalid credentials with SASL mechanism "
        f"{mechanism}"
    )


class SaslServer(Protocol):
    """One authentication. After a SaslFailure it is not used any more."""

    @property
    def mechanism(self) -> str:
        """Its name in SaslHandshake."""

    @property
    def is_complete(self) -> bool:
        """Whether the client is authenticated."""

    @property
    def claimed_name(self) -> str:
        """Who the client says it is, before that is proven; empty as long as it is not known."""

    @property
    def principal_name(self) -> str:
        """Who the client is. Empty until the exchange is complete."""

    @property
    def expires_at_ms(self) -> int | None:
        """When its credential ends, in wall clock ms; None: it does not end by itself."""

    def evaluate(self, token: bytes) -> bytes:
        """The next challenge, or the last answer. Raises SaslFailure, and nothing else."""
