"""Lag sampler: reads the lag of all groups in rounds, in short slices of the event loop.

Every `rollcall.lag.interval.ms` each group is read (reader.py) and added to the windows
(history/lag/store.py). New commits go to `__group_lag`, from which a start restores the windows. A
slice takes a millisecond, and a longer pause follows it, so that no request waits for the sampler,
however many groups there are. Record times come from earlier lookups or are estimated; a bounded
number of lookups runs in a thread at the end of the round.

Samples are written for commits that were not seen before. In addition, all windows of a group are
written once per `rollcall.lag.keepalive.ms`, so that a start need not read further back. A group
without lag and without new commits is not written again.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from time import perf_counter
from types import MappingProxyType
from typing import Final, Protocol
from zlib import crc32

from broker.lag.reader import LagReader
from broker.lag.record_times import RecordTimeLookup, RecordTimes
from broker.lag.skipped_groups import LAG, VERDICTS, SkippedGroups
from broker.loop.clock import SystemClock
from broker.observe.events import PartFailed, ShellEvent, Warned
from coordinator.group_types import AnyGroupView
from history.lag.model import (
    STATES_WITHOUT_MEMBERS,
    GroupLag,
    LagNote,
    PartitionKey,
    PartitionLag,
    Reading,
)
from history.lag.records import Sample, of_deleted_group
from history.lag.store import GroupWindows, LagStore, RecordTime
from history.lag.window import SampledCommit
from protocol.names import GroupId, GroupState
from seams.now import Now

SLICE_S: Final = 0.001
SLICE_PAUSE_S: Final = 0.004
"""A round takes a fifth of the loop's time at most, and never more than a slice at once."""

FIRST_ROUND_AFTER_S: Final = 1.0
"""After a start: the clients come back all at once, and are served first."""

CHUNK_PARTITIONS: Final = 100
"""Partitions read between two checks of the slice: about 0.3 ms."""

COMMITS_AT_ONCE: Final = 500
"""Commits encoded and appended at once: about 0.3 ms."""

PARTITIONS_OF_A_SAMPLE: Final = 25
"""Of one record: with full windows it holds as many commits as are appended at once."""

LOOKUPS_PER_REQUEST: Final = 10_000
"""Record times looked up for one request about a group; the others are estimated."""


class LagLog(Protocol):
    """Where samples are kept: `__group_lag`. Neither call may raise for a log that failed."""

    def append(self, samples: Sequence[Sample], now_ms: int) -> None: ...

    def read_back(self) -> AsyncIterator[list[Sample]]:
        """The samples of the tail, oldest first, a part at a time."""


NO_ENDS: Final[Mapping[PartitionKey, int]] = MappingProxyType({})

YieldIfDue = Callable[[], Awaitable[None]]
"""Yields the event loop if the current slice is over."""


class Watcher(Protocol):
    """Inspects each group after its lag was sampled: verdict_watch.py."""

    async def inspect(
        self,
        group: AnyGroupView,
        windows: GroupWindows | None,
        now: Now,
        yield_if_due: YieldIfDue,
    ) -> None: ...

    async def end_round(self, alive: set[str], now: Now, yield_if_due: YieldIfDue) -> None: ...


