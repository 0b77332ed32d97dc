"""How is everybody's lag kept in sight without anybody noticing? Rounds over all groups, in slices.

Every `rollcall.lag.interval.ms` each group is read (reader.py) and entered in the book
(history/lag/book.py); what is new goes to `__group_lag`, where a start finds it again. A slice ends
after a millisecond, and a pause follows that is longer: nobody waits for the sampler, however many
groups there are. A group's record times come from what was looked up before or are estimated; a
bounded number of them is looked up, in a thread, once the round is over.

What a sample is written for: a commit that was not seen before. And now and then
(`rollcall.lag.keepalive.ms`) all the windows of a group at once, so that a start need not read far;
but a group that has neither lag nor made a commit since is not written any more.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from time import perf_counter
from typing import Final, Protocol
from zlib import crc32

from broker.lag.reader import LagReader, owners_of
from broker.lag.record_times import RecordTimes, Wanted
from broker.lag.skipped_groups import LAG, VERDICTS, SkippedGroups
from broker.loop.clock import SystemClock
from broker.observe.events import PartFailed, ShellEvent, Warned
from coordinator.group import GroupView
from history.lag.book import GroupWindows, Key, LagBook, RecordTime
from history.lag.model import WITHOUT_READERS, GroupLag, PartitionLag, Reading
from history.lag.records import Sample, of_deleted_group
from history.lag.window import Commit
from protocol.names import GroupId, GroupState
from seams.now import Now

SLICE_S: Final = 0.001
PAUSE_S: Final = 0.004
"""Of the loop's time a round takes a fifth at most, and never more than a slice in one go."""

CHUNK_PARTITIONS: Final = 100
"""Partitions that are read before the clock is looked at: about 0.3 ms."""

COMMITS_AT_ONCE: Final = 500
"""Commits that are encoded and appended in one go: about 0.3 ms."""

PARTITIONS_OF_A_SAMPLE: Final = 25
"""A record holds no more: with full windows that is all that fits into one go."""

LOOKUPS_OF_A_QUESTION: Final = 10_000
"""Record times that are looked up for one who asks about a group; the rest is estimated."""


class LagLog(Protocol):
    """Where samples are kept: `__group_lag`. Neither call may raise for a log that failed."""

    def append(self, samples: Sequence[Sample], now_ms: int) -> None: ...

    def read_back(self) -> AsyncIterator[list[Sample]]:
        """The samples of the tail, oldest first, a part at a time."""


Breathe = Callable[[], Awaitable[None]]
"""Lets others have the loop, if it is time to."""


class Watcher(Protocol):
    """Who looks at each group after its lag was sampled: verdict_watch.py."""

    async def look(
        self, group: GroupView, windows: GroupWindows | None, now: Now, breathe: Breathe
    ) -> None: ...

    def end_round(self, alive: set[str], now: Now) -> None: ...


