"""Lag store: the lag windows of all groups, and the lag computed from them.

The sampler (broker/lag/sampler.py) adds its readings group by group; `group_partitions` computes
what users see from a reading and its window. `windows_of` has the last numbers of each partition
without a new reading, for a metrics scrape. Bounded: beyond `partitions_max` (group, partition)
pairs no window is opened; `left_out` is the number of pairs without one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from coordinator.member_identity import MemberIdentity
from history.lag.model import (
    NO_LAG_RATES,
    LagNote,
    LagStatus,
    PartitionKey,
    PartitionLag,
    Reading,
    catch_up_seconds,
    catch_up_state,
    group_status,
)
from history.lag.window import (
    LagWindow,
    LogEnds,
    SampledCommit,
    WindowLimits,
    evaluate_window,
    lag_rates,
)


class RecordTime(NamedTuple):
    """When the record at an offset was written. `exact`: read from the record itself."""

    at_ms: int
    exact: bool


class LagLimits(Struct, frozen=True):
    """`interval_ms` between two samples; `window_commits` of them make a window."""

    interval_ms: int = 15_000
    window_commits: int = 20
    partitions_max: int = 200_000

    @property
    def window(self) -> WindowLimits:
        return WindowLimits(self.window_commits, self.window_ms)

    @property
    def window_ms(self) -> int:
        return self.interval_ms * self.window_commits


class SampledPartition(NamedTuple):
    """A partition as last sampled."""

    topic: str
    partition: int
    lag: int | None
    seconds: float | None
    committed_offset: int | None
    status: LagStatus


class GroupWindows(Struct):
    """The windows of one group, and the state of the whole group."""

    at_ms: int = 0  # when it was last sampled
    status: LagStatus = LagStatus.OK
    whole_at_ms: int = 0  # when all of its windows were last stored
    has_moved: bool = False  # it committed since
    still_since_ms: int = 0  # the longest that a partition has had lag and no other offset; 0: none
    windows: dict[PartitionKey, LagWindow] = field(default_factory=dict)
    # Partitions that a member owns and never committed, though records wait: in so many samples.
    waiting: dict[PartitionKey, int] = field(default_factory=dict)

    @property
    def lag(self) -> int | None:
        """The lag of all partitions; None if none is known."""
        known = [window.lag for window in self.windows.values() if window.lag is not None]
        return sum(known) if known else None

    @property
    def lag_max(self) -> int | None:
        return max((w.lag for w in self.windows.values() if w.lag is not None), default=None)

    @property
    def seconds_max(self) -> float | None:
        known = [window.seconds for window in self.windows.values() if window.seconds is not None]
        return max(known, default=None)


class LagStore:
    def __init__(self, limits: LagLimits) -> None:
        self.limits = limits
        self.groups: dict[str, GroupWindows] = {}
        self.ends: dict[PartitionKey, LogEnds] = {}
        self.windows = 0  # of all groups together
        self.left_out = 0  # partitions without a window, as of the last round
        self.at_ms = 0  # of the last complete round
        self._left_out_now = 0
        self._round = 1
        self._ends_seen = 0  # in this round

    # ------------------------------------------------------------ input of the sampler

    def add_log_end(
        self, key: PartitionKey, log_end_offset: int, at_ms: int, topic_id: str = ""
    ) -> None:
        """Add where a log ends at this instant; once per round."""
        ends = self.ends.get(key)
        if ends is not None and ends.seen_in_round == self._round:
            return
        if ends is None or ends.topic_id != topic_id:
            ends = self.ends[key] = LogEnds(topic_id, key)
        ends.seen_in_round = self._round
        self._ends_seen += 1
        ends.see(at_ms, log_end_offset, self.limits.window_commits + 1)

    def add_readings(
        self, group_id: str, readings: Iterable[Reading], at_ms: int
    ) -> list[tuple[PartitionKey, SampledCommit]]:
        """Add readings of a part of a group; returns the new commits."""
        of_group = self.groups.get(group_id)
        if of_group is None:
            of_group = self.groups[group_id] = GroupWindows()
        of_group.at_ms = at_ms
        windows, size = of_group.windows, self.limits.window_commits
        fresh: list[tuple[PartitionKey, SampledCommit]] = []
        for reading in readings:
            key = (reading.topic, reading.partition)
            if reading.log_end_offset is not None:
                self.add_log_end(key, reading.log_end_offset, at_ms, reading.topic_id)
            window = windows.get(key)
            if window is None:
                if self.windows >= self.limits.partitions_max:
                    self._left_out_now += 1
                    continue
                ends = self.ends.get(key)
                window = windows[key if ends is None else ends.key] = LagWindow()
                self.windows += 1
            if window.see(reading, at_ms, size):
                assert reading.committed_at_ms is not None
                assert reading.committed_offset is not None
                assert window.lag is not None
                commit = SampledCommit(
                    reading.committed_at_ms, reading.committed_offset, window.lag
                )
                fresh.append((key, commit))
        return fresh

    def evaluate_windows(
        self,
        group_id: str,
        readings: Iterable[Reading],
        times: Mapping[PartitionKey, RecordTime],
        at_ms: int,
    ) -> None:
        """Update the status and the seconds of each window after its readings."""
        of_group = self.groups[group_id]
        window_limits = self.limits.window
        for reading in readings:
            key = (reading.topic, reading.partition)
            window = of_group.windows.get(key)
            if window is None:
                continue
            if window.is_beyond_end:
                window.status = LagStatus.WARN
                window.seconds, window.seconds_exact = 0.0, True
            elif window.lag:
                window.status = evaluate_window(window, self.ends.get(key), at_ms, window_limits)
                time = times.get(key)
                window.seconds = None if time is None else max(at_ms - time.at_ms, 0) / 1000
                window.seconds_exact = time is not None and time.exact
            else:
                window.status = LagStatus.OK
                window.seconds = None if window.lag is None else 0.0
                window.seconds_exact = window.lag is not None

    def add_waiting(self, group_id: str, keys: Iterable[PartitionKey], at_ms: int) -> None:
        """All partitions that members own without a commit although the log has records."""
        of_group = self.groups.get(group_id)
        if of_group is None:
            of_group = self.groups[group_id] = GroupWindows()
        of_group.at_ms = at_ms
        of_group.waiting = {key: of_group.waiting.get(key, 0) + 1 for key in keys}

    def end_group(self, group_id: str, keys: set[PartitionKey]) -> GroupWindows | None:
        """All of the group was read: drop the partitions without a commit."""
        of_group = self.groups.get(group_id)
        if of_group is None:
            return None
        if not of_group.windows.keys() <= keys:
            for key in [key for key in of_group.windows if key not in keys]:
                del of_group.windows[key]
                self.windows -= 1
        statuses = {w.status for w in of_group.windows.values()}
        if max(of_group.waiting.values(), default=0) >= self.limits.window_commits:
            statuses.add(LagStatus.WARN)
        of_group.status = group_status(statuses)
        of_group.still_since_ms = min(
            (
                max(window.moved_at_ms, window.lagging_since_ms)
                for window in of_group.windows.values()
                if window.lag
            ),
            default=0,
        )
        return of_group

    def set_time(self, group_id: str, key: PartitionKey, offset: int, time: RecordTime) -> None:
        """Add a looked-up record time; ignored if the offset has changed meanwhile."""
        of_group = self.groups.get(group_id)
        window = None if of_group is None else of_group.windows.get(key)
        if of_group is None or window is None:
            return
        if window.lag and window.committed_offset == offset:
            window.seconds = max(of_group.at_ms - time.at_ms, 0) / 1000
            window.seconds_exact = time.exact

    def end_round(self, alive: set[str], at_ms: int) -> None:
        """End a round: drop deleted groups and logs."""
        for group_id in [group_id for group_id in self.groups if group_id not in alive]:
            self.forget(group_id)
        if len(self.ends) > self._ends_seen:
            seen = self._round
            self.ends = {key: ends for key, ends in self.ends.items() if ends.seen_in_round == seen}
        self._round, self._ends_seen = self._round + 1, 0
        self.left_out, self._left_out_now = self._left_out_now, 0
        self.at_ms = at_ms

    def forget(self, group_id: str) -> None:
        gone = self.groups.pop(group_id, None)
        if gone is not None:
            self.windows -= len(gone.windows)

    def restore(self, group_id: str, key: PartitionKey, commits: Sequence[SampledCommit]) -> None:
        """Add commits that were stored before a restart."""
        if self.windows >= self.limits.partitions_max:
            return
        of_group = self.groups.setdefault(group_id, GroupWindows())
        window = of_group.windows.get(key)
        if window is None:
            window = of_group.windows[key] = LagWindow()
            self.windows += 1
        window.restore(commits, self.limits.window_commits)

    # ------------------------------------------------------------ queries

    def windows_of(self, group_id: str) -> Iterator[SampledPartition]:
        """The numbers of a group as last sampled, for a scrape."""
        of_group = self.groups.get(group_id)
        if of_group is None:
            return
        for (topic, partition), window in of_group.windows.items():
            yield SampledPartition(
                topic,
                partition,
                window.lag,
                window.seconds,
                window.committed_offset,
                window.status,
            )

    def estimated_time(self, key: PartitionKey, offset: int) -> RecordTime | None:
        """When the record at this offset was appended, estimated from the sampled log ends."""
        ends = self.ends.get(key)
        at_ms = None if ends is None else ends.appended_at_ms(offset)
        return None if at_ms is None else RecordTime(at_ms, exact=False)

    def group_partitions(
        self,
        group_id: str,
        readings: Iterable[Reading],
        times: Mapping[PartitionKey, RecordTime],
        owners: Mapping[PartitionKey, tuple[MemberIdentity, ...]],
        at_ms: int,
        *,
        has_readers: bool = True,
    ) -> list[PartitionLag]:
        """The lag of readings of one instant, of a part of a group or of all of it."""
        of_group = self.groups.get(group_id)
        return [
            self._partition_lag(reading, of_group, times, owners, at_ms, has_readers=has_readers)
            for reading in readings
        ]

    def _is_waiting_long(self, of_group: GroupWindows | None, key: PartitionKey) -> bool:
        samples = 0 if of_group is None else of_group.waiting.get(key, 0)
        return samples >= self.limits.window_commits

    def _partition_lag(
        self,
        reading: Reading,
        of_group: GroupWindows | None,
        times: Mapping[PartitionKey, RecordTime],
        owners: Mapping[PartitionKey, tuple[MemberIdentity, ...]],
        at_ms: int,
        *,
        has_readers: bool,
    ) -> PartitionLag:
        key = (reading.topic, reading.partition)
        window = None if of_group is None else of_group.windows.get(key)
        ends, lag = self.ends.get(key), reading.lag
        both = NO_LAG_RATES
        if reading.note is not LagNote.NO_PARTITION:
            both = lag_rates(window, ends, reading, at_ms, self.limits.window)
        time = times.get(key) if lag else None
        seconds = None if lag is None or (lag and time is None) else 0.0
        if time is not None:
            seconds = max(at_ms - time.at_ms, 0) / 1000
        status = LagStatus.OK
        if reading.note is LagNote.BEYOND_END or (
            of_group is not None and reading.waits and self._is_waiting_long(of_group, key)
        ):
            status = LagStatus.WARN
        elif window is not None and lag:
            status = evaluate_window(window, ends, at_ms, self.limits.window)
        owned_by = owners.get(key, ())
        state = catch_up_state(lag, both, has_readers=has_readers)
        return PartitionLag(
            topic=reading.topic,
            partition=reading.partition,
            committed_offset=reading.committed_offset,
            committed_at_ms=reading.committed_at_ms,
            log_start_offset=reading.log_start_offset,
            log_end_offset=reading.log_end_offset,
            lag=lag,
            seconds=seconds,
            seconds_exact=seconds is not None and (not lag or (time is not None and time.exact)),
            rates=both,
            catch_up_seconds=catch_up_seconds(lag, both, state),
            catch_up=state,
            status=status,
            note=reading.note,
            owner=owned_by[0] if owned_by else None,
            other_owners=owned_by[1:],
        )
