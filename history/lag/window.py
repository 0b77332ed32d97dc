"""Lag window: the recent commits of one group for one partition, and Burrow's rules over them.

A window has the newest commits, at most one per sample: when it was made, its offset, and the lag
then. It moves with the commits and not with the clock, so a consumer that commits each minute is
evaluated over a longer time than one that commits each second. `LogEnds` has, once for all groups,
where the log of a partition ended at each sample.

The rules are those that Burrow documents (github.com/linkedin/Burrow, wiki "Consumer Lag
Evaluation Rules", with its pull requests 338 and 716 on idle topics and on rewinds):
  committed beyond the end of the log (Rollcall's)                                  WARN
  no lag now                                                                        OK
  an offset fell below an earlier one, and is still below it                        REWIND
  no commit for longer than the window spans, and there was lag in all of LogEnds   STOP
  the lag was zero at some commit of the window                                     OK
  all commits have the same offset                                                  STALL
  the lag never became less from one commit to the next                             WARN
Rollcall differs: before a window is full, its status is not STALL or WARN, and STOP needs a silence
of a full window's time and of twice the longest pause between two commits. Burrow evaluates one
commit like twenty, which reports each consumer that has just started as stopped.
"""

from array import array
from collections.abc import Iterator, Sequence
from itertools import pairwise
from struct import Struct
from typing import Final, NamedTuple

from history.lag.model import LagNote, LagRates, LagStatus, PartitionKey, Reading

_FIELDS: Final = 3
_COMMIT: Final = Struct("=3q")  # as in an array


class SampledCommit(NamedTuple):
    committed_at_ms: int
    committed_offset: int
    lag: int


