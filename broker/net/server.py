"""Server: the listeners, their connections, and the limits on how many there are.

Stands between the sockets and the cores: gives a core's answer to the connection that asked, writes
the answers that many connections got in one turn (a rebalance, a flush of the journal) once for
each connection, and gives every connection its turn. Closes connections that are idle
(`connections.max.idle.ms`) or beyond a limit. What they keep in memory is limited in quotas.py.
Kafka's counterpart: `SocketServer`, `ConnectionQuotas`.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from time import perf_counter
from typing import Final

from broker.loop.clock import SystemClock
from broker.net.acceptor import Acceptor
from broker.net.connection import Connection
from broker.net.connection_slots import ConnectionSlots
from broker.net.dispatch import Dispatcher
from broker.net.error_codes import errors_in
from broker.net.fault_log import FaultLog
from broker.net.listener_access import OPEN_ACCESS, ListenerAccess
from broker.net.quotas import CLOSED_A_FLUSH_MAX, FLUSH_S_MAX, PASS_S_MAX, Quotas
from broker.net.request import HANG_UP, NO_ANSWER, PendingRequest, Requester
from broker.net.route import OnAnswer, Route
from broker.net.sockets import Bound
from broker.net.throttling import Throttling
from broker.net.timers import ServerTimers
from broker.net.tls.handshakes import HandshakeQueue
from broker.observe.events import PeerFault, ShellEvent
from broker.observe.stats import LoopStalls
from config.limits import ServerLimits
from coordinator.decision_failed import AnswerPending
from protocol.codec import RequestDecoder, encode_response
from protocol.messages import Response
from seams.next_deadline import unwatched
from seams.now import Now
from seams.reply_token import ReplyToken

SWEEP_MS_MAX: Final = 10_000
SWEEP_MS_MIN: Final = 50

AuthenticationFailed = Callable[[Connection, PeerFault, str], bool]
"""Takes a failed authentication; True if its line in the log is the one of the audit."""

_AUDITED_FAULTS: Final = frozenset(
    {
        PeerFault.AUTHENTICATION,
        PeerFault.NOT_AUTHENTICATED,
        PeerFault.SESSION_EXPIRED,
        PeerFault.TLS,
        PeerFault.TOO_SLOW,
    }
)


class Server:
    """All connections."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: SystemClock,
        limits: ServerLimits,
        observe: Callable[[ShellEvent], None],
        stopwatch: Callable[[], float] = perf_counter,
    ) -> None:
        """`stopwatch` is in seconds; a turn ends by it."""
        self.stopwatch = stopwatch
        self.throttling = Throttling(clock, stopwatch, limits.client_quotas)
        self._loop = loop
        self._limits = limits
        self._observe = observe
        self._acceptor = Acceptor(loop)
        self._to_flush: deque[Connection] = deque()
        self._postponed: OrderedDict[Connection, None] = OrderedDict()  # they wait for a turn
        self.turns_resumed = 0  # of those that waited
        self._is_flush_due = False
        self._pass_s = 0.0  # the turns of this pass over the sockets
        self.is_pass_over = False  # the next connections with bytes wait for the next pass
        self._slots = ConnectionSlots(limits, self._allowed)
        self._next_sweep_ms: int | None = None
        self._empty: asyncio.Event | None = None  # set when a drain is done
        self.clock = clock
        self.connections: set[Connection] = set()
        self.fault_log = FaultLog()
        self.connections_made = 0
        self.produce_max_bytes = limits.socket_request_max_bytes
        self.request_max_bytes = limits.request_max_bytes
        self.quotas = Quotas(limits)
        self.access: Mapping[
            str, ListenerAccess
        ] = {}  # by listener; what is missing is OPEN_ACCESS
        self.handshakes = HandshakeQueue(loop.call_soon, stopwatch)
        self._timers = ServerTimers()
        self.connections_allowed: Callable[[], int] = lambda: self._limits.max_connections
        self._on_earlier: Callable[[], None] = unwatched  # a deadline became earlier
        # What the audit log needs to know.
        self.on_authentication_failure: AuthenticationFailed | None = None
        self.stalls = LoopStalls()
        self.latest_route: Route | None = None  # of the newest request: what a long turn did
        self.routes: dict[int, Route] = {}
        self.decoder = RequestDecoder(self.routes)
        self.unserved_api_versions: Route

    async def serve(self, dispatcher: Dispatcher, listeners: Sequence[Bound]) -> None:
        """Begin to accept; what the kernel accepted since the sockets were bound comes first."""
        self.use(dispatcher)
        for listener in listeners:
            for sock in listener.sockets:
                backlog = self._limits.socket_listen_backlog_size
                await self._acceptor.add(sock, partial(self._accept, listener), backlog)

    def _accept(self, listener: Bound) -> asyncio.Protocol:
        access = self.access.get(listener.name, OPEN_ACCESS)
        connection = Connection(self, listener, access)
        if access.tls is None:
            return connection
        return access.tls.channel(connection, self.handshakes)

    def set_limits(self, limits: ServerLimits) -> None:
        """Connections that are served stay; of the others as many are served as there is room for.

        `max.connection*` can be changed while the broker runs; the other limits are those of the
        start.
        """
        self._limits = limits
        self._slots.set_limits(limits)
        self._give_slots()

    def use(self, dispatcher: Dispatcher) -> None:
        """From now on requests have a handler, and idle connections are closed."""
        self.routes = {int(api_key): route for api_key, route in dispatcher.routes.items()}
        self.decoder = RequestDecoder(self.routes)
        self.unserved_api_versions = dispatcher.unserved_api_versions
        self._next_sweep_ms = self.clock.now().mono_ms + self._sweep_every_ms
        self._on_earlier()

    # Answers.

    def reply(self, token: ReplyToken, response: Response | None) -> None:
        """The core's answer, once for each token; None where the request wants no answer."""
        assert isinstance(token, PendingRequest)
        connection = token.connection
        if token.answer is not None:
            is_given_up = connection.closing or connection.lost or token.answer is HANG_UP
            assert is_given_up, "a request was answered twice"
            return  # It was given up when the connection was, or its handler had failed.
        route = token.route
        stats = route.stats
        stats.seconds.add(self.stopwatch() - token.started_s)
        cost = token.cost
        if cost is not None:
            response = self.throttling.answering(token, response)
        if response is None:
            connection.answered(token, NO_ANSWER)
            return
        if route.on_answer is not None:
            self._follow(route.on_answer, token, response)
        codes = errors_in(response)
        if codes:
            stats.erred(codes)
        try:
            answer = encode_response(
                route.api_key, token.api_version, token.correlation_id, response
            )
        except Exception as error:  # noqa: BLE001 - the core's turn must not suffer for it
            self.failed(token, error)
            return
        connection.answered(token, answer)
        if cost is not None:
            self.throttling.answered(token)

    def _follow(self, on_answer: OnAnswer, token: PendingRequest, response: Response) -> None:
        try:
            on_answer(token, response)
        except Exception as error:  # noqa: BLE001 - the client gets its answer all the same
            self._part_failed("audit", token.connection, error)

    def failed(self, token: PendingRequest, error: Exception) -> None:
        """A handler raised: our bug. The connection is closed, so that the client does not wait."""
        is_answer_to_come = isinstance(error, AnswerPending)
        if isinstance(error, AnswerPending):
            error = error.failure
        token.route.stats.failures += 1
        connection = token.connection
        event = self.fault_log.request_failure(
            token.route.api_key.name,
            token.api_version,
            connection.host,
            connection.peer,
            error,
            self.clock.now().mono_ms,
        )
        if event is not None:
            self._observe(event)
        if token.answer is None and not is_answer_to_come:
            connection.answered(token, HANG_UP)

    def hang_up(self, token: ReplyToken) -> None:
        """Close the connection instead of an answer, where the request wants none (acks=0)."""
        assert isinstance(token, PendingRequest)
        if token.answer is None:
            token.connection.answered(token, HANG_UP)

    def disconnected(self, token: PendingRequest, now: Now) -> None:
        """The client of this request is gone."""
        disconnected = token.route.disconnected
        if disconnected is None:
            return
        try:
            disconnected(token, now)
        except Exception as error:  # noqa: BLE001 - as above
            self._part_failed("disconnected", token.connection, error)

    def fetch_answer_max_bytes(self) -> int:
        """Bytes of records that one Fetch answer may have now; any thread may call it."""
        return self.quotas.unsent.answer_max(len(self.connections))

    # Turns.

    def flush_soon(self, connection: Connection) -> None:
        """Have `connection.flush` called once this turn of the loop is over."""
        self._to_flush.append(connection)
        self._schedule_flush()

    def postpone(self, connection: Connection) -> None:
        """Its turn is in the next pass, before those that had one in this pass have another."""
        self._postponed[connection] = None
        self._schedule_flush()

    @property
    def turns_postponed(self) -> int:
        """Connections whose bytes have arrived, and that wait for a turn."""
        return len(self._postponed)

    def _schedule_flush(self) -> None:
        if not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Write the collected answers of all; then run the postponed turns, in their order.

        Of both, as many as there is time for before the sockets are polled again.
        """
        self._is_flush_due = False
        self._pass_s = 0.0  # the pass over the sockets is over
        self.is_pass_over = False
        began_s = self.stopwatch()
        ends_s = began_s + FLUSH_S_MAX
        closed = 0
        for _ in range(len(self._to_flush)):
            connection = self._to_flush.popleft()
            closed += connection.closing
            try:
                if connection.flush():
                    self._postponed[connection] = None
            except Exception as error:  # noqa: BLE001 - one client's fault must not reach another
                self.turn_failed(connection, error)
            if closed >= CLOSED_A_FLUSH_MAX or self.stopwatch() >= ends_s:
                break
        self._run_postponed(began_s + PASS_S_MAX)
        if self._to_flush or self._postponed:
            self._schedule_flush()

    def _run_postponed(self, ends_s: float) -> None:
        for _ in range(len(self._postponed)):
            connection, _ = self._postponed.popitem(last=False)
            self.turns_resumed += 1
            try:
                connection.resume()
            except Exception as error:  # noqa: BLE001 - as above
                self.turn_failed(connection, error)
            if self.stopwatch() >= ends_s:
                return

    def turn_failed(self, connection: Connection, error: Exception) -> None:
        """A turn raised outside of any handler: the connection cannot be relied on any more."""
        self._part_failed("connection", connection, error)
        connection.abort()

    def _part_failed(self, part: str, connection: Requester, error: Exception) -> None:
        now_ms = self.clock.now().mono_ms
        self._observe(self.fault_log.part_failure(part, connection.host, error, now_ms))

    # Connections.

    def admit(self, connection: Connection) -> None:
        """Take a new connection, let it wait until it has a slot, or refuse it."""
        now_ms = self.clock.now().mono_ms
        self.connections_made += 1
        self.connections.add(connection)
        connection.active_ms = now_ms
        if self.throttling.limits_connections and self._is_too_fast(connection):
            return
        refusal = self._slots.admit(connection, now_ms)
        if refusal is None:
            return
        self.report_fault(refusal.fault, connection, refusal.detail)
        if refusal.must_close:
            connection.hang_up()
        else:
            self._on_earlier()  # a slot may become free by time alone

    def _is_too_fast(self, connection: Connection) -> bool:
        """Whether its address opens connections faster than its quota: it will be closed."""
        kept_max = self._limits.socket_listen_backlog_size
        throttle_ms = self.throttling.refuse_for(connection, kept_max)
        if throttle_ms is None:
            return False
        detail = f"new connections from {connection.host} are over their quota"
        self.report_fault(PeerFault.OVER_IP_QUOTA, connection, detail)
        if not throttle_ms:
            connection.hang_up()
        return True

    def _allowed(self) -> int:
        return self.connections_allowed()

    def forget(self, connection: Connection) -> None:
        """A connection is over; the next one that waits takes its slot."""
        self.connections.discard(connection)
        self.quotas.request_bytes.forget(connection)
        if connection in self._postponed:
            del self._postponed[connection]
            self.turns_resumed += 1  # as good as
        if not self.throttling.forget(connection):
            self._slots.forget(connection)
        if self._empty is not None and not self.connections:
            self._empty.set()
        self._give_slots()

    def _give_slots(self) -> None:
        self._slots.give_slots(self.clock.now().mono_ms)
        if self._slots.waiting:
            self._on_earlier()  # when the next one gets a slot may have changed

    def report_fault(self, fault: PeerFault, connection: Connection, detail: str) -> None:
        """Count a fault, and log it unless the same host did the same just now."""
        audit = self.on_authentication_failure
        if fault in _AUDITED_FAULTS and audit is not None and audit(connection, fault, detail):
            self.fault_log.counts[fault] += 1
            return
        now_ms = self.clock.now().mono_ms
        event = self.fault_log.peer_fault(fault, connection.host, connection.peer, detail, now_ms)
        if event is not None:
            self._observe(event)

    def count_turn(self, seconds: float) -> None:
        """A turn for bytes that have just arrived: the others of this pass may have to wait."""
        self._pass_s += seconds
        if self._pass_s >= PASS_S_MAX and not self.is_pass_over:
            self.is_pass_over = True
            self._schedule_flush()

    def turn_was_long(self, seconds: float) -> None:
        """Count a turn of one connection that blocked all others."""
        route = self.latest_route
        kind = "connection" if route is None else route.api_key.name.title().replace("_", "")
        self.stalls.record(kind, seconds)

    # Time.

    @property
    def _sweep_every_ms(self) -> int:
        idle_ms = self._limits.connections_max_idle_ms
        shortest_ms = self._limits.authentication_timeout_ms if self.access else idle_ms
        if idle_ms > 0:
            shortest_ms = min(shortest_ms, idle_ms)
        if shortest_ms <= 0:
            return SWEEP_MS_MAX
        return max(SWEEP_MS_MIN, min(shortest_ms // 4, SWEEP_MS_MAX))

    @property
    def next_deadline_ms(self) -> int | None:
        due_ms = [self._timers.next_ms, self._next_sweep_ms]
        if self._next_sweep_ms is not None and self._slots.waiting:
            due_ms.append(self._slots.next_slot_ms(self.clock.now().mono_ms))
        if self.throttling.deadlines:
            due_ms.append(self.throttling.deadlines[0][0])
        return min((each_ms for each_ms in due_ms if each_ms is not None), default=None)

    def watch_deadline(self, on_earlier: Callable[[], None]) -> None:
        """`on_earlier` is called whenever `next_deadline_ms` may have become earlier."""
        self._on_earlier = self.throttling.on_earlier = on_earlier

    def after_failure(self, run: Callable[[], None]) -> None:
        """Have `run` called once the delay of failed authentications is over."""
        due_ms = self.clock.now().mono_ms + self._limits.failed_authentication_delay_ms
        self._timers.add(due_ms, run)
        self._on_earlier()

    def tick(self, now: Now) -> None:
        self._timers.tick(now)
        self._slots.give_slots(now.mono_ms)
        self.throttling.tick(now)
        if self._next_sweep_ms is not None and now.mono_ms < self._next_sweep_ms:
            return
        self._next_sweep_ms = now.mono_ms + self._sweep_every_ms
        self.throttling.expire(now)
        for connection in tuple(self.connections):
            limits = self._limits
            connection.sweep(now, limits.connections_max_idle_ms, limits.authentication_timeout_ms)

    # The end.

    def stop_accepting(self) -> None:
        self._acceptor.stop_accepting()

    def finish_all(self) -> None:
        """Handle no more requests; close each connection once its answers are written."""
        for connection in tuple(self.connections):
            connection.finish()

    async def drain(self, timeout_s: float) -> None:
        """Wait until all connections are closed, then cut off those that are not."""
        self.finish_all()
        if self.connections:
            self._empty = asyncio.Event()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._empty.wait(), timeout_s)
        for connection in tuple(self.connections):
            connection.abort()
        self._acceptor.close()
        self._next_sweep_ms = None