class LagSampler:
    def __init__(
        self,
        reader: LagReader,
        book: LagBook,
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
        self.rounded: Callable[[Now], None] | None = None  # called after each round
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
        self._wanted: list[tuple[str, Wanted]] = []
        self._unwritten: deque[Sample] = deque()
        self._unwritten_commits = 0
        self._told_left_out = False
        self._to_skip = self._skipped = 0  # record times that the rounds before looked up
        self._missed = False

    def start(self) -> None:
        """After the daemon is ready: nobody waits for it."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    # ------------------------------------------------------------ for those who ask

    async def group_lag(self, group_id: GroupId) -> GroupLag | None:
        """A group's lag at this moment, record times looked up; None if there is no such group."""
        group = self._reader.group(group_id)
        if group is None:
            return None
        now_ms = self._clock.now().wall_ms
        owners = owners_of(group)
        readings = self._reader.read_group(group, owners)
        state = group.state.value
        missing = [
            one for one in map(self._wanted_time, readings) if one and not self._times.known(one)[0]
        ]
        await self._times.look_up(missing[:LOOKUPS_OF_A_QUESTION])
        partitions: list[PartitionLag] = []
        for at in range(0, len(readings), CHUNK_PARTITIONS):
            part = readings[at : at + CHUNK_PARTITIONS]
            times = self._known_times(part)
            partitions += self.book.judged(
                group_id, part, times, owners, now_ms, has_readers=state not in WITHOUT_READERS
            )
            await asyncio.sleep(0)
        return GroupLag.of(group_id, state, now_ms, partitions)

    def group_views(self) -> Iterator[tuple[GroupView, ...]]:
        """All groups, some at a time; each lot as it is when it is asked for."""
        return self._reader.groups()

    def group(self, group_id: str) -> GroupView | None:
        return self._reader.group(GroupId(group_id))

    def group_deleted(self, group_id: str) -> None:
        """A group of the same name has a past of its own; after a restart, too."""
        if group_id in self.book.groups:
            self.book.forget(group_id)
            self._unwritten.append(of_deleted_group(group_id, self._clock.now().wall_ms))

    def _wanted_time(self, reading: Reading) -> Wanted | None:
        """Whose record's time is asked for: the first one that was not consumed."""
        if not reading.lag or reading.committed_offset is None:
            return None
        log = self._reader.log(reading.topic, reading.partition)
        if log is None:
            return None
        return Wanted((reading.topic, reading.partition), log, reading.committed_offset)

    def _known_times(self, readings: Sequence[Reading]) -> dict[Key, RecordTime]:
        times: dict[Key, RecordTime] = {}
        for wanted in map(self._wanted_time, readings):
            if wanted is not None:
                is_known, time = self._times.known(wanted)
                if not is_known:
                    time = self.book.estimated_time(wanted.key, wanted.offset)
                if time is not None:
                    times[wanted.key] = time
        return times

    # ------------------------------------------------------------ rounds

    async def _run(self) -> None:
        interval_s = self.book.limits.interval_ms / 1000
        loop = asyncio.get_running_loop()
        await self._guarded(self._restore)
        while True:
            began = loop.time()
            await self._guarded(self.round)
            self.round_seconds = loop.time() - began
            await asyncio.sleep(max(interval_s - self.round_seconds, PAUSE_S))

    async def _guarded(self, step: Callable[[], object]) -> None:
        """A fault of ours is told, and the next round is another."""
        try:
            done = step()
            assert asyncio.iscoroutine(done)
            await done
        except Exception as error:  # noqa: BLE001 - whatever it is, the daemon goes on
            self._observe(PartFailed("lag sampler", error))

    async def _restore(self) -> None:
        async for samples in self._log.read_back():
            self._slice_began = perf_counter()
            for sample in samples:
                try:
                    self._restore_sample(sample)
                except Exception as error:  # noqa: BLE001 - one group does not end the round of all
                    self.skipped(LAG, sample.group_id, error)
                await self._breathe()

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
        self._wanted = []
        alive: set[str] = set()
        # If not all record times can be looked up in a round, each round begins after the last.
        self._skipped, self._missed = 0, False
        for groups in self._reader.groups():
            for group in groups:
                if group.state is not GroupState.DEAD:
                    alive.add(group.group_id)
                    await self._sample(group)
        self._to_skip = self._to_skip + len(self._wanted) if self._missed else 0
        now_ms = self._clock.now().wall_ms
        self.book.end_round(alive, now_ms)
        await self._write(now_ms, at_least=1)
        if self.watcher is not None:
            self.watcher.end_round(alive, self._clock.now())
        if self.rounded is not None:
            self.rounded(self._clock.now())
        self.rounds += 1
        self._tell_left_out()
        await self._look_up()

    async def _sample(self, group: GroupView) -> None:
        try:
            await self._sample_windows(group)
        except Exception as error:  # noqa: BLE001 - one group does not end the round of all
            self.skipped(LAG, group.group_id, error)
        if self.watcher is not None:
            windows = self.book.groups.get(group.group_id)
            try:
                await self.watcher.look(group, windows, self._clock.now(), self._breathe)
            except Exception as error:  # noqa: BLE001 - as above
                self.skipped(VERDICTS, group.group_id, error)
        await self._write(self._clock.now().wall_ms, at_least=COMMITS_AT_ONCE)
        await self._breathe()

    async def _sample_windows(self, group: GroupView) -> None:
        fresh: dict[Key, Commit] = {}
        keys: set[Key] = set()
        for topic in tuple(group.offsets):
            indexes = iter(tuple(group.offsets.get(topic, ())))
            while chunk := tuple(islice(indexes, CHUNK_PARTITIONS)):
                now_ms = self._clock.now().wall_ms
                commits = group.offsets.get(topic, {})  # it may have changed at a pause
                found = [(index, commits[index]) for index in chunk if index in commits]
                readings = list(self._reader.read(topic, found))
                keys.update((reading.topic, reading.partition) for reading in readings)
                fresh.update(self.book.see(group.group_id, readings, now_ms))
                times = self._sampled_times(group.group_id, readings)
                self.book.judge_windows(group.group_id, readings, times, now_ms)
                await self._breathe()
        now_ms = self._clock.now().wall_ms
        waiting = list(self._reader.waiting(group))
        known = self.book.groups.get(group.group_id)
        if waiting or (known is not None and known.waiting):
            self.book.see_waiting(group.group_id, waiting, now_ms)
        windows = self.book.end_group(group.group_id, keys)
        if windows is not None:
            self._note(group.group_id, windows, fresh, now_ms)

    def _sampled_times(self, group_id: str, readings: Sequence[Reading]) -> dict[Key, RecordTime]:
        """What is known; what is not is estimated, and looked up when the round is over."""
        times: dict[Key, RecordTime] = {}
        for wanted in map(self._wanted_time, readings):
            if wanted is None:
                continue
            is_known, time = self._times.known(wanted)
            if not is_known:
                self._want(group_id, wanted)
                time = self.book.estimated_time(wanted.key, wanted.offset)
            if time is not None:
                times[wanted.key] = time
        return times

    def _want(self, group_id: str, wanted: Wanted) -> None:
        if self._skipped < self._to_skip:
            self._skipped += 1
        elif len(self._wanted) < self._lookups_max:
            self._wanted.append((group_id, wanted))
        else:
            self._missed = True

    async def _look_up(self) -> None:
        """The record times that this round missed; of many groups at one offset one is enough."""
        asked = {(one.key, one.offset): one for _, one in self._wanted}
        await self._times.look_up(list(asked.values()))
        self._slice_began = perf_counter()
        for group_id, wanted in self._wanted:
            _, time = self._times.known(wanted)
            if time is not None:
                self.book.set_time(group_id, wanted.key, wanted.offset, time)
            await self._breathe()
        self._wanted = []

    async def _breathe(self) -> None:
        spent = perf_counter() - self._slice_began
        if spent >= SLICE_S:
            self.busy_seconds += spent
            self.slice_seconds_max = max(self.slice_seconds_max, spent)
            await asyncio.sleep(PAUSE_S)
            self._slice_began = perf_counter()

    # ------------------------------------------------------------ what is written down

    def _note(
        self, group_id: str, windows: GroupWindows, fresh: Mapping[Key, Commit], now_ms: int
    ) -> None:
        """Is there something of this group to write?"""
        if fresh:
            windows.has_moved = True
            self._add_samples(group_id, {key: (one,) for key, one in fresh.items()}, now_ms)
        if not windows.whole_at_ms:
            # Not all groups at once.
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
        commits: Mapping[Key, Sequence[Commit]],
        now_ms: int,
        *,
        whole: bool = False,
    ) -> None:
        of_topic: dict[str, dict[int, Sequence[Commit]]] = {}
        for (topic, partition), ones in commits.items():
            if ones:
                of_topic.setdefault(topic, {})[partition] = ones
        for topic, partitions in of_topic.items():
            topic_id = self._reader.topic_id(topic)
            rest = iter(partitions.items())
            while part := dict(islice(rest, PARTITIONS_OF_A_SAMPLE)):
                self._unwritten.append(Sample(group_id, topic, now_ms, whole, part, topic_id))
                self._unwritten_commits += sum(map(len, part.values()))

    async def _write(self, now_ms: int, *, at_least: int) -> None:
        """Append what has gathered, once it is enough to be worth a batch."""
        while self._unwritten and max(self._unwritten_commits, 1) >= at_least:
            part: list[Sample] = []
            weight = 0
            while self._unwritten and weight < COMMITS_AT_ONCE:
                sample = self._unwritten.popleft()
                weight += sum(map(len, sample.partitions.values()))
                part.append(sample)
            self._unwritten_commits -= weight
            self._log.append(part, now_ms)
            self.samples_written += len(part)
            await self._breathe()

    def _tell_left_out(self) -> None:
        """Once for each time that the limit is reached."""
        if self.book.left_out and not self._told_left_out:
            words = "Too many partitions for lag windows; raise rollcall.lag.partitions.max"
            limit = self.book.limits.partitions_max
            self._observe(Warned(words, {"limit": limit, "left_out": self.book.left_out}))
        self._told_left_out = self.book.left_out > 0