class LagWindow:
    """The commits of one group for one partition, and its last reading and status.

    Numbers in one object of bytes, which takes half of what an array does: there may be hundreds of
    thousands of windows, and most have one commit.
    """

    __slots__ = (
        "_packed",
        "committed_offset",
        "is_beyond_end",
        "lag",
        "lagging_since_ms",
        "moved_at_ms",
        "seconds",
        "seconds_exact",
        "status",
        "topic_id",
    )

    def __init__(self) -> None:
        self._packed = b""  # of each commit its three numbers, oldest first
        self.committed_offset: int | None = None
        self.lag: int | None = None
        self.seconds: float | None = None
        self.seconds_exact = False
        self.status = LagStatus.OK
        self.moved_at_ms = 0  # when the committed offset last became another
        self.is_beyond_end = False  # of the log: committed there
        self.topic_id = ""  # of the topic that the commits are for
        self.lagging_since_ms = 0  # since when there is lag without a pause; 0: there is none

    def __len__(self) -> int:
        return len(self._packed) // _COMMIT.size

    @property
    def _commits(self) -> "array[int]":
        return array("q", self._packed)

    def commits(self) -> Iterator[SampledCommit]:
        """Oldest first."""
        numbers = self._commits
        for at in range(0, len(numbers), _FIELDS):
            yield SampledCommit(numbers[at], numbers[at + 1], numbers[at + 2])

    def columns(self) -> tuple["array[int]", "array[int]", "array[int]"]:
        """Times, offsets and lags of the commits, oldest first."""
        numbers = self._commits
        return numbers[0::_FIELDS], numbers[1::_FIELDS], numbers[2::_FIELDS]

    def see(self, reading: Reading, at_ms: int, size: int) -> bool:
        """Add a reading; True if it has a new commit."""
        offset, committed_at_ms, lag = (
            reading.committed_offset, reading.committed_at_ms, reading.lag,
        )  # fmt: skip
        self.lag = lag
        self.is_beyond_end = reading.note is LagNote.BEYOND_END
        if not lag:
            self.lagging_since_ms = 0
        elif not self.lagging_since_ms:
            self.lagging_since_ms = at_ms
        if offset is None or committed_at_ms is None or lag is None:
            return False
        if reading.topic_id != self.topic_id:
            if self.topic_id:
                self._packed = b""  # offsets of a deleted topic
                self.committed_offset = None
            self.topic_id = reading.topic_id
        if offset != self.committed_offset:
            self.committed_offset = offset
            self.moved_at_ms = committed_at_ms
        return self.add(SampledCommit(committed_at_ms, offset, lag), size)

    def add(self, commit: SampledCommit, size: int) -> bool:
        """Add a commit if it is newer than the others."""
        packed = self._packed
        if packed:
            at_ms, offset, _ = _COMMIT.unpack_from(packed, len(packed) - _COMMIT.size)
            if (commit.committed_at_ms, commit.committed_offset) == (at_ms, offset):
                return False
            if commit.committed_at_ms < at_ms:
                return False
        kept_from = max(len(packed) - (size - 1) * _COMMIT.size, 0)
        self._packed = packed[kept_from:] + array("q", commit).tobytes()
        return True

    def restore(self, commits: Sequence[SampledCommit], size: int) -> None:
        """Add commits that were stored before a restart, in any order, duplicates included."""
        merged = sorted({*commits, *self.commits()})
        self._packed = b""
        for commit in merged:
            self.add(commit, size)
        offset = None
        for commit in self.commits():
            if commit.committed_offset != offset:
                offset, self.moved_at_ms = commit.committed_offset, commit.committed_at_ms

    def consumed_per_second(
        self, now_ms: int, window_ms: int, newest: tuple[int, int] | None = None
    ) -> float | None:
        """Over the window's time, or the known part of it; None with a single instant.

        `newest`: when the commit of this moment was made, and its offset. From commit to commit, as
        long as the next one is not overdue; after that up to now, for it may have stopped.
        """
        numbers = self._commits
        if not numbers:
            return None
        last_ms, last_offset = max((numbers[-3], numbers[-2]), newest or (0, 0))
        from_ms, from_offset = numbers[0], numbers[1]
        horizon_ms = now_ms - window_ms
        for at in range(_FIELDS, len(numbers), _FIELDS):
            if numbers[at] > horizon_ms:
                break
            from_ms, from_offset = numbers[at], numbers[at + 1]
        if now_ms - last_ms <= self.overdue_after_ms and last_ms > from_ms:
            return max(last_offset - from_offset, 0) * 1000 / (last_ms - from_ms)
        elapsed_ms = now_ms - max(from_ms, horizon_ms)
        if elapsed_ms <= 0 or (last_ms <= from_ms and from_ms > horizon_ms):
            return None
        return max(last_offset - from_offset, 0) * 1000 / elapsed_ms

    def recovers(self, lag: int, now_ms: int, small: float) -> bool:
        """Whether such a lag became small within the window, and commits continue.

        Half of the lag counts: between two samples a burst may have been higher than both.
        """
        numbers = self._commits
        if not numbers or now_ms - numbers[-3] > self.overdue_after_ms:
            return False
        was_high = False
        for sampled in numbers[2::_FIELDS]:
            if was_high and sampled <= small:
                return True
            was_high = was_high or (sampled >= lag / 2 and sampled > small)
        return False

    @property
    def overdue_after_ms(self) -> int:
        """After which time the next commit is overdue: twice the usual pause."""
        return 2 * self.usual_pause_ms

    @property
    def longest_pause_ms(self) -> int:
        """Between two commits of the window; 0 with fewer than two."""
        numbers = self._commits
        times = numbers[::_FIELDS]
        return max((b - a for a, b in pairwise(times)), default=0)

    @property
    def usual_pause_ms(self) -> int:
        """The median pause between two commits; 0 with fewer than two."""
        times = self._commits[::_FIELDS]
        pauses = sorted(later - earlier for earlier, later in pairwise(times))
        return pauses[len(pauses) // 2] if pauses else 0


class LogEnds:
    """Where the log of one partition ended at each sample; shared by all groups that read it."""

    __slots__ = ("_numbers", "key", "lowest", "seen_in_round", "topic_id")

    def __init__(self, topic_id: str = "", key: PartitionKey = ("", 0)) -> None:
        """`key`: the topic and the partition. The windows of all groups share the object."""
        self.topic_id = topic_id
        self.key = key
        self.seen_in_round = 0  # the last one in which it was
        self._numbers = array("q")  # at_ms, log_end_offset, ...
        self.lowest: int | None = None

    def __len__(self) -> int:
        return len(self._numbers) // 2

    def see(self, at_ms: int, log_end_offset: int, size: int) -> None:
        numbers = self._numbers
        if numbers and (at_ms <= numbers[-2] or log_end_offset < numbers[-1]):
            if at_ms <= numbers[-2]:
                return
            del numbers[:]  # the log was truncated or recreated: earlier ends do not count
        numbers.append(at_ms)
        numbers.append(log_end_offset)
        if len(numbers) > 2 * size:
            del numbers[: len(numbers) - 2 * size]
        self.lowest = numbers[1]

    def samples(self) -> Iterator[tuple[int, int]]:
        """(at_ms, log end offset), oldest first."""
        numbers = self._numbers
        for at in range(0, len(numbers), 2):
            yield numbers[at], numbers[at + 1]

    @property
    def newest(self) -> tuple[int, int] | None:
        numbers = self._numbers
        return (numbers[-2], numbers[-1]) if numbers else None

    def produced_per_second(self, now_ms: int, end_offset: int, window_ms: int) -> float | None:
        numbers = self._numbers
        horizon_ms = now_ms - window_ms
        for at in range(0, len(numbers), 2):
            if numbers[at] >= horizon_ms:
                elapsed_ms = now_ms - numbers[at]
                if elapsed_ms <= 0:
                    return None
                return max(end_offset - numbers[at + 1], 0) * 1000 / elapsed_ms
        return None

    def appended_at_ms(self, offset: int) -> int | None:
        """When the record at this offset was appended, estimated; None: before the first sample."""
        numbers = self._numbers
        if not numbers or numbers[1] > offset:
            return None
        for at in range(2, len(numbers), 2):
            end = numbers[at + 1]
            if end > offset:
                since_ms, since = numbers[at - 2], numbers[at - 1]
                share = (offset - since) / (end - since)
                return since_ms + int((numbers[at] - since_ms) * share)
        return None


class WindowLimits(NamedTuple):
    """The size of a window: `commits` make it full, `window_ms` is their usual time."""

    commits: int
    window_ms: int


def evaluate_window(
    window: LagWindow, ends: LogEnds | None, now_ms: int, limits: WindowLimits
) -> LagStatus:
    """The status of one partition; see the module's docstring."""
    if window.is_beyond_end:
        return LagStatus.WARN
    times, offsets, lags = window.columns()
    if not window.lag or not times:
        return LagStatus.OK
    if offsets[-1] < max(offsets):  # it fell at some commit, and is still lower
        return LagStatus.REWIND
    is_full = len(times) >= limits.commits
    needed_ms = times[-1] - times[0]
    if not is_full:
        needed_ms = max(needed_ms, limits.window_ms, 2 * window.longest_pause_ms)
    if now_ms - times[-1] > needed_ms and not _was_at_the_end(offsets[-1], ends):
        return LagStatus.STOP
    if not is_full or not min(lags):
        return LagStatus.OK
    if min(offsets) == max(offsets):
        return LagStatus.STALL
    if all(later >= earlier for earlier, later in pairwise(lags)):
        return LagStatus.WARN
    return LagStatus.OK


def _was_at_the_end(committed_offset: int, ends: LogEnds | None) -> bool:
    """Whether nothing was to be read at a recent sample: then there was no time to commit yet."""
    return ends is not None and ends.lowest is not None and ends.lowest <= committed_offset


def lag_rates(
    window: LagWindow | None,
    ends: LogEnds | None,
    reading: Reading,
    now_ms: int,
    limits: WindowLimits,
) -> LagRates:
    """Both rates over the window's time, as of now."""
    consumed = produced = None
    small_lag_ms = limits.window_ms // limits.commits  # of one sample
    end_offset, window_ms = reading.log_end_offset, limits.window_ms
    if window is not None:
        newest = None
        if reading.committed_at_ms is not None and reading.lag is not None:
            assert reading.committed_offset is not None
            newest = (reading.committed_at_ms, reading.committed_offset)
        consumed = window.consumed_per_second(now_ms, window_ms, newest)
        small_lag_ms = max(small_lag_ms, window.overdue_after_ms)
    if ends is not None and end_offset is not None:
        produced = ends.produced_per_second(now_ms, end_offset, window_ms)
    recovers = False
    if window is not None and consumed and reading.lag:
        recovers = window.recovers(reading.lag, now_ms, consumed * small_lag_ms / 1000)
    return LagRates(consumed, produced, small_lag_ms / 1000, recovers)
