"""Throttling: measures what the requests of clients cost, and mutes connections by their quotas.

A connection calls `begin` and `handled` around each request, and `Server.reply` calls `answering`
and `answered` around its answer. A client over a quota gets its answer at once, with the throttle
time, and its connection is muted for that long: nothing that it sends is handled (KIP-219). The
cost of a request is the time in which it kept the only thread from all others: decoding, its
handler, encoding its answer. A client with a quota of this time has one request at a time on each
connection and in each turn, as every client has in Kafka. Otherwise one that pipelines could use
all that its quota allows within ten seconds at once, and in the journal as well.

Without quotas nothing is measured. No loop: the server's tick unmutes.
Kafka's counterparts: `RequestHandlerHelper`, the throttled channels of `ClientQuotaManager` and
`SocketServer`.
"""

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final, Protocol

from msgspec.structs import replace

from broker.loop.clock import SystemClock
from broker.net.request import PendingRequest, RequestCost
from protocol.messages import Response
from protocol.names import ApiKey
from seams.client_throttle import UNLIMITED_BYTES, ClientThrottle
from seams.next_deadline import unwatched
from seams.now import Now
from seams.reply_token import ReplyToken
from security.quotas.client_quotas import (
    PERCENT_PER_SECOND,
    ClientQuota,
    ConnectionRates,
    MutationQuota,
)
from security.quotas.limits import QuotaKey, QuotaTable, ip_limits, limits_of_key
from security.quotas.settings import ClientQuotaSettings

_OUTDATED_MAX: Final = 64
"""Entries of the heap that belong to closed connections, or to as many as are muted."""

_EXEMPT: Final = frozenset((ApiKey.WRITE_TXN_MARKERS,))
"""Requests between brokers. The time of these is counted, and not limited."""


class Mutable(Protocol):
    """A connection, as far as it is muted."""

    host: str

    def mute(self) -> None:
        """Handle nothing more until `unmute`."""

    def unmute(self) -> None: ...

    def wait_for_slot(self) -> None: ...

    def hang_up(self) -> None: ...


class Expiring(Protocol):
    """Measures of any kind."""

    def expire(self, now_ms: int, /) -> None: ...


