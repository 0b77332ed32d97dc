"""What does one client send, and in which order is it answered? One socket, one queue of requests.

First and last stop of the road: bytes -> FrameReader -> decode -> route, and answer -> bytes.
Requests are decided in the order in which they came. One that waits only for the disk does not
hold up the next one: its place in the queue keeps the order of the answers. One that waits for
people (JoinGroup, SyncGroup, a long Fetch) does, as in Kafka: what follows it stays unread in a
bounded buffer, but the socket is still listened to, so that a client that goes away is noticed.

A client that ends its side (a FIN, of a half-closed or a closed connection) is answered all that it
asked before, as by Kafka; then the connection is closed. After an RST, or once an answer cannot be
written, nothing more is looked at.
Kafka's counterpart: `SocketServer.Processor` and `KafkaChannel`'s mute states.
"""

import asyncio
import os
from collections import deque
from typing import TYPE_CHECKING, Final, cast

from broker.net.peer import client_host, peer_address
from broker.net.request import HANG_UP, NO_ANSWER, PendingRequest
from broker.observe.events import PeerFault
from broker.observe.stats import LONG_TURN_S
from protocol.codec import Malformed, UnknownApiKey, UnsupportedVersion, decode_request
from protocol.framing import Frame, FrameReader
from seams.now import Now

if TYPE_CHECKING:
    from broker.net.server import Server
    from broker.net.sockets import Bound

UNREAD_BYTES_MAX: Final = 262_144
"""Bytes kept while a request holds the connection; beyond it the socket is not read any more."""

UNANSWERED_MAX: Final = 1_000
"""Requests of one connection that wait for the disk; beyond it the next one is not looked at."""

REQUESTS_A_TURN_MAX: Final = 100
TURN_S_MAX: Final = 0.002
"""Of one connection; then the others have theirs. The time is looked at after each request: one
that takes longer by itself ends its turn, but cannot be interrupted."""

CORKED_ANSWERS_MAX: Final = 64
CORKED_ANSWER_BYTES_MAX: Final = 16_384
"""One turn's answers are written together, but no more of them, and none that is longer."""

_FAULTS: Final = {
    UnknownApiKey: PeerFault.UNKNOWN_API,
    UnsupportedVersion: PeerFault.UNKNOWN_VERSION,
}


