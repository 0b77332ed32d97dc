"""Authentication: the SASL exchange of one connection, and the session that it begins.

Until it is complete, only ApiVersions (once), SaslHandshake and SaslAuthenticate are handled. After
SaslHandshake v0 the tokens come without a Kafka header. A failure is answered after
`connection.failed.authentication.delay.ms`, then the connection is closed. With
`connections.max.reauth.ms`, or a token that ends, a client must authenticate again in time.
Kafka's counterpart: `SaslServerAuthenticator`, `KafkaChannel.maybeBeginServerReauthentication`.
"""

from enum import Enum, auto
from typing import Final, Protocol

from broker.net.listener_access import SaslAccess
from broker.net.request import PendingRequest
from broker.observe.events import PeerFault
from protocol.codec import encode_response
from protocol.messages import Request, Response
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from protocol.names import ApiKey, ErrorCode
from seams.now import Now
from seams.principal import USER_TYPE, Principal
from security.sasl.exchange import SaslFailure, SaslServer

REAUTHENTICATION_INTERVAL_MS: Final = 1_000
"""A client that authenticates again sooner is refused, as in Kafka."""

_SIZE_BYTES: Final = 4

_BEFORE_HANDSHAKE: Final = frozenset((ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE))
_OF_SASL: Final = frozenset((ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE))


class AuthenticationState(Enum):
    """`SaslServerAuthenticator.SaslState`, as far as it decides what may come next."""

    FIRST = auto()  # ApiVersions or SaslHandshake
    HANDSHAKE = auto()  # ApiVersions is answered
    TOKENS = auto()  # a mechanism is chosen
    OTHER_MECHANISM = auto()  # of a client that authenticates again: the next token fails
    COMPLETE = auto()
    FAILED = auto()


class Authenticated(Protocol):
    """The connection, as far as its authentication changes it."""

    def answered(self, token: PendingRequest, answer: bytes) -> None: ...

    def authenticated(self, principal: Principal, *, has_session: bool) -> None:
        """Its client is known; without a session the authentication is not asked again."""

    def refuse(self, token: PendingRequest, answer: bytes, fault: PeerFault, detail: str) -> None:
        """Answer after the delay of failures, then close."""

    def hang_up_on(self, token: PendingRequest, fault: PeerFault, detail: str) -> None:
        """Close without an answer."""