class Throttling(ClientThrottle):
    """The quotas in effect, and the connections that are muted now.

    `is_active`: there is a quota of users or client ids. `is_timed`: one of request_percentage.
    """

    def __init__(
        self, clock: SystemClock, stopwatch: Callable[[], float], settings: ClientQuotaSettings
    ) -> None:
        window, measures_max = settings.window, settings.measures_max
        self._clock = clock
        self._stopwatch = stopwatch
        self._until_ms: dict[Mutable, int] = {}  # of muted connections
        self._refused_until_ms: dict[Mutable, int] = {}  # then closed: new ones beyond their rate
        self._numbers = count()
        self.deadlines: list[tuple[int, int, Mutable]] = []  # a heap; it may have outdated ones
        self.on_earlier: Callable[[], None] = unwatched  # one was added
        self.is_active = self.is_timed = self.limits_connections = False
        self.exempt_seconds = 0.0
        self.rates = {
            QuotaKey.PRODUCE: ClientQuota(window, measures_max),
            QuotaKey.FETCH: ClientQuota(window, measures_max),
            QuotaKey.REQUEST: ClientQuota(window, measures_max, window.size_ms),
        }
        self.mutations = MutationQuota(settings.controller_window, measures_max)
        self.connections = ConnectionRates(window, measures_max)

    def use(self, table: QuotaTable) -> None:
        """Quotas were read or changed: they hold for open connections from now on."""
        for key, quota in self.rates.items():
            quota.use(limits_of_key(table, key))
        self.mutations.use(limits_of_key(table, QuotaKey.CONTROLLER_MUTATION))
        self.connections.use(ip_limits(table))
        self.is_timed = self.rates[QuotaKey.REQUEST].is_enabled
        self.is_active = self.mutations.is_enabled or any(
            quota.is_enabled for quota in self.rates.values()
        )
        self.limits_connections = self.connections.is_enabled

    @property
    def muted(self) -> int:
        """Connections that are muted now."""
        return len(self._until_ms)

    # Around a request.

    def begin(self, token: PendingRequest, began_s: float) -> None:
        """A request is about to be handled; it was taken up at `began_s` of the stopwatch."""
        is_limited = self.rates[QuotaKey.REQUEST].limits_client(
            token.principal.name, token.client_id
        )
        token.cost = RequestCost(began_s, is_limited=is_limited)

    def handled(self, token: PendingRequest) -> bool:
        """Its handler has returned. What it cost so far is checked with its answer.

        True: the turn of the connection ends, and the next request waits for this answer. So a
        client that has not used its quota of late does not use all of it in one turn.
        """
        cost = token.cost
        assert cost is not None
        cost.is_in_handler = False
        if self.is_timed:
            self._stop_time(token, cost)
        return cost.is_limited

    def _stop_time(self, token: PendingRequest, cost: RequestCost) -> None:
        seconds = self._stopwatch() - cost.began_s
        if token.answer is not None:
            self._count(token, seconds)
        else:
            cost.seconds = seconds

    def answering(self, token: PendingRequest, response: Response | None) -> Response | None:
        """Its answer is there, not encoded yet: the same with the throttle time."""
        cost = token.cost
        assert cost is not None
        if token.route.api_key is ApiKey.PRODUCE:
            self._check(token, cost, QuotaKey.PRODUCE, float(token.size_bytes))
        if response is not None:  # without an answer (acks=0) a client would not know why it waits
            self._check_time_so_far(token, cost)
        if not cost.is_in_handler:
            cost.began_s = self._stopwatch()
        if not cost.throttle_ms:
            return response
        self._report(token, cost)
        self._mute(token.connection, cost.throttle_ms)
        if response is None or not hasattr(response, "throttle_time_ms"):
            return response
        return replace(response, throttle_time_ms=cost.throttle_ms)

    def answered(self, token: PendingRequest) -> None:
        """The answer is encoded, for a request whose handler has returned before."""
        cost = token.cost
        if self.is_timed and cost is not None and not cost.is_in_handler:
            self._count(token, self._stopwatch() - cost.began_s)

    def _check_time_so_far(self, token: PendingRequest, cost: RequestCost) -> None:
        if not self.is_timed or cost.is_time_checked:
            return
        seconds = cost.seconds
        if cost.is_in_handler:
            seconds = self._stopwatch() - cost.began_s
            cost.began_s += seconds
        self._check_time(token, cost, seconds)

    def _check_time(self, token: PendingRequest, cost: RequestCost, seconds: float) -> None:
        cost.is_time_checked = True
        if token.route.api_key in _EXEMPT:
            self.exempt_seconds += seconds
        else:
            self._check(token, cost, QuotaKey.REQUEST, seconds * PERCENT_PER_SECOND)

    def _check(self, token: PendingRequest, cost: RequestCost, key: QuotaKey, value: float) -> None:
        now_ms = self._clock.now().mono_ms
        user, client_id = token.principal.name, token.client_id
        throttle_ms = self.rates[key].record(user, client_id, value, now_ms)
        if throttle_ms > cost.throttle_ms:
            cost.throttle_ms, cost.throttled_by = throttle_ms, key

    def _count(self, token: PendingRequest, seconds: float) -> None:
        """What its answer cost, without a check: Kafka's time of the network thread."""
        if token.route.api_key in _EXEMPT:
            self.exempt_seconds += seconds
            return
        now_ms = self._clock.now().mono_ms
        self.rates[QuotaKey.REQUEST].record_unchecked(
            token.principal.name, token.client_id, seconds * PERCENT_PER_SECOND, now_ms
        )

    def _report(self, token: PendingRequest, cost: RequestCost) -> None:
        """For the metrics."""
        now_ms = self._clock.now().mono_ms
        user, client_id = token.principal.name, token.client_id
        if cost.throttled_by == QuotaKey.CONTROLLER_MUTATION:
            self.mutations.measure(user, client_id, now_ms).throttle(cost.throttle_ms)
        else:
            quota = self.rates[QuotaKey(cost.throttled_by)]
            quota.measure(user, client_id, now_ms).throttle(cost.throttle_ms)

    # What handlers ask.

    def fetch_max_bytes(self, token: ReplyToken, /) -> int:
        if not self.is_active:
            return UNLIMITED_BYTES
        fetch, now_ms = self.rates[QuotaKey.FETCH], self._clock.now().mono_ms
        return int(
            min(fetch.max_in_window(token.principal.name, token.client_id, now_ms), UNLIMITED_BYTES)
        )

    def must_fetch_nothing(self, token: ReplyToken, size: Callable[[], int], /) -> bool:
        """Kafka checks the time of the request here too: a throttled Fetch is always empty."""
        assert isinstance(token, PendingRequest)
        cost = token.cost
        if cost is None:
            return False
        self._check_time_so_far(token, cost)
        fetch = self.rates[QuotaKey.FETCH]
        value = float(size()) if fetch.is_enabled else 0.0
        self._check(token, cost, QuotaKey.FETCH, value)
        if not cost.throttle_ms:
            return False
        fetch.record_unchecked(
            token.principal.name, token.client_id, -value, self._clock.now().mono_ms
        )
        return True

    def may_mutate(self, token: ReplyToken, partitions: int, /, *, is_strict: bool) -> bool:
        assert isinstance(token, PendingRequest)
        cost = token.cost
        if cost is None:
            return True
        now_ms = self._clock.now().mono_ms
        may, throttle_ms = self.mutations.record(
            token.principal.name, token.client_id, partitions, now_ms, is_strict=is_strict
        )
        if throttle_ms > cost.throttle_ms:
            cost.throttle_ms, cost.throttled_by = throttle_ms, QuotaKey.CONTROLLER_MUTATION
        return may

    # Connections.

    def refuse_for(self, connection: Mutable, kept_max: int) -> int | None:
        """For how long a new connection is kept unserved, before it is closed.

        None: it is accepted. 0: it is closed now, because so many are kept already. Kafka does the
        same: a client that is closed at once would only connect again.
        """
        now_ms = self._clock.now().mono_ms
        throttle_ms = self.connections.record(connection.host, now_ms)
        if throttle_ms <= 0:
            return None
        kept = len(self._refused_until_ms) < kept_max
        until_ms = self._refused_until_ms[connection] = now_ms + throttle_ms
        if not kept:
            return 0
        self._add_deadline(until_ms, connection)
        connection.wait_for_slot()
        return throttle_ms

    def forget(self, connection: Mutable) -> bool:
        """The connection is over. True: it had been refused, and never had a slot."""
        self._until_ms.pop(connection, None)
        return self._refused_until_ms.pop(connection, None) is not None

    def _mute(self, connection: Mutable, throttle_ms: int) -> None:
        until_ms = self._clock.now().mono_ms + throttle_ms
        if until_ms <= self._until_ms.get(connection, -1):
            return
        self._until_ms[connection] = until_ms
        self._add_deadline(until_ms, connection)
        connection.mute()

    def _add_deadline(self, until_ms: int, connection: Mutable) -> None:
        """A throttle may be long: what belongs to closed connections must not pile up."""
        heappush(self.deadlines, (until_ms, next(self._numbers), connection))
        self.on_earlier()
        live = len(self._until_ms) + len(self._refused_until_ms)
        if len(self.deadlines) > 2 * live + _OUTDATED_MAX:
            self.deadlines = [entry for entry in self.deadlines if self._is_due_at(*entry)]
            heapify(self.deadlines)

    def _is_due_at(self, until_ms: int, _number: int, connection: Mutable) -> bool:
        return until_ms in (self._until_ms.get(connection), self._refused_until_ms.get(connection))

    # Time.

    def tick(self, now: Now) -> None:
        """Unmute those whose time is up."""
        while self.deadlines and self.deadlines[0][0] <= now.mono_ms:
            until_ms, _, connection = heappop(self.deadlines)
            if self._until_ms.get(connection) == until_ms:
                del self._until_ms[connection]
                connection.unmute()
            elif self._refused_until_ms.get(connection) == until_ms:
                connection.hang_up()

    def expire(self, now: Now) -> None:
        """Forget measures that are idle; to be called now and then."""
        measures: list[Expiring] = [quota.measures for quota in self.rates.values()]
        for each in (*measures, self.mutations.measures, self.connections.measures):
            each.expire(now.mono_ms)