class LagSampler:
    def __init__(
        self,
        reader: LagReader,
        book: LagStore,
        log: LagLog,
        clock: SystemClock,
        observe: Callable[[ShellEvent], None],
        *,
        lookups_max: int,
        keepalive_ms: int,
    ) -> None:
        self.book = book
        self.rounds = 0
        self.round_seconds = 0.0  # how long the last round took, its pauses included
        self.busy_seconds = 0.0  # how much of the loop's time that was
        self.slice_seconds_max = 0.0
        self.samples_written = 0
        self.watcher: Watcher | None = None
        self.on_round_end: Callable[[Now], None] | None = None  # called after each round
        self.skipped = SkippedGroups(observe)
        self._reader = reader
        self._log = log
        self._clock = clock
        self._observe = observe
        self._lookups_max = lookups_max
        self._keepalive_ms = keepalive_ms
        self._times = RecordTimes()
        self._task: asyncio.Task[None] | None = None
        self._slice_began = 0.0
        self._lookups: list[tuple[str, RecordTimeLookup]] = []
        self._queued: deque[Sample] = deque()
        self._queued_commits = 0
        self._warned_left_out = False
        self._lookups_to_skip = self._lookups_skipped = (
            0  # record times that the rounds before looked up
        )
        self._lookups_missed = False

    def start(self) -> None:
        """Called after the daemon is ready."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    # ------------------------------------------------------------ requests

    async def group_lag(self, group_id: GroupId) -> GroupLag | None:
        """A group's lag at this moment, record times looked up; None if there is no such group."""
        group = self._reader.group(group_id)
        if group is None:
            return None
        now_ms = self._clock.now().wall_ms
        owners = self._reader.owners(group)
        readings = self._reader.read_group(group, owners)
        state = group.state.value
        missing = [
            lookup
            for lookup in map(self._lookup_of, readings)
            if lookup and not self._times.known(lookup)[0]
        ]
        await self._times.look_up(missing[:LOOKUPS_PER_REQUEST])
        partitions: list[PartitionLag] = []
        for at in range(0, len(readings), CHUNK_PARTITIONS):
            part = readings[at : at + CHUNK_PARTITIONS]
            times = self._known_times(part)
            partitions += self.book.group_partitions(
                group_id,
                part,
                times,
                owners,
                now_ms,
                has_readers=state not in STATES_WITHOUT_MEMBERS,
            )
            await asyncio.sleep(0)
        return GroupLag.of(group_id, state, now_ms, partitions)

    def group_views(self) -> Iterator[tuple[AnyGroupView, ...]]:
        """All groups, some at a time; each part is read when it is requested."""
        return self._reader.groups()

    def group(self, group_id: str) -> AnyGroupView | None:
        return self._reader.group(GroupId(group_id))

    def group_deleted(self, group_id: str) -> None:
        """Drop its windows, also for the next start: a new group of this name has no past."""
        if group_id in self.book.groups:
            self.book.forget(group_id)
            self._queued.append(of_deleted_group(group_id, self._clock.now().wall_ms))

    def _lookup_of(self, reading: Reading) -> RecordTimeLookup | None:
        """The record whose time is needed: the first one that was not consumed."""
        if not reading.lag or reading.committed_offset is None:
            return None
        log = self._reader.log(reading.topic, reading.partition)
        if log is None:
            return None
        return RecordTimeLookup((reading.topic, reading.partition), log, reading.committed_offset)

    def _known_times(self, readings: Sequence[Reading]) -> dict[PartitionKey, RecordTime]:
        times: dict[PartitionKey, RecordTime] = {}
        for lookup in map(self._lookup_of, readings):
            if lookup is not None:
                is_known, time = self._times.known(lookup)
                if not is_known:
                    time = self.book.estimated_time(lookup.key, lookup.offset)
                if time is not None:
                    times[lookup.key] = time
        return times

    # ------------------------------------------------------------ rounds

    async def _run(self) -> None:
        interval_s = self.book.limits.interval_ms / 1000
        loop = asyncio.get_running_loop()
        await self._guarded(self._restore)
        await asyncio.sleep(min(FIRST_ROUND_AFTER_S, interval_s))
        while True:
            began = loop.time()
            await self._guarded(self.round)
            self.round_seconds = loop.time() - began
            await asyncio.sleep(max(interval_s - self.round_seconds, SLICE_PAUSE_S))

    async def _guarded(self, step: Callable[[], object]) -> None:
        """Report an exception; the next round runs anyway."""
        try:
            done = step()
            assert asyncio.iscoroutine(done)
            await done
        except Exception as error:  # noqa: BLE001 - the daemon keeps running
            self._observe(PartFailed("lag sampler", error))

    async def _restore(self) -> None:
        async for samples in self._log.read_back():
            self._slice_began = perf_counter()
            for sample in samples:
                try:
                    self._restore_sample(sample)
                except Exception as error:  # noqa: BLE001 - one group does not end the round of all
                    self.skipped(LAG, sample.group_id, error)
                await self._yield_if_due()

    def _restore_sample(self, sample: Sample) -> None:
        if sample.ends_the_group:
            self.book.forget(sample.group_id)
        elif sample.topic_id in ("", self._reader.topic_id(sample.topic)):
            for partition, commits in sample.partitions.items():
                self.book.restore(sample.group_id, (sample.topic, partition), commits)

    async def round(self) -> None:
        """Every group once."""
        self._slice_began = perf_counter()
        self.busy_seconds = 0.0
        self._lookups = []
        alive: set[str] = set()
        # If a round cannot look up all record times, the next one continues after its last.
        self._lookups_skipped, self._lookups_missed = 0, False
        for groups in self._reader.groups():
            for group in groups:
                if group.state is not GroupState.DEAD:
                    alive.add(group.group_id)
                    await self._sample(group)
        self._lookups_to_skip = (
            self._lookups_to_skip + len(self._lookups) if self._lookups_missed else 0
        )
        now_ms = self._clock.now().wall_ms
        self.book.end_round(alive, now_ms)
        await self._write(now_ms, at_least=1)
        if self.watcher is not None:
            await self.watcher.end_round(alive, self._clock.now(), self._yield_if_due)
        if self.on_round_end is not None:
            self.on_round_end(self._clock.now())
        self.rounds += 1
        self._warn_left_out()
        await self._look_up()

    async def _sample(self, group: AnyGroupView) -> None:
        try:
            await self._sample_windows(group)
        except Exception as error:  # noqa: BLE001 - one group does not end the round of all
            self.skipped(LAG, group.group_id, error)
        if self.watcher is not None:
            windows = self.book.groups.get(group.group_id)
            try:
                await self.watcher.inspect(group, windows, self._clock.now(), self._yield_if_due)
            except Exception as error:  # noqa: BLE001 - as above
                self.skipped(VERDICTS, group.group_id, error)
        await self._write(self._clock.now().wall_ms, at_least=COMMITS_AT_ONCE)
        await self._yield_if_due()

    async def _sample_windows(self, group: AnyGroupView) -> None:
        fresh: dict[PartitionKey, SampledCommit] = {}
        ends: dict[PartitionKey, int] = {}  # of logs that end before what was committed
        keys: set[PartitionKey] = set()
        for topic in tuple(group.offsets):
            indexes = iter(tuple(group.offsets.get(topic, ())))
            while chunk := tuple(islice(indexes, CHUNK_PARTITIONS)):
                now_ms = self._clock.now().wall_ms
                commits = group.offsets.get(topic, {})  # it may have changed at a pause
                found = [(index, commits[index]) for index in chunk if index in commits]
                readings = list(self._reader.read(topic, found))
                keys.update((reading.topic, reading.partition) for reading in readings)
                fresh.update(self.book.add_readings(group.group_id, readings, now_ms))
                ends.update(_ends_before_commits(readings))
                times = self._sampled_times(group.group_id, readings)
                self.book.evaluate_windows(group.group_id, readings, times, now_ms)
                await self._yield_if_due()
        waiting: list[PartitionKey] = []
        for part in self._reader.waiting(group):
            waiting += part
            await self._yield_if_due()
        now_ms = self._clock.now().wall_ms
        known = self.book.groups.get(group.group_id)
        if waiting or (known is not None and known.waiting):
            self.book.add_waiting(group.group_id, waiting, now_ms)
        windows = self.book.end_group(group.group_id, keys)
        if windows is not None:
            self._queue_samples(group.group_id, windows, fresh, ends, now_ms)

    def _sampled_times(
        self, group_id: str, readings: Sequence[Reading]
    ) -> dict[PartitionKey, RecordTime]:
        """Known times; the others are estimated now and looked up at the end of the round."""
        times: dict[PartitionKey, RecordTime] = {}
        for lookup in map(self._lookup_of, readings):
            if lookup is None:
                continue
            is_known, time = self._times.known(lookup)
            if not is_known:
                self._add_lookup(group_id, lookup)
                time = self.book.estimated_time(lookup.key, lookup.offset)
            if time is not None:
                times[lookup.key] = time
        return times

    def _add_lookup(self, group_id: str, lookup: RecordTimeLookup) -> None:
        if self._lookups_skipped < self._lookups_to_skip:
            self._lookups_skipped += 1
        elif len(self._lookups) < self._lookups_max:
            self._lookups.append((group_id, lookup))
        else:
            self._lookups_missed = True

    async def _look_up(self) -> None:
        """Look up the record times that this round lacked; once for groups at the same offset."""
        unique = {(lookup.key, lookup.offset): lookup for _, lookup in self._lookups}
        await self._times.look_up(list(unique.values()))
        self._slice_began = perf_counter()
        for group_id, lookup in self._lookups:
            _, time = self._times.known(lookup)
            if time is not None:
                self.book.set_time(group_id, lookup.key, lookup.offset, time)
            await self._yield_if_due()
        self._lookups = []

    async def _yield_if_due(self) -> None:
        spent = perf_counter() - self._slice_began
        if spent >= SLICE_S:
            self.busy_seconds += spent
            self.slice_seconds_max = max(self.slice_seconds_max, spent)
            await asyncio.sleep(SLICE_PAUSE_S)
            self._slice_began = perf_counter()

    # ------------------------------------------------------------ samples

    def _queue_samples(
        self,
        group_id: str,
        windows: GroupWindows,
        fresh: Mapping[PartitionKey, SampledCommit],
        ends: Mapping[PartitionKey, int],
        now_ms: int,
    ) -> None:
        """Queue the samples of this group that are to be written."""
        if fresh:
            windows.has_moved = True
            new = {key: (commit,) for key, commit in fresh.items()}
            self._add_samples(group_id, new, now_ms, ends=ends)
        if not windows.whole_at_ms:
            # Spread over the interval, so that not all groups are written at once.
            windows.whole_at_ms = now_ms - crc32(group_id.encode()) % self._keepalive_ms
        if now_ms - windows.whole_at_ms < self._keepalive_ms:
            return
        windows.whole_at_ms = now_ms
        if not windows.has_moved and not windows.lag:
            return
        windows.has_moved = False
        whole = {key: tuple(window.commits()) for key, window in windows.windows.items()}
        self._add_samples(group_id, whole, now_ms, whole=True)

    def _add_samples(
        self,
        group_id: str,
        commits: Mapping[PartitionKey, Sequence[SampledCommit]],
        now_ms: int,
        *,
        whole: bool = False,
        ends: Mapping[PartitionKey, int] = NO_ENDS,
    ) -> None:
        of_topic: dict[str, dict[int, Sequence[SampledCommit]]] = {}
        for (topic, partition), sampled in commits.items():
            if sampled:
                of_topic.setdefault(topic, {})[partition] = sampled
        for topic, partitions in of_topic.items():
            topic_id = self._reader.topic_id(topic)
            rest = iter(partitions.items())
            while part := dict(islice(rest, PARTITIONS_OF_A_SAMPLE)):
                ended = {n: ends[topic, n] for n in part if (topic, n) in ends}
                self._queued.append(Sample(group_id, topic, now_ms, whole, part, topic_id, ended))
                self._queued_commits += sum(map(len, part.values()))

    async def _write(self, now_ms: int, *, at_least: int) -> None:
        """Append the queued samples once they are enough for a batch."""
        while self._queued and max(self._queued_commits, 1) >= at_least:
            part: list[Sample] = []
            weight = 0
            while self._queued and weight < COMMITS_AT_ONCE:
                sample = self._queued.popleft()
                weight += sum(map(len, sample.partitions.values()))
                part.append(sample)
            self._queued_commits -= weight
            self._log.append(part, now_ms)
            self.samples_written += len(part)
            await self._yield_if_due()

    def _warn_left_out(self) -> None:
        """One warning each time the limit is reached."""
        if self.book.left_out and not self._warned_left_out:
            message = "Too many partitions for lag windows; raise rollcall.lag.partitions.max"
            limit = self.book.limits.partitions_max
            self._observe(Warned(message, {"limit": limit, "left_out": self.book.left_out}))
        self._warned_left_out = self.book.left_out > 0


def _ends_before_commits(readings: Sequence[Reading]) -> Iterator[tuple[PartitionKey, int]]:
    """Where the logs end whose end is before the committed offset; their lag of 0 does not say."""
    for reading in readings:
        if reading.note is LagNote.BEYOND_END:
            assert reading.log_end_offset is not None
            yield (reading.topic, reading.partition), reading.log_end_offset