class Authentication:
    """One connection's. `now` is the core clock, and the wall clock for tokens that end."""

    def __init__(self, connection: Authenticated, access: SaslAccess) -> None:
        self._connection = connection
        self._access = access
        self._state = AuthenticationState.FIRST
        self._server: SaslServer | None = None
        self._mechanism = ""
        self._has_headers = True  # False after SaslHandshake v0
        self._principal: Principal | None = None
        self._expires_ms: int | None = None  # of the session, by the core clock
        self._began_again_ms: int | None = None

    @property
    def claimed(self) -> tuple[str, str]:
        """The mechanism, and the user that the client says it is, as far as they are known."""
        if self._principal is not None:
            return self._mechanism, str(self._principal)
        name = "" if self._server is None else self._server.claimed_name
        return self._mechanism, str(Principal(USER_TYPE, name)) if name else ""

    @property
    def takes_bare_tokens(self) -> bool:
        """The next frame is a token without a header."""
        return not self._has_headers and self._state in (
            AuthenticationState.TOKENS,
            AuthenticationState.OTHER_MECHANISM,
        )

    def admits(self, api_key: int) -> bool:
        """Whether such a request is decoded at all; what comes too early is closed unread."""
        match self._state:
            case AuthenticationState.FIRST | AuthenticationState.HANDSHAKE:
                return api_key in _BEFORE_HANDSHAKE
            case AuthenticationState.TOKENS | AuthenticationState.OTHER_MECHANISM:
                return api_key == ApiKey.SASL_AUTHENTICATE
            case AuthenticationState.COMPLETE:
                return True
            case AuthenticationState.FAILED:
                return False

    def handle(self, request: Request, token: PendingRequest, now: Now) -> None:
        """A request that `admits` has let through."""
        if self._state is AuthenticationState.COMPLETE:
            self._in_session(request, token, now)
        elif isinstance(request, SaslHandshakeRequest):
            self._handshake(request, token)
        elif isinstance(request, SaslAuthenticateRequest):
            self._authenticate(request, token, now)
        elif self._state is AuthenticationState.FIRST:
            token.route.handle(request, token, now)
            if token.route is token.connection.api_versions:
                self._state = (
                    AuthenticationState.HANDSHAKE
                )  # an unserved version may be asked again
        else:
            self._too_early(token, "a second ApiVersions")

    def bare_token(self, data: bytes, token: PendingRequest, now: Now) -> None:
        """A frame while `takes_bare_tokens`."""
        if self._state is AuthenticationState.OTHER_MECHANISM:
            self._fail(token, b"", "another mechanism than before")
            return
        try:
            challenge = self._evaluate(data)
        except SaslFailure as failure:
            self._fail(token, b"", failure.reason)
            return
        self._complete_if_done(now)
        self._connection.answered(token, len(challenge).to_bytes(_SIZE_BYTES, "big") + challenge)

    def _handshake(self, request: SaslHandshakeRequest, token: PendingRequest) -> None:
        self._has_headers = token.api_version > 0
        mechanisms = list(self._access.mechanisms)
        if request.mechanism not in self._access.mechanisms:
            refusal = SaslHandshakeResponse(ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms)
            detail = f"Unsupported SASL mechanism {request.mechanism[:64]!r}"
            self._fail(token, _encoded(token, refusal), detail)
            return
        if self._principal is not None and request.mechanism != self._mechanism:
            self._state = AuthenticationState.OTHER_MECHANISM
        else:
            self._mechanism = request.mechanism
            self._server = self._access.mechanisms[request.mechanism].new_server()
            self._state = AuthenticationState.TOKENS
        accepted = SaslHandshakeResponse(ErrorCode.NONE, mechanisms)
        self._connection.answered(token, _encoded(token, accepted))

    def _authenticate(
        self, request: SaslAuthenticateRequest, token: PendingRequest, now: Now
    ) -> None:
        if self._state is AuthenticationState.OTHER_MECHANISM:
            self._fail(token, b"", "another mechanism than before")
            return
        try:
            challenge = self._evaluate(request.auth_bytes)
        except SaslFailure as failure:
            message = failure.client_message(is_reauthentication=self._principal is not None)
            refusal = SaslAuthenticateResponse(ErrorCode.SASL_AUTHENTICATION_FAILED, message)
            self._fail(token, _encoded(token, refusal), failure.reason)
            return
        lifetime_ms = self._complete_if_done(now)
        response = SaslAuthenticateResponse(
            error_message=None, auth_bytes=challenge, session_lifetime_ms=lifetime_ms
        )
        self._connection.answered(token, _encoded(token, response))

    def _evaluate(self, data: bytes) -> bytes:
        """Raises SaslFailure."""
        server = self._server
        assert server is not None, "a mechanism is chosen"
        challenge = server.evaluate(data)
        if server.is_complete and self._principal is not None:
            before, after = self._principal, Principal(USER_TYPE, server.principal_name)
            if before != after:
                raise SaslFailure(
                    "Cannot change principals during re-authentication from "
                    f"{before.principal_type}.{before.name}: {after.principal_type}.{after.name}"
                )
        return challenge

    def _complete_if_done(self, now: Now) -> int:
        """How long the session lasts, in ms; 0 without an end, or while tokens are missing."""
        server = self._server
        assert server is not None, "a mechanism is chosen"
        if not server.is_complete:
            return 0
        ends: list[int] = []
        if server.expires_at_ms is not None:
            ends.append(max(server.expires_at_ms - now.wall_ms, 0))
        max_reauth_ms = self._access.mechanisms[self._mechanism].max_reauth_ms
        if max_reauth_ms > 0:
            ends.append(max_reauth_ms)
        lifetime_ms = min(ends, default=0)
        self._expires_ms = now.mono_ms + lifetime_ms if ends else None
        self._state = AuthenticationState.COMPLETE
        self._server = None
        self._principal = Principal(USER_TYPE, server.principal_name)
        self._connection.authenticated(self._principal, has_session=bool(ends))
        return lifetime_ms

    def _in_session(self, request: Request, token: PendingRequest, now: Now) -> None:
        assert self._expires_ms is not None, "without a session no request comes here"
        if isinstance(request, SaslHandshakeRequest) and self._may_begin_again(now):
            self._began_again_ms = now.mono_ms
            self._handshake(request, token)
        elif now.mono_ms > self._expires_ms:
            self._state = AuthenticationState.FAILED
            fault, detail = PeerFault.SESSION_EXPIRED, f"of {self._principal}"
            self._connection.hang_up_on(token, fault, detail)
        else:
            token.route.handle(request, token, now)

    def _may_begin_again(self, now: Now) -> bool:
        began_ms = self._began_again_ms
        return began_ms is None or now.mono_ms - began_ms >= REAUTHENTICATION_INTERVAL_MS

    def _too_early(self, token: PendingRequest, what: str) -> None:
        self._state = AuthenticationState.FAILED
        self._connection.hang_up_on(token, PeerFault.NOT_AUTHENTICATED, what)

    def _fail(self, token: PendingRequest, answer: bytes, reason: str) -> None:
        self._state = AuthenticationState.FAILED
        detail = f"{self._mechanism}: {reason}" if self._mechanism else reason
        self._connection.refuse(token, answer, PeerFault.AUTHENTICATION, detail)


def _encoded(token: PendingRequest, response: Response) -> bytes:
    return encode_response(token.route.api_key, token.api_version, token.correlation_id, response)
