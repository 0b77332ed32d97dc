"""Rate and token bucket: how much a client has used of late, in Kafka's numbers.

`Rate` sums what was recorded in windows of a fixed length, and divides by the time that the windows
cover, at least all but one of them. `TokenBucket` fills with a quota per second up to a burst, and
may be overdrawn. No clock: each call has the time.
Kafka's counterparts: `Rate` over `SampledStat`, `TokenBucket`, `QuotaUtils.throttleTime`.
"""

import math
from typing import Final

from msgspec import Struct

_MS_PER_S: Final = 1_000.0
_INT_MAX: Final = 2_147_483_647


class QuotaWindow(Struct, frozen=True):
    """`quota.window.num` and `quota.window.size.seconds`, or those of the controller."""

    samples: int = 11
    size_seconds: int = 1

    @property
    def size_ms(self) -> int:
        return self.size_seconds * 1_000

    @property
    def burst_seconds(self) -> float:
        """How many seconds of its quota a token bucket holds."""
        return float(self.samples * self.size_seconds)


class _Sample:
    __slots__ = ("last_ms", "start_ms", "value")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.start_ms = self.last_ms = now_ms
        self.value = 0.0


class Rate:
    """What was recorded, per second."""

    __slots__ = ("_current", "_samples", "_window")

    def __init__(self, window: QuotaWindow) -> None:
        self._window = window
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        samples = self._samples
        if not samples:
            samples.append(_Sample(now_ms))
        sample = samples[self._current]
        if now_ms - sample.start_ms >= self._window.size_ms:
            sample = self._advance(now_ms)
        sample.value += value
        sample.last_ms = now_ms

    def _advance(self, now_ms: int) -> _Sample:
        """The next sample. There is one more than `samples`: the oldest is only partly covered."""
        self._current = (self._current + 1) % (self._window.samples + 1)
        if self._current >= len(self._samples):
            self._samples.append(_Sample(now_ms))
        else:
            self._samples[self._current].reset(now_ms)
        return self._samples[self._current]

    def measure(self, now_ms: int) -> float:
        """Per second."""
        self._forget_old(now_ms)
        total = 0.0
        for sample in self._samples:
            total += sample.value
        return total / (self._covered_ms(now_ms) / _MS_PER_S)

    def covered_ms(self, now_ms: int) -> int:
        """The time that the samples cover, as Kafka counts it."""
        self._forget_old(now_ms)
        return self._covered_ms(now_ms)

    def _covered_ms(self, now_ms: int) -> int:
        if not self._samples:
            self._samples.append(_Sample(now_ms))
        window = self._window
        elapsed_ms = now_ms - min(sample.start_ms for sample in self._samples)
        missing = window.samples - 1 - elapsed_ms // window.size_ms
        if missing > 0:
            elapsed_ms += missing * window.size_ms
        return max(elapsed_ms, 1)

    def _forget_old(self, now_ms: int) -> None:
        expired_ms = self._window.samples * self._window.size_ms
        for sample in self._samples:
            if now_ms - sample.last_ms >= expired_ms:
                sample.reset(now_ms)

    def throttle_ms(self, quota: float, now_ms: int) -> int:
        """How long until the rate is at its quota if nothing more is recorded; 0: it is."""
        value = self.measure(now_ms)
        if value <= quota:
            return 0
        return _rounded((value - quota) / quota * self.covered_ms(now_ms))


class TokenBucket:
    """Tokens that were not used yet; negative: overdrawn. A new bucket is full."""

    __slots__ = ("_tokens", "_updated_ms", "_window")

    def __init__(self, window: QuotaWindow) -> None:
        self._window = window
        self._tokens = math.inf
        self._updated_ms = 0

    def record(self, value: float, quota: float, now_ms: int) -> None:
        """Take tokens, as many as there are or more."""
        burst = self._refill(quota, now_ms)
        self._tokens = min(burst, self._tokens - value)

    def measure(self, quota: float, now_ms: int) -> float:
        self._refill(quota, now_ms)
        return self._tokens

    def throttle_ms(self, quota: float, now_ms: int) -> int:
        """How long until the bucket is not overdrawn any more; 0: it is not."""
        tokens = self.measure(quota, now_ms)
        return _rounded(-tokens / quota * _MS_PER_S) if tokens < 0 else 0

    def _refill(self, quota: float, now_ms: int) -> float:
        burst = self._window.burst_seconds * quota
        gained = quota * ((now_ms - self._updated_ms) / _MS_PER_S)
        self._tokens = min(burst, self._tokens + gained)
        self._updated_ms = now_ms
        return burst


def _rounded(ms: float) -> int:
    """As Java's Math.round, within an int. Of a tiny quota it may be infinite."""
    return math.floor(ms + 0.5) if ms < _INT_MAX else _INT_MAX