class Connection(asyncio.Protocol):
    """`_blocked`: no request may be looked at now. `_corked`: the answers of one turn gather."""

    __slots__ = (
        "_at_end",
        "_bad_end",
        "_blocked",
        "_corked",
        "_frames",
        "_has_backlog",
        "_has_place",
        "_held",
        "_kept_bytes",
        "_left",
        "_out",
        "_reader",
        "_reading_paused",
        "_seen_unsent_bytes",
        "_server",
        "_slots",
        "_touched",
        "_transport",
        "_unread",
        "_writing_paused",
        "active_ms",
        "client_host",
        "closing",
        "host",
        "listener",
        "lost",
        "peer",
    )

    def __init__(self, server: "Server", listener: "Bound") -> None:
        self._server = server
        self.listener = listener
        self._transport: asyncio.Transport | None = None
        self._reader = FrameReader(server.produce_max_bytes, server.request_max_bytes)
        self._slots: deque[PendingRequest] = deque()
        self._held: PendingRequest | None = None  # the one that holds the connection
        self._out: list[bytes] = []
        self._frames: deque[Frame] = deque()  # whole requests whose time has not come
        self._unread = bytearray()  # what came while blocked
        self._bad_end = ""  # why no frame can be found after those
        self._at_end = False  # nothing will come after those: the peer has sent a FIN
        self._blocked = False
        self._corked = False
        self._touched = False
        self._reading_paused = False
        self._writing_paused = False  # too many answers are unsent
        self._has_backlog = False  # some are: the transport holds what the kernel did not take
        self._has_place = True  # below max.connections
        self._kept_bytes = 0  # answers that wait in `_slots` for one before them
        self._left = 0  # requests of this turn
        self.closing = False  # once the answers before are out
        self.lost = False
        self.active_ms = 0  # core clock: when the peer was last heard, or waited for us
        self._seen_unsent_bytes = 0  # by the last sweep
        self.host = self.peer = self.client_host = ""

    # The socket's side.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass of it
        self.host, self.peer = peer_address(transport)
        self.client_host = client_host(self.host)
        # So that `pause_writing` tells of every byte that the kernel did not take at once.
        self._transport.set_write_buffer_limits(high=0)
        self._server.admit(self)

    def data_received(self, data: bytes) -> None:
        if self._server.limits_queue and self._server.is_full and not self._blocked:
            self._blocked = True
            self._server.hold_back(self)
        if not self._blocked:
            try:
                self._turn(data)
            except Exception as error:  # noqa: BLE001 - no client's bytes may end more than its own
                self._server.turn_failed(self, error)
            return
        self._unread += data
        if len(self._unread) > UNREAD_BYTES_MAX:
            self.pause_reading()

    def eof_received(self) -> bool:
        """The peer asks nothing more. True: the transport stays open for the answers."""
        self._at_end = True
        if not self._blocked:
            self.finish()
        return True

    def connection_lost(self, _exc: Exception | None) -> None:
        self.lost = True
        self._server.unsent.forget(self)
        self._abandon(self._server.clock.now())
        self._out.clear()
        self._frames.clear()
        self._unread.clear()
        self._server.forget(self)

    def pause_writing(self) -> None:
        self._has_backlog = True  # `_write` weighs it

    def resume_writing(self) -> None:
        self._has_backlog = self._writing_paused = False
        self._server.unsent.forget(self)
        self._touch()

    # The cores' side, by way of Server.reply.

    def answered(self, token: PendingRequest, answer: bytes) -> None:
        """Keep the answer until its turn; gather what can go out now."""
        token.answer = answer
        if token is self._held:
            self._held = None
        if self._slots[0] is token:
            self._gather()
        else:
            self._keep(len(answer))
        if not self._corked:
            self._touch()

    def _gather(self) -> None:
        """The first of the queue has its answer: take out all up to the next that has none."""
        slots = self._slots
        first = slots[0]
        while slots:
            answer = slots[0].answer
            if answer is None:
                return
            if answer is HANG_UP:
                self._drop_rest()
                return
            token = slots.popleft()
            if token is not first:
                self._keep(-len(answer))
            if self._server.limits_queue:
                self._server.release(token)
            if answer is not NO_ANSWER:
                # Looked up each time: `_write` puts another list in its place.
                self._out.append(answer)
                if len(answer) > CORKED_ANSWER_BYTES_MAX or len(self._out) > CORKED_ANSWERS_MAX:
                    self._write()  # and learn by it whether the peer still reads

    def _keep(self, size: int) -> None:
        self._kept_bytes += size
        self._server.unsent.kept_bytes += size

    # The server's side.

    def flush(self) -> bool:
        """Write what has gathered; whether what was put off may be looked at now."""
        self._touched = False
        if self.lost:
            return False
        self._write()
        return self._blocked and self._may_go_on()

    def go_on(self) -> None:
        """A turn for what was put off, if it still may be looked at."""
        if self.lost or not self._blocked or not self._may_go_on():
            return
        self._blocked = False
        if self._unread or self._frames or self._bad_end or self._at_end:
            self._turn(b"")
        if not self._blocked:
            self.resume_reading()

    def sweep(self, now: Now, idle_ms: int) -> None:
        """Close what has been silent, or has not read a byte of its answers, for too long."""
        transport = self._transport
        if transport is None:
            return
        unsent_bytes = self.unsent_bytes
        if unsent_bytes != self._seen_unsent_bytes or (not unsent_bytes and self._waits_for_us):
            # Bytes have moved, or it is we who owe something.
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
    def _waits_for_us(self) -> bool:
        """The peer is not silent: we have not answered it, or not even looked at what it sent."""
        if self._at_end and self._held is not None and self._held.route.waits:
            return False  # It waits for other people, and has probably gone.
        return bool(self._slots or self._frames or self._unread) or not self._has_place

    def wait_for_place(self) -> None:
        """Look at nothing before `take_place`."""
        self._has_place = False
        self._blocked = True

    def take_place(self) -> None:
        self._has_place = True
        self._touch()

    def pause_reading(self) -> None:
        if self._transport is not None and not self._reading_paused and not self._is_deaf:
            self._reading_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._transport is not None and self._reading_paused and not self._is_deaf:
            self._reading_paused = False
            self._transport.resume_reading()

    def finish(self) -> None:
        """Look at nothing more; close once everything that was asked before is answered."""
        if self.closing or self.lost:
            return
        self.pause_reading()
        self.closing = self._blocked = True
        self._touch()

    def hang_up(self) -> None:
        """Close without waiting for answers that are missing; those that are there still go out."""
        if self._transport is not None:
            self._write()
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    @property
    def _is_deaf(self) -> bool:
        """Nothing will be read any more."""
        return self.closing or self._at_end

    @property
    def unsent_bytes(self) -> int:
        """What the transport holds because the peer does not read."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    @property
    def unread_bytes(self) -> int:
        """What came while nothing could be looked at."""
        return len(self._unread)

    def write_through(self) -> bool:
        """Give what has gathered to the kernel at once; False if there was nothing.

        For fail_points.py alone: the process ends before the loop would get round to it.
        """
        out, self._out = self._out, []
        if self._transport is None or not out:
            return False
        os.write(self._transport.get_extra_info("socket").fileno(), b"".join(out))
        return True

    # One turn.

    def _turn(self, data: bytes) -> None:
        """Look at what was put off, then at `data`; write all answers that this gave, once."""
        server = self._server
        now = server.clock.now()
        started_s = server.stopwatch()
        self.active_ms = now.mono_ms
        self._corked = True
        self._left = REQUESTS_A_TURN_MAX
        while self._frames and not self._blocked:
            self._request(*self._frames.popleft(), now, started_s)
        if not self._blocked and not self._bad_end:
            if self._unread:
                data = bytes(self._unread)
                self._unread.clear()
            self._cut(data, now, started_s)
        if not self._blocked:
            if self._bad_end:
                self._fault(PeerFault.BAD_SIZE, self._bad_end)
            elif self._at_end:
                self.finish()
        self._corked = False
        self._write()
        if self._blocked and self._may_go_on():
            self._touch()
        server.turned()
        took_s = server.stopwatch() - started_s
        if took_s >= LONG_TURN_S:
            server.turn_was_long(took_s)

    def _cut(self, data: bytes, now: Now, started_s: float) -> None:
        """Look at the requests in `data`, and keep those whose time has not come."""
        try:
            for buf, start, end in self._reader.feed(data) if data else ():
                if self._blocked:
                    self._frames.append((buf, start, end))
                else:
                    self._request(buf, start, end, now, started_s)
        except Malformed as bad:
            self._bad_end = f"{bad}{_guess(data)}"

    def _request(self, buf: bytes, start: int, end: int, now: Now, started_s: float) -> None:
        server = self._server
        try:
            header, request = decode_request(buf, start, end)
        except Malformed as bad:
            self._fault(_FAULTS.get(type(bad), PeerFault.MALFORMED), str(bad))
            return
        route = server.routes[header.api_key]
        api_version = header.api_version
        if not 0 <= api_version < route.version_stop:
            # Of ApiVersions alone a version that is not served comes through; its answer is in v0.
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
        self._slots.append(token)
        try:
            route.handle(request, token, now)
        except Exception as error:  # noqa: BLE001 - no request may end the process
            server.failed(token, error)
        if token.answer is None:
            if route.holds:
                self._held = token
            if server.limits_queue and not route.waits:
                server.count(token)
            if route.holds or len(self._slots) >= UNANSWERED_MAX:
                self._blocked = True
        self._left -= 1
        if (
            not self._left
            or server.stopwatch() - started_s >= TURN_S_MAX
            or (server.limits_queue and server.is_full)
            or (self._kept_bytes and not server.unsent.allows(self._kept_bytes))
        ):
            self._blocked = True

    def _may_go_on(self) -> bool:
        """Whether the next request may be looked at. If room is all that lacks, wait for it."""
        if (
            self._held is not None
            or self._writing_paused
            or not self._has_place
            or self.closing
            or len(self._slots) >= UNANSWERED_MAX
            or (self._kept_bytes and not self._server.unsent.allows(self._kept_bytes))
        ):
            return False
        if self._server.is_full:
            self._server.hold_back(self)
            return False
        return True

    def _write(self) -> None:
        transport = self._transport
        if transport is None:
            return
        if self._out:
            out, self._out = self._out, []
            transport.write(out[0] if len(out) == 1 else b"".join(out))
            if self._has_backlog:
                self._weigh()
        if self.closing and not self._slots:
            transport.close()

    def _weigh(self) -> None:
        """The peer does not read: beyond the limits, what it asks next waits until it has."""
        unsent = self._server.unsent
        size = self.unsent_bytes
        unsent.note(self, size)
        if not unsent.allows(size + self._kept_bytes):
            self._writing_paused = self._blocked = True

    def _touch(self) -> None:
        if not self._touched:
            self._touched = True
            self._server.touch(self)

    def _fault(self, fault: PeerFault, detail: str) -> None:
        """The peer broke the rules: what it asked before is answered, then the line is cut."""
        self._server.report_fault(fault, self, detail)
        self._frames.clear()
        self._unread.clear()
        self._bad_end = ""
        self.finish()

    def _drop_rest(self) -> None:
        """Our own mistake stands next in line: nothing behind it can be answered in order."""
        self._abandon(self._server.clock.now())
        self.finish()

    def _abandon(self, now: Now) -> None:
        """Nothing that is still in the queue can be answered any more; tell those who would."""
        slots, self._slots = self._slots, deque()
        self._held = None
        self._keep(-self._kept_bytes)
        for token in slots:
            if self._server.limits_queue:
                self._server.release(token)
            if token.answer is None:
                token.answer = NO_ANSWER
                self._server.disconnected(token, now)


def _guess(data: bytes) -> str:
    """What a size that makes no sense may come from: the commonest mistakes have a name."""
    if data.startswith(b"\x16\x03"):
        return "; it looks like TLS, and this listener is PLAINTEXT"
    if data.startswith((b"GET ", b"HEAD", b"POST", b"PUT ", b"OPTI")):
        return "; it looks like HTTP, which is served on the admin port"
    return ""
