"""Connection: one client's socket, the queue of its requests, and the order of its answers.

First and last stop of the request path: bytes -> FrameReader -> decode -> route.handle, and answer
-> bytes. Requests are handled in the order in which they came. One that waits only for the disk
does not block the next one: its place in the queue keeps the order of the answers. One that waits
for other members (JoinGroup, SyncGroup, a long Fetch) does, as in Kafka: later bytes stay unread
in a bounded buffer, but the socket is still polled, so that a disconnect is noticed.

After a FIN (a half-closed or closed connection) every earlier request is answered, as by Kafka;
then the connection is closed. After an RST, or once an answer cannot be written, nothing more is
handled.
Kafka's counterpart: `SocketServer.Processor` and `KafkaChannel`'s mute states.
"""

import asyncio
import os
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol, cast

from broker.loop.clock import SystemClock
from broker.net.authentication import Authentication
from broker.net.listener_access import OPEN_ACCESS, ListenerAccess
from broker.net.peer import client_host, peer_address, peer_name
from broker.net.quotas import REQUESTS_A_TURN_MAX, TURN_S_MAX, Quotas
from broker.net.request import HANG_UP, NO_ANSWER, PendingRequest
from broker.net.route import Route
from broker.net.sockets import Bound
from broker.net.throttling import Throttling
from broker.observe.events import PeerFault
from broker.observe.stats import LONG_TURN_S
from protocol.codec import Malformed, RequestDecoder, UnknownApiKey, UnsupportedVersion
from protocol.framing import Frame, FrameReader
from protocol.names import ApiKey
from seams.now import Now
from seams.principal import ANONYMOUS, Principal
from security.ssl_principal import NoMatchingRule

UNREAD_BYTES_MAX: Final = 262_144
"""Bytes kept while a request holds the connection; beyond it the socket is not read."""

_NO_FRAMES: Final[deque[Frame]] = deque()
"""Of every connection without a backlog: an empty deque takes 760 bytes. Nothing is added to it."""

_NO_ANSWERS: Final[list[bytes]] = []
_NOTHING_UNREAD: Final = bytearray()
"""The same of connections that have nothing to write or to read: they take 64 bytes each."""

UNANSWERED_MAX: Final = 1_000
"""Requests of one connection that wait for the disk; beyond it the next one is not handled."""

CORKED_ANSWERS_MAX: Final = 64
CORKED_ANSWER_BYTES_MAX: Final = 16_384
"""One turn's answers are written together, but no more of them, and none that is longer."""

_FAULTS: Final = {
    UnknownApiKey: PeerFault.UNKNOWN_API,
    UnsupportedVersion: PeerFault.UNKNOWN_VERSION,
}


class ConnectionHost(Protocol):
    """What a connection needs of the server that accepted it."""

    clock: SystemClock
    decoder: RequestDecoder
    is_pass_over: bool
    latest_route: Route | None
    produce_max_bytes: int
    quotas: Quotas
    request_max_bytes: int
    routes: dict[int, Route]
    stopwatch: Callable[[], float]
    throttling: Throttling
    unserved_api_versions: Route

    def admit(self, connection: "Connection") -> None: ...

    def forget(self, connection: "Connection") -> None: ...

    def flush_soon(self, connection: "Connection") -> None: ...

    def postpone(self, connection: "Connection") -> None: ...

    def failed(self, token: PendingRequest, error: Exception) -> None: ...

    def disconnected(self, token: PendingRequest, now: Now) -> None: ...

    def report_fault(self, fault: PeerFault, connection: "Connection", detail: str) -> None: ...

    def after_failure(self, run: Callable[[], None]) -> None: ...

    def turn_failed(self, connection: "Connection", error: Exception) -> None: ...

    def turn_was_long(self, seconds: float) -> None: ...

    def count_turn(self, seconds: float) -> None: ...


