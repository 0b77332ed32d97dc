"""Who is connected? The listeners, their connections, and the limits on all of them together.

Stands between the sockets and the cores: hands a core's answer to the connection that asked,
gathers what many connections have to write after one turn (a rebalance, a flush of the journal)
and writes it once for each. Closes whom `connections.max.idle.ms` and the other limits close.
Kafka's counterpart: `SocketServer`, `ConnectionQuotas`.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from time import perf_counter
from typing import Final

from broker.loop.clock import SystemClock
from broker.net.connection import Connection
from broker.net.dispatch import Dispatcher, Route
from broker.net.error_codes import errors_in
from broker.net.fault_log import FaultLog
from broker.net.request import HANG_UP, NO_ANSWER, PendingRequest
from broker.net.sockets import Bound
from broker.net.unsent_bytes import Unsent
from broker.observe.events import PeerFault, ShellEvent
from broker.observe.stats import LoopStalls
from config.limits import ServerLimits
from coordinator.decision_failed import AnswerPending
from protocol.codec import encode_response
from protocol.messages import Response
from seams.now import Now
from seams.reply_token import ReplyToken

SWEEP_MS_MAX: Final = 10_000
SWEEP_MS_MIN: Final = 50

PASS_S_MAX: Final = 0.005
"""For the turns of all connections that were put off; then the sockets are looked at again. So who
comes with one request waits no longer than this, however many have sent a heap of them."""


class Server:
    """All connections. `turned` is called after every turn, so that new deadlines are noticed."""

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
        self._loop = loop
        self._limits = limits
        self._observe = observe
        self._servers: list[asyncio.Server] = []
        self._touched: list[Connection] = []
        self._put_off: OrderedDict[Connection, None] = OrderedDict()  # they wait for a turn
        self._is_flush_due = False
        self._held_back: dict[Connection, None] = {}
        self._waiting: deque[Connection] = deque()  # beyond max.connections
        self._by_host: dict[str, int] = {}
        self._next_sweep_ms: int | None = None
        self._empty: asyncio.Event | None = None  # set when a drain is done
        self.clock = clock
        self.connections: set[Connection] = set()
        self.fault_log = FaultLog()
        self.connections_made = 0
        self.produce_max_bytes = limits.socket_request_max_bytes
        self.request_max_bytes = limits.request_max_bytes
        self.unsent = Unsent(
            limits.connection_unsent_max_bytes, limits.connections_unsent_max_bytes
        )
        self.limits_queue = limits.queued_max_request_bytes > 0
        self.queued_bytes = 0  # see `count`
        self.places: Callable[[], int] = lambda: limits.max_connections  # as descriptors allow
        self.turned: Callable[[], None] = _nothing
        self.stalls = LoopStalls()
        self.latest_route: Route | None = None  # what a turn that takes long was busy with
        self.routes: dict[int, Route] = {}
        self.unserved_api_versions: Route

    async def serve(self, dispatcher: Dispatcher, listeners: Sequence[Bound]) -> None:
        """Begin to accept; what the kernel accepted since the sockets were bound comes first."""
        self.use(dispatcher)
        for listener in listeners:
            for sock in listener.sockets:
                self._servers.append(
                    await self._loop.create_server(
                        partial(Connection, self, listener),
                        sock=sock,
                        backlog=self._limits.socket_listen_backlog_size,
                    )
                )

    def use(self, dispatcher: Dispatcher) -> None:
        """From now on requests have somewhere to go, and silent connections are looked for."""
        self.routes = {int(api_key): route for api_key, route in dispatcher.routes.items()}
        self.unserved_api_versions = dispatcher.unserved_api_versions
        self._next_sweep_ms = self.clock.now().mono_ms + self._sweep_every_ms

    # Answers.

    def reply(self, token: ReplyToken, response: Response | None) -> None:
        """The core's answer, once for each token; None where the request wants no answer."""
        assert isinstance(token, PendingRequest)
        connection = token.connection
        if token.answer is not None:
            is_given_up = connection.closing or connection.lost or token.answer is HANG_UP
            assert is_given_up, "a request was answered twice"
            return  # It was given up when the connection was, or its handler had failed.
        stats = token.route.stats
        stats.seconds.add(self.stopwatch() - token.started_s)
        if response is None:
            connection.answered(token, NO_ANSWER)
            return
        codes = errors_in(response)
        if codes:
            stats.erred(codes)
        try:
            answer = encode_response(
                token.route.api_key, token.api_version, token.correlation_id, response
            )
        except Exception as error:  # noqa: BLE001 - the core's turn must not suffer for it
            self.failed(token, error)
            return
        connection.answered(token, answer)

    def failed(self, token: PendingRequest, error: Exception) -> None:
        """A handler raised: that is our mistake. The client is cut off rather than left waiting."""
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
        """In place of an answer where none is wanted, to somebody who must look again."""
        assert isinstance(token, PendingRequest)
        if token.answer is None:
            token.connection.answered(token, HANG_UP)

    def disconnected(self, token: PendingRequest, now: Now) -> None:
        """Whoever waits for this answer is gone."""
        core = token.route.core
        if core is None:
            return
        try:
            core.disconnected(token, now)
        except Exception as error:  # noqa: BLE001 - as above
            self._part_failed("disconnected", token.connection, error)

    def release(self, token: PendingRequest) -> None:
        """An answered request leaves the queue of its connection."""
        if not token.is_counted:
            return
        self.queued_bytes -= token.size_bytes
        if self._held_back and not self.is_full:
            held_back, self._held_back = self._held_back, {}
            for connection in held_back:
                self.touch(connection)

    @property
    def is_full(self) -> bool:
        return self.limits_queue and self.queued_bytes > self._limits.queued_max_request_bytes

    def count(self, token: PendingRequest) -> None:
        """A request's bytes count until its answer leaves.

        Not those of one that waits for people, or members that wait for each other would make the
        server deaf to all others. Kafka counts no request any more once it is parsed.
        """
        token.is_counted = True
        self.queued_bytes += token.size_bytes

    def hold_back(self, connection: Connection) -> None:
        """queued.max.request.bytes is reached: look at nothing more until there is room."""
        self._held_back[connection] = None

    def touch(self, connection: Connection) -> None:
        """Have `connection.flush` called once this turn of the loop is over."""
        self._touched.append(connection)
        self._flush_soon()

    def _flush_soon(self) -> None:
        if not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Write what has gathered for all; then the turns that were put off, in their order."""
        self._is_flush_due = False
        touched, self._touched = self._touched, []
        for connection in touched:
            try:
                if connection.flush():
                    self._put_off[connection] = None
            except Exception as error:  # noqa: BLE001 - one client's fault must not reach another
                self.turn_failed(connection, error)
        self._go_on()
        if self._put_off:
            self._flush_soon()
        self.turned()

    def _go_on(self) -> None:
        ends_s = self.stopwatch() + PASS_S_MAX
        for _ in range(len(self._put_off)):
            connection, _ = self._put_off.popitem(last=False)
            try:
                connection.go_on()
            except Exception as error:  # noqa: BLE001 - as above
                self.turn_failed(connection, error)
            if self.stopwatch() >= ends_s:
                return

    def turn_failed(self, connection: Connection, error: Exception) -> None:
        """A turn raised outside of any handler: the connection cannot be relied on any more."""
        self._part_failed("connection", connection, error)
        connection.abort()

    def _part_failed(self, part: str, connection: Connection, error: Exception) -> None:
        now_ms = self.clock.now().mono_ms
        self._observe(self.fault_log.part_failure(part, connection.host, error, now_ms))

    # Connections.

    def admit(self, connection: Connection) -> None:
        """Take a new connection, let it wait for its turn, or refuse it."""
        host = connection.host
        self.connections_made += 1
        self.connections.add(connection)
        count = self._by_host[host] = self._by_host.get(host, 0) + 1
        connection.active_ms = self.clock.now().mono_ms
        limits = self._limits
        if count > limits.max_connections_by_ip.get(host, limits.max_connections_per_ip):
            self.report_fault(
                PeerFault.TOO_MANY_PER_IP, connection, f"{count - 1} connections from {host}"
            )
            connection.hang_up()
            return
        served, most = len(self.connections) - len(self._waiting), self._connections_max
        if served <= most:
            return
        # Kafka leaves it in the kernel's queue, which is as long as this one.
        words = f"{most} connections"
        if most < limits.max_connections:
            words += "; the other file descriptors (ulimit -n) are for the log's files"
        self.report_fault(PeerFault.TOO_MANY, connection, words)
        if len(self._waiting) < limits.socket_listen_backlog_size:
            self._waiting.append(connection)
            connection.wait_for_place()
        else:
            connection.hang_up()

    @property
    def _connections_max(self) -> int:
        return min(self._limits.max_connections, self.places())

    def forget(self, connection: Connection) -> None:
        """A connection is over; the next one that waits takes its place."""
        self.connections.discard(connection)
        self._held_back.pop(connection, None)
        self._put_off.pop(connection, None)
        count = self._by_host.get(connection.host, 1) - 1
        if count > 0:
            self._by_host[connection.host] = count
        else:
            self._by_host.pop(connection.host, None)
        if self._empty is not None and not self.connections:
            self._empty.set()
        if connection in self._waiting:
            self._waiting.remove(connection)
        self._give_places()

    def _give_places(self) -> None:
        """To those that wait, as many as there are: deleted topics leave descriptors, too."""
        while self._waiting:
            served = len(self.connections) - len(self._waiting)
            if served >= self._connections_max:
                return
            self._waiting.popleft().take_place()

    def report_fault(self, fault: PeerFault, connection: Connection, detail: str) -> None:
        """Count a fault, and tell the log unless the same host did the same just now."""
        now_ms = self.clock.now().mono_ms
        event = self.fault_log.peer_fault(fault, connection.host, connection.peer, detail, now_ms)
        if event is not None:
            self._observe(event)

    def turn_was_long(self, seconds: float) -> None:
        """Count a turn of one connection that kept all others waiting."""
        route = self.latest_route
        kind = "connection" if route is None else route.api_key.name.title().replace("_", "")
        self.stalls.record(kind, seconds)

    # Time.

    @property
    def _sweep_every_ms(self) -> int:
        idle_ms = self._limits.connections_max_idle_ms
        return max(SWEEP_MS_MIN, min(idle_ms // 4, SWEEP_MS_MAX)) if idle_ms > 0 else SWEEP_MS_MAX

    @property
    def next_deadline_ms(self) -> int | None:
        return self._next_sweep_ms

    def tick(self, now: Now) -> None:
        self._next_sweep_ms = now.mono_ms + self._sweep_every_ms
        self._give_places()
        for connection in tuple(self.connections):
            connection.sweep(now, self._limits.connections_max_idle_ms)

    # The end.

    def stop_accepting(self) -> None:
        for server in self._servers:
            server.close()

    def finish_all(self) -> None:
        """Look at no more requests; close each connection once its answers are written."""
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
        self._next_sweep_ms = None


def _nothing() -> None:
    pass
