"""Client quotas: records what clients use, and says for how long a client is throttled.

One `ClientQuota` for each kind: produced bytes, fetched bytes, time of requests. `MutationQuota`
counts partitions that are created or deleted; `ConnectionRates` new connections by address. A
measure that was not used for an hour is forgotten. Beyond a limit the least recently used one is,
which can only be in favour of its clients. Pure: each call has the time.
Kafka's counterparts: `ClientQuotaManager`, `ClientRequestQuotaManager`,
`ControllerMutationQuotaManager`, the rates by address of `ConnectionQuotas`.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

from security.quotas.limits import (
    ENTITY_NAME_MAX,
    NO_LIMITS,
    UNLIMITED,
    ClientLimits,
    IpLimits,
    SharedBy,
)
from security.quotas.rate import QuotaWindow, Rate, TokenBucket

MEASURE_IDLE_MS: Final = 3_600_000
"""As in Kafka."""

PERCENT_PER_SECOND: Final = 100.0
"""A thread that is busy for the whole time: request_percentage is a part of it."""

_INT_MAX: Final = 2_147_483_647

StatT = TypeVar("StatT")
KeyT = TypeVar("KeyT")


class Measure(Generic[StatT]):
    """What the clients that share a quota have used."""

    __slots__ = ("limit", "stat", "throttled", "throttled_ms", "used_ms")

    def __init__(self, stat: StatT, limit: float) -> None:
        self.stat = stat
        self.limit = limit
        self.used_ms = 0
        self.throttled = 0  # how often
        self.throttled_ms = 0  # the sum

    def throttle(self, throttle_ms: int) -> None:
        """Count it for the metrics."""
        self.throttled += 1
        self.throttled_ms += throttle_ms


class Measures(Generic[KeyT, StatT]):
    """All measures of one kind, the least recently used one first."""

    def __init__(self, measures_max: int, new_stat: Callable[[], StatT]) -> None:
        self._measures_max = measures_max
        self._new_stat = new_stat
        self._by_key: OrderedDict[KeyT, Measure[StatT]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_key)

    def newest_first(self) -> Iterator[tuple[KeyT, Measure[StatT]]]:
        """Those that were used last come first."""
        return reversed(self._by_key.items())

    def use(self, key: KeyT, limit: Callable[[KeyT], float], now_ms: int) -> Measure[StatT]:
        """The measure of this key; `limit` is asked for a new one."""
        found = self._by_key.get(key)
        if found is None:
            self.expire(now_ms)
            while len(self._by_key) >= self._measures_max:
                self._by_key.popitem(last=False)
            found = self._by_key[key] = Measure(self._new_stat(), limit(key))
        else:
            self._by_key.move_to_end(key)
        found.used_ms = now_ms
        return found

    def expire(self, now_ms: int) -> None:
        """Forget those that were not used for an hour."""
        while self._by_key:
            oldest = next(iter(self._by_key.values()))
            if now_ms - oldest.used_ms < MEASURE_IDLE_MS:
                return
            self._by_key.popitem(last=False)

    def set_limits(self, limit: Callable[[KeyT], float]) -> None:
        for key, measure in self._by_key.items():
            measure.limit = limit(key)


class SharedQuota(Generic[StatT]):
    """One kind of quota of users and client ids: its limits, and who has used what."""

    def __init__(self, measures_max: int, new_stat: Callable[[], StatT]) -> None:
        self.limits: ClientLimits = NO_LIMITS
        self.measures: Measures[SharedBy, StatT] = Measures(measures_max, new_stat)

    @property
    def is_enabled(self) -> bool:
        """Without any quota nothing is recorded."""
        return not self.limits.is_empty

    def use(self, limits: ClientLimits) -> None:
        """The quotas were changed. What was recorded stays."""
        self.limits = limits
        self.measures.set_limits(limits.limit)

    def measure(self, user: str, client_id: str, now_ms: int) -> Measure[StatT]:
        """That of the clients with whom this one shares the quota."""
        of_user, of_client = self.limits.shared_by(user, client_id)
        # Cut: a client id may have 32,767 characters, and there are thousands of measures.
        shared_by = of_user[:ENTITY_NAME_MAX], of_client[:ENTITY_NAME_MAX]
        return self.measures.use(shared_by, self.limits.limit, now_ms)


class ClientQuota(SharedQuota[Rate]):
    """One kind of quota that is a rate. A throttle is never longer than `throttle_max_ms`."""

    def __init__(
        self, window: QuotaWindow, measures_max: int, throttle_max_ms: int = _INT_MAX
    ) -> None:
        super().__init__(measures_max, lambda: Rate(window))
        self._window = window
        self._throttle_max_ms = throttle_max_ms

    def limits_client(self, user: str, client_id: str) -> bool:
        """Whether a quota holds for this client."""
        limits = self.limits
        return self.is_enabled and limits.limit(limits.shared_by(user, client_id)) != UNLIMITED

    def record(self, user: str, client_id: str, value: float, now_ms: int) -> int:
        """Count it; for how long the client is throttled, in milliseconds."""
        if not self.is_enabled:
            return 0
        measure = self.measure(user, client_id, now_ms)
        measure.stat.record(value, now_ms)
        return min(measure.stat.throttle_ms(measure.limit, now_ms), self._throttle_max_ms)

    def record_unchecked(self, user: str, client_id: str, value: float, now_ms: int) -> None:
        """Count it, or with a negative value take it back, without a throttle."""
        if self.is_enabled:
            self.measure(user, client_id, now_ms).stat.record(value, now_ms)

    def max_in_window(self, user: str, client_id: str, now_ms: int) -> float:
        """What a client may use that has used nothing of late, without being throttled."""
        if not self.is_enabled:
            return UNLIMITED
        limit = self.measure(user, client_id, now_ms).limit
        if limit == UNLIMITED:
            return UNLIMITED  # times 0 it would be no number
        window = self._window
        return limit * (window.samples - 1) * window.size_seconds


class MutationBucket:
    """The token bucket of the clients that share a quota of mutations, and their rate."""

    __slots__ = ("bucket", "rate")

    def __init__(self, bucket_window: QuotaWindow) -> None:
        self.bucket = TokenBucket(bucket_window)
        self.rate = Rate(bucket_window)

    def record(self, permits: float, limit: float, now_ms: int) -> None:
        self.rate.record(permits, now_ms)
        if limit != UNLIMITED:
            self.bucket.record(permits, limit, now_ms)

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        return 0 if limit == UNLIMITED else self.bucket.throttle_ms(limit, now_ms)


class MutationQuota(SharedQuota[MutationBucket]):
    """Partitions that a client creates or deletes, by a token bucket for each quota."""

    def __init__(self, window: QuotaWindow, measures_max: int) -> None:
        super().__init__(measures_max, lambda: MutationBucket(window))

    def record(
        self, user: str, client_id: str, permits: float, now_ms: int, *, is_strict: bool
    ) -> tuple[bool, int]:
        """Whether the mutation may be done, and for how long the client is throttled.

        A strict one is refused while the bucket is overdrawn; the one that overdraws it is
        accepted. Others are never refused, only throttled.
        """
        if not self.is_enabled:
            return True, 0
        measure = self.measure(user, client_id, now_ms)
        if is_strict:
            throttle_ms = measure.stat.throttle_ms(measure.limit, now_ms)
            if throttle_ms > 0 or self._is_overdrawn(measure, now_ms):
                return False, throttle_ms
            measure.stat.record(permits, measure.limit, now_ms)
            return True, 0
        measure.stat.record(permits, measure.limit, now_ms)
        return True, measure.stat.throttle_ms(measure.limit, now_ms)

    def _is_overdrawn(self, measure: Measure[MutationBucket], now_ms: int) -> bool:
        """By so little that the throttle is rounded to zero."""
        limit = measure.limit
        return limit != UNLIMITED and measure.stat.bucket.measure(limit, now_ms) < 0


class ConnectionRates:
    """New connections by address."""

    def __init__(self, window: QuotaWindow, measures_max: int) -> None:
        self._throttle_max_ms = window.size_ms
        self.limits = IpLimits({})
        self.measures: Measures[str, Rate] = Measures(measures_max, lambda: Rate(window))

    @property
    def is_enabled(self) -> bool:
        return not self.limits.is_empty

    def use(self, limits: IpLimits) -> None:
        self.limits = limits
        self.measures.set_limits(limits.limit)

    def record(self, address: str, now_ms: int) -> int:
        """0 if the connection is accepted; else for how long it is kept unserved, then closed."""
        if self.limits.limit(address) == UNLIMITED:
            return 0
        measure = self.measures.use(address, self.limits.limit, now_ms)
        measure.stat.record(1.0, now_ms)
        throttle_ms = min(measure.stat.throttle_ms(measure.limit, now_ms), self._throttle_max_ms)
        if throttle_ms > 0:
            measure.stat.record(-1.0, now_ms)
            measure.throttle(throttle_ms)
        return throttle_ms