class Connection(asyncio.Protocol):
    """`_blocked`: no request may be handled now. `_corked`: answers are being collected."""

    __slots__ = (
        "_answers",
        "_at_end",
        "_authentication",
        "_bad_end",
        "_blocked",
        "_corked",
        "_frames",
        "_has_backlog",
        "_has_slot",
        "_held",
        "_is_flush_due",
        "_is_muted",
        "_kept_bytes",
        "_left",
        "_pending",
        "_port",
        "_reader",
        "_reading_paused",
        "_request_bytes",
        "_seen_unsent_bytes",
        "_served_ms",
        "_server",
        "_throttling",
        "_transport",
        "_unread",
        "_unsent",
        "_writing_paused",
        "access",
        "active_ms",
        "client_host",
        "closing",
        "host",
        "is_authenticated",
        "listener",
        "lost",
        "principal",
    )

    def __init__(
        self, server: ConnectionHost, listener: Bound, access: ListenerAccess = OPEN_ACCESS
    ) -> None:
        self._server = server
        self.access = access
        self.is_authenticated = access is OPEN_ACCESS
        self._authentication = None if access.sasl is None else Authentication(self, access.sasl)
        self._request_bytes = server.quotas.request_bytes
        self._unsent = server.quotas.unsent
        self._throttling = server.throttling
        self.listener = listener
        self._transport: asyncio.Transport | None = None
        if access.sasl is None:
            self._reader = FrameReader(server.produce_max_bytes, server.request_max_bytes)
        else:
            self._reader = FrameReader(access.sasl.receive_max_bytes)
        self._pending: list[PendingRequest] = []  # at most UNANSWERED_MAX
        self._held: PendingRequest | None = None  # the one that holds the connection
        self._answers = _NO_ANSWERS
        self._frames = _NO_FRAMES  # whole requests that are not handled yet
        self._unread = _NOTHING_UNREAD  # received while blocked
        self._bad_end = ""  # why no frame can be found after those
        self._at_end = False  # nothing will come after those: the peer has sent a FIN
        self._blocked = self._corked = self._is_flush_due = False
        self._is_muted = self._reading_paused = False  # muted: by a quota
        self._writing_paused = False  # too many answers are unsent
        self._has_backlog = False  # some are: the transport holds what the kernel did not take
        self._has_slot = True  # below max.connections
        self._kept_bytes = 0  # answers that wait in `_pending` for one before them
        self._left = 0  # requests of this turn
        self.closing = False  # once the earlier answers are written
        self.lost = False
        self._served_ms = 0  # core clock: since when it may authenticate
        self.active_ms = 0  # core clock: when the peer last sent something, or waited for an answer
        self._seen_unsent_bytes = 0  # by the last sweep
        self.host, self._port, self.client_host = "", 0, ""
        self.principal = ANONYMOUS

    @property
    def peer(self) -> str:
        """Where it comes from, for the log."""
        return peer_name(self.host, self._port)

    # The socket's side.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass of it
        self.host, self._port = peer_address(transport)
        self.client_host = client_host(self.host)
        self._served_ms = self._server.clock.now().mono_ms
        # So that `pause_writing` is called for every byte that the kernel did not take at once.
        self._transport.set_write_buffer_limits(high=0)
        self._server.admit(self)

    def data_received(self, data: bytes) -> None:
        if self._request_bytes.is_limited and self._request_bytes.is_full and not self._blocked:
            self._blocked = True
            self._request_bytes.wait_for_room(self)
        if self._server.is_pass_over and not self._blocked:
            self._blocked = True
            self._server.postpone(self)
        if not self._blocked:
            try:
                self._server.count_turn(self._turn(data))
            except Exception as error:  # noqa: BLE001 - no client's bytes may end more than its own
                self._server.turn_failed(self, error)
            return
        if self._unread is _NOTHING_UNREAD:
            self._unread = bytearray(data)
        else:
            self._unread += data
        if len(self._unread) > UNREAD_BYTES_MAX:
            self.pause_reading()

    def eof_received(self) -> bool:
        """The peer asks nothing more. True: the transport stays open for the answers."""
        self._at_end = True
        if not self._blocked or (self._is_muted and not self._has_unhandled):
            self.finish()
        return True

    def connection_lost(self, _exc: Exception | None) -> None:
        self.lost = True
        self._unsent.remove_backlog(self)
        self._abandon(self._server.clock.now())
        self._answers = _NO_ANSWERS
        self._frames.clear()
        self._unread = _NOTHING_UNREAD
        self._server.forget(self)
        # They refer to this connection: with them it would wait for the garbage collector.
        self._transport = self._authentication = None

    def pause_writing(self) -> None:
        self._has_backlog = True  # `_write` reads how much

    def resume_writing(self) -> None:
        self._has_backlog = self._writing_paused = False
        self._unsent.remove_backlog(self)
        self.flush_soon()

    # TLS and SASL.

    @property
    def claimed(self) -> tuple[str, str]:
        """The mechanism, and the user that the client says it is, as far as they are known."""
        authentication = self._authentication
        return ("", "") if authentication is None else authentication.claimed

    @property
    def api_versions(self) -> Route:
        """As `Requester`."""
        return self._server.routes[ApiKey.API_VERSIONS]

    def secured(self, certificate: bytes | None) -> bool:
        """As `PlainConnection`. Without SASL the certificate says who the client is."""
        tls = self.access.tls
        assert tls is not None, "the listener has TLS"
        if self.access.sasl is not None:
            return True
        try:
            self.principal = tls.principal(certificate)
        except NoMatchingRule as refused:
            self._server.report_fault(PeerFault.AUTHENTICATION, self, str(refused))
            return False
        self.is_authenticated = True
        return True

    def handshake_failed(self, reason: str) -> None:
        """As `PlainConnection`."""
        self._server.report_fault(PeerFault.TLS, self, reason)

    def authenticated(self, principal: Principal, *, has_session: bool) -> None:
        """As `Authenticated`."""
        self.principal = principal
        self.is_authenticated = True
        self._reader.set_limits(self._server.produce_max_bytes, self._server.request_max_bytes)
        if not has_session:
            self._authentication = None

    def refuse(self, token: PendingRequest, answer: bytes, fault: PeerFault, detail: str) -> None:
        """As `Authenticated`: the delay makes guesses slow."""
        self._server.report_fault(fault, self, detail)
        self._held = token
        self._blocked = True
        self._server.after_failure(partial(self._refused, token, answer))

    def _refused(self, token: PendingRequest, answer: bytes) -> None:
        if self.lost:
            return
        if token.answer is None:
            self.answered(token, answer)  # empty: NO_ANSWER
        self.finish()

    def hang_up_on(self, token: PendingRequest, fault: PeerFault, detail: str) -> None:
        """As `Authenticated`."""
        self._server.report_fault(fault, self, detail)
        self.answered(token, HANG_UP)

    def _may_decode(
        self, authentication: Authentication, frame: Frame, now: Now, started_s: float
    ) -> bool:
        """Before decoding: False if the frame is a bare token, or comes before its time."""
        buf, start, end = frame
        if authentication.takes_bare_tokens:
            route = self._server.routes[ApiKey.SASL_AUTHENTICATE]
            token = PendingRequest(self, route, 0, 0, "", end - start, started_s)
            self._pending.append(token)
            authentication.bare_token(buf[start:end], token, now)
            return False
        api_key = int.from_bytes(buf[start : min(start + 2, end)], "big", signed=True)
        if authentication.admits(api_key):
            return True
        self._fault(PeerFault.NOT_AUTHENTICATED, f"api key {api_key}")
        return False

    # The cores' side, through Server.reply.

    def answered(self, token: PendingRequest, answer: bytes) -> None:
        """Keep the answer until those before it are there; collect what can be written now."""
        token.answer = answer
        if token is self._held:
            self._held = None
        if self._pending[0] is token:
            self._collect_answers()
        else:
            self._keep(len(answer))
        if not self._corked:
            self.flush_soon()

    def _collect_answers(self) -> None:
        """The first of the queue is answered: take out all up to the next that is not."""
        slots = self._pending
        first = slots[0]
        while slots:
            answer = slots[0].answer
            if answer is None:
                return
            if answer is HANG_UP:
                self._drop_rest()
                return
            token = slots.pop(0)
            if token is not first:
                self._keep(-len(answer))
            if self._request_bytes.is_limited:
                self._request_bytes.remove(token)
            if answer is not NO_ANSWER:
                # Looked up each time: `_write` puts another list in its place.
                if self._answers is _NO_ANSWERS:
                    self._answers = [answer]
                else:
                    self._answers.append(answer)
                if len(answer) > CORKED_ANSWER_BYTES_MAX or len(self._answers) > CORKED_ANSWERS_MAX:
                    self._write()  # and find out whether the peer still reads

    def _keep(self, size: int) -> None:
        self._kept_bytes += size
        self._unsent.kept_bytes += size

    # The server's side.

    def flush(self) -> bool:
        """Write the collected answers; True if there are postponed requests to handle now."""
        self._is_flush_due = False
        if self.lost:
            return False
        self._write()
        if not self._blocked or not self._may_resume():
            return False
        if self._has_unhandled or self._at_end:
            return True
        # Most often the client has waited for this answer: there is nothing to have a turn for.
        self._blocked = False
        self.resume_reading()
        return False

    def resume(self) -> None:
        """A turn for the postponed requests, if they still may be handled."""
        if self.lost or not self._blocked or not self._may_resume():
            return
        self._blocked = False
        if self._has_unhandled or self._at_end:
            self._turn(b"")
        if not self._blocked:
            self.resume_reading()

    def sweep(self, now: Now, idle_ms: int, timeout_ms: int) -> None:
        """Close what has been silent, or has not read a byte of its answers, for too long.

        `timeout_ms` is for the TLS handshake and the authentication together; it begins when there
        is a slot.
        """
        transport = self._transport
        if transport is None:
            return
        is_late = self._has_slot and now.mono_ms - self._served_ms >= timeout_ms
        if is_late and not self.is_authenticated:
            self._server.report_fault(PeerFault.TOO_SLOW, self, f"not done in {timeout_ms} ms")
            transport.abort()
            return
        unsent_bytes = self.unsent_bytes
        if unsent_bytes != self._seen_unsent_bytes or (not unsent_bytes and self._awaits_answer):
            # Bytes have moved, or the peer waits for an answer.
            self._seen_unsent_bytes = unsent_bytes
            self.active_ms = now.mono_ms
        if idle_ms < 0 or now.mono_ms - self.active_ms < idle_ms:
            return
        if unsent_bytes:
            self._server.report_fault(
                PeerFault.NOT_READING, self, f"{unsent_bytes} bytes unsent for {idle_ms} ms"
            )
            transport.abort()
        elif self.closing:
            transport.abort()
        else:
            self._server.report_fault(PeerFault.IDLE, self, f"silent for {idle_ms} ms")
            transport.close()

    @property
    def _awaits_answer(self) -> bool:
        """The peer is not idle: it has requests that are not answered, or not even handled."""
        if self._at_end and self._held is not None and self._held.route.waits_for_members:
            return False  # It waits for other members, and has probably gone.
        return bool(self._pending or self._frames or self._unread) or not self._has_slot

    def wait_for_slot(self) -> None:
        """Beyond max.connections: handle nothing before `take_slot`."""
        self._has_slot = False
        self._blocked = True

    def take_slot(self) -> None:
        self._has_slot = True
        self._served_ms = self._server.clock.now().mono_ms
        self.flush_soon()

    def mute(self) -> None:
        """Handle nothing before `unmute`; a disconnect is still noticed."""
        self._is_muted = self._blocked = True

    def unmute(self) -> None:
        self._is_muted = False
        if self._blocked:
            self.flush_soon()

    def pause_reading(self) -> None:
        if self._transport is not None and not self._reading_paused and not self._is_read_closed:
            self._reading_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._transport is not None and self._reading_paused and not self._is_read_closed:
            self._reading_paused = False
            self._transport.resume_reading()

    def finish(self) -> None:
        """Handle nothing more; close once every earlier request is answered."""
        if self.closing or self.lost:
            return
        self.pause_reading()
        self.closing = self._blocked = True
        self.flush_soon()

    def hang_up(self) -> None:
        """Close without waiting for missing answers; those that are there are still written."""
        if self._transport is not None:
            self._write()
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    @property
    def _is_read_closed(self) -> bool:
        """The read side is over: a FIN has come, or we close."""
        return self.closing or self._at_end

    @property
    def _has_unhandled(self) -> bool:
        return bool(self._frames or self._unread or self._bad_end)

    @property
    def unsent_bytes(self) -> int:
        """What the transport holds because the peer does not read."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    @property
    def unread_bytes(self) -> int:
        """What was received while nothing could be handled."""
        return len(self._unread)

    def write_through(self, token: PendingRequest) -> bool:
        """Give the collected answers to the kernel at once; False if this one is not due yet.

        For fail_points.py alone: the process ends before the loop would get round to it.
        """
        if self._transport is None or token in self._pending:
            return False
        out, self._answers = self._answers, _NO_ANSWERS
        os.write(self._transport.get_extra_info("socket").fileno(), b"".join(out))
        return True

    # One turn.

    def _turn(self, data: bytes) -> float:
        """Handle what was postponed, then `data`; write all answers of it at once.

        How long it took, in seconds.
        """
        server = self._server
        now = server.clock.now()
        started_s = server.stopwatch()
        self.active_ms = now.mono_ms
        self._corked = True
        self._left = REQUESTS_A_TURN_MAX
        while self._frames and not self._blocked:
            self._request(*self._frames.popleft(), now, started_s)
        if not self._frames:
            self._frames = _NO_FRAMES
        if not self._blocked and not self._bad_end:
            if self._unread:
                data = bytes(self._unread)
                self._unread = _NOTHING_UNREAD
            self._split(data, now, started_s)
        if not self._blocked:
            if self._bad_end:
                self._fault(PeerFault.BAD_SIZE, self._bad_end)
            elif self._at_end:
                self.finish()
        elif self._is_muted and self._at_end and not self._has_unhandled:
            self.finish()
        self._corked = False
        self._write()
        if self._blocked and self._may_resume():
            self.flush_soon()
        took_s = server.stopwatch() - started_s
        if took_s >= LONG_TURN_S:
            server.turn_was_long(took_s)
        return took_s

    def _split(self, data: bytes, now: Now, started_s: float) -> None:
        """Handle the requests in `data`, and keep those that come after one that blocks."""
        try:
            for buf, start, end in self._reader.feed(data) if data else ():
                if self._blocked:
                    if self._frames is _NO_FRAMES:
                        self._frames = deque()
                    self._frames.append((buf, start, end))
                else:
                    self._request(buf, start, end, now, started_s)
        except Malformed as bad:
            self._bad_end = f"{bad}{_hint(data)}"

    def _request(self, buf: bytes, start: int, end: int, now: Now, started_s: float) -> None:
        server = self._server
        authentication = self._authentication
        if authentication is not None and not self._may_decode(
            authentication, (buf, start, end), now, started_s
        ):
            return
        # Before authentication there is no client whose quota it could count against.
        is_measured = self._throttling.is_active and self.is_authenticated
        began_s = server.stopwatch() if is_measured else 0.0
        try:
            header, request = server.decoder.decode(buf, start, end)
        except Malformed as bad:
            self._fault(_FAULTS.get(type(bad), PeerFault.MALFORMED), str(bad))
            return
        route = server.routes[header.api_key]
        api_version = header.api_version
        if not 0 <= api_version < route.version_stop:
            # Only ApiVersions is decoded in a version that is not served; its answer is in v0.
            route, api_version = server.unserved_api_versions, 0
        token = PendingRequest(
            self,
            route,
            api_version,
            header.correlation_id,
            header.client_id,
            end - start,
            started_s,
        )
        route.stats.by_version[api_version] += 1
        server.latest_route = route
        self._pending.append(token)
        if is_measured:
            self._throttling.begin(token, began_s)
        try:
            if authentication is None:
                route.handle(request, token, now)
            else:
                authentication.handle(request, token, now)
        except Exception as error:  # noqa: BLE001 - no request may end the process
            server.failed(token, error)
        is_alone = is_measured and self._throttling.handled(token)
        holds = route.holds or is_alone
        if token.answer is None:
            if holds:
                self._held = token
            if self._request_bytes.is_limited and not route.waits_for_members:
                self._request_bytes.add(token)
            if holds or len(self._pending) >= UNANSWERED_MAX:
                self._blocked = True
        self._left -= 1
        if (
            not self._left
            or is_alone
            or server.stopwatch() - started_s >= TURN_S_MAX
            or (self._request_bytes.is_limited and self._request_bytes.is_full)
            or (self._kept_bytes and not self._unsent.allows(self._kept_bytes))
        ):
            self._blocked = True

    def _may_resume(self) -> bool:
        """Whether the next request may be handled. If only room is lacking, wait for it."""
        if (
            self._held is not None
            or self._writing_paused
            or not self._has_slot
            or self._is_muted
            or self.closing
            or len(self._pending) >= UNANSWERED_MAX
            or (self._kept_bytes and not self._unsent.allows(self._kept_bytes))
        ):
            return False
        if self._request_bytes.is_full:
            self._request_bytes.wait_for_room(self)
            return False
        return True

    def _write(self) -> None:
        transport = self._transport
        if transport is None:
            return
        if self._answers:
            out, self._answers = self._answers, _NO_ANSWERS
            transport.write(out[0] if len(out) == 1 else b"".join(out))
            if self._has_backlog:
                self._check_backlog()
        if self.closing and not self._pending:
            transport.close()

    def _check_backlog(self) -> None:
        """The peer does not read: beyond the limits its next request waits until it has."""
        size = self.unsent_bytes
        self._unsent.set_backlog(self, size)
        self._unsent.read_some_again()
        if not self._unsent.allows(size + self._kept_bytes):
            self._writing_paused = self._blocked = True

    def flush_soon(self) -> None:
        """Have `flush` called once this turn of the loop is over."""
        if not self._is_flush_due:
            self._is_flush_due = True
            self._server.flush_soon(self)

    def _fault(self, fault: PeerFault, detail: str) -> None:
        """The peer broke the protocol: answer its earlier requests, then close."""
        self._server.report_fault(fault, self, detail)
        self._frames.clear()
        self._unread = _NOTHING_UNREAD
        self._bad_end = ""
        self.finish()

    def _drop_rest(self) -> None:
        """A request whose handler failed is next: nothing after it can be answered in order."""
        self._abandon(self._server.clock.now())
        self.finish()

    def _abandon(self, now: Now) -> None:
        """Nothing in the queue can be answered any more; notify those who would answer."""
        slots, self._pending = self._pending, []
        self._held = None
        self._keep(-self._kept_bytes)
        for token in slots:
            if self._request_bytes.is_limited:
                self._request_bytes.remove(token)
            if token.answer is None:
                token.answer = NO_ANSWER
                self._server.disconnected(token, now)


def _hint(data: bytes) -> str:
    """A hint where an impossible request size may come from; empty if unknown."""
    if data.startswith(b"\x16\x03"):
        return "; it looks like TLS, and this listener has none"
    if data.startswith((b"GET ", b"HEAD", b"POST", b"PUT ", b"OPTI")):
        return "; it looks like HTTP, which is served on the admin port"
    return ""
