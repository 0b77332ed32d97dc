"""Ownership: elects, loads and resigns the partitions of a coordinator's topic.

States of a partition: elected in an epoch (from then on clients get COORDINATOR_LOAD_IN_PROGRESS) /
its log is read, those that clients ask for first (loading.py) / served, while its groups are
restored in slices, those that clients ask for at once / resigned. One lock per partition keeps
these steps apart, because they wait for the disk and elections may flap. Requests never wait for a
lock. An embedded node owns all partitions, and each start is an election: the leader epoch grows by
one. There is one `Ownership` for `__consumer_offsets` and one for `__transaction_state`; what is
restored in slices is there only for groups. Kafka's counterparts:
`GroupCoordinatorService.onElection`, `CoordinatorRuntime.scheduleLoadOperation`,
`TransactionCoordinator.onElection`.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Final, Protocol, TypeVar, cast

from broker.loop.clock import SystemClock
from broker.observe.events import (
    LoadProgressed,
    PartFailed,
    PartitionElected,
    PartitionNotLoaded,
    PartitionRead,
    PartitionResigned,
    PartitionsElected,
    PartitionsLoaded,
    PartitionsResigned,
    ShellEvent,
)
from broker.partitions.load_progress import LoadProgress, LoadReport
from broker.partitions.loading import Loading, OwnedLogs, PartitionLoad
from coordinator.loaded_record import LoadedRecord
from protocol.names import OFFSETS_TOPIC, TopicName
from seams.now import Now
from storage.api import Corrupt, Log, LogClosed, LoggedRecord, Position, TopicLog
from storage.batch.record_batch import InvalidBatch
from storage.disk import shortage

R = TypeVar("R")
"""What a coordinator reads of its log, as in loading.py."""

RESTORE_BUDGET: Final = 16_384
"""Bytes of blobs that are restored in one slice: about two milliseconds."""

PROGRESS_INTERVAL_S: Final = 3.0
"""Between two log lines about the progress of a load."""

RELOADS_PER_WINDOW: Final = 5
RELOAD_WINDOW_MS: Final = 60_000
"""A shard that a bug of ours ends is reloaded this often in a window; the next reload waits.

A bug that one client can hit at will must not keep the node busy with loads, and the partition must
be served again when that client is gone.
"""

RELOAD_PAUSE_MS: Final = 200
"""Before the second reload of a window; each further one waits this much longer."""


SHORTAGE_PAUSE_S: Final = 1.0
"""Before the next attempt to load a partition that lacked descriptors, memory or disk space."""


def _nobody_waits(_partition: int) -> None:
    pass


class Coordinator(Loading[R], Protocol[R]):
    """What ownership needs of the coordinator that writes the topic."""

    def begin_load(self, partition: int, log: Log) -> None: ...

    def finish_load(self, partition: int, now: Now) -> None: ...

    def fail_load(self, partition: int, reason: str) -> None: ...

    def restore_slice(self, partition: int, now: Now, budget: int) -> bool: ...

    def load_left(self, partition: int) -> tuple[int, int]: ...

    def resign(self, partition: int, now: Now) -> None: ...

    def on_log_failed(self, partition: int, now: Now) -> None: ...


class Ownership:
    """All of it runs on the event loop."""

    def __init__(
        self,
        logs: OwnedLogs,
        clock: SystemClock,
        observe: Callable[[ShellEvent], None],
        *,
        attach: Callable[[TopicLog], None],
        turned: Callable[[], None],
        topic: TopicName = OFFSETS_TOPIC,
    ) -> None:
        """`attach` opens a log to its readers; `turned` is called after every step."""
        # Set by build.py, before the first election.
        self.coordinator: Coordinator[LoadedRecord] | Coordinator[LoggedRecord]
        self.topic = topic
        self._logs = logs
        self._clock = clock
        self._observe = observe
        self.attach = attach
        self._turned = turned
        self._locks: dict[int, asyncio.Lock] = {}
        self._open: dict[int, tuple[Log, TopicLog]] = {}
        self._epochs: dict[int, int] = {}
        self._queued: dict[int, int] = {}  # elected, not loaded, in order: since when
        self._prioritized: dict[int, None] = {}  # of those, the ones in requests
        self._restoring: dict[int, None] = {}  # served, but not all groups are restored
        self._sized: set[int] = set()  # of the queued ones, those in the progress
        self._progress: LoadProgress | None = None  # of the load that runs
        self._read_ms = 0  # when the log that was read last was read
        self._failed: dict[int, str] = {}
        self._reloads: dict[int, deque[int]] = {}  # when, in ms; those of the last window
        self._awaiting_reload: dict[int, str] = {}  # ended by a bug, not queued yet: why
        self._stored = asyncio.Event()  # set after a flush, and when the journal has failed
        self._journal_failed = False
        self._journal_failures = 0
        self._sleep = asyncio.sleep  # tests set it to their own clock
        self._is_flushing = False
        self.damage: Corrupt | None = None  # the first that a load met
        self.on_load_ended: Callable[[int], None] = _nobody_waits  # of a partition, either way
        self._background: set[asyncio.Task[None]] = set()

    @property
    def owned(self) -> int:
        return len(self._epochs)

    @property
    def loading(self) -> int:
        """Partitions with groups that are not restored."""
        return len(self._queued) + len(self._restoring)

    @property
    def progress(self) -> LoadReport | None:
        """The progress of the running load."""
        return None if self._progress is None else self._progress.report(self._now_ms())

    @property
    def served(self) -> list[int]:
        """Partitions whose log was read."""
        out = self._queued.keys() | self._failed.keys() | self._awaiting_reload.keys()
        return [partition for partition in self._epochs if partition not in out]

    @property
    def writes_are_refused(self) -> bool:
        return self._journal_failed

    def stored_position(self, partition: int) -> Position:
        return self._open[partition][0].stored_position

    @property
    def failed(self) -> dict[int, str]:
        """Partitions that are not served: they could not be loaded, or wait for their reload."""
        return {**self._failed, **self._awaiting_reload} if self._awaiting_reload else self._failed

    def is_loading(self, partition: int) -> bool:
        """Whether its log is still to be read."""
        return partition in self._queued

    @property
    def is_reading(self) -> bool:
        """Whether there are logs that are still to be read."""
        return bool(self._queued)

    def prioritize(self, partition: int) -> None:
        """A request needs it: if it is not loaded yet, it is next."""
        if partition in self._queued:
            self._prioritized[partition] = None

    # Elections.

    async def elect(self, partitions: Iterable[int]) -> None:
        """Take these partitions over; returns when each is loaded or has failed to."""
        started_ms = self._read_ms = self._now_ms()
        epochs = [
            epoch
            for partition in partitions
            if (epoch := self._begin(partition, self._elect(partition))) is not None
        ]
        if epochs:
            self._observe(PartitionsElected(len(epochs), min(epochs), max(epochs), self.topic))
        records = await self._load_queued()
        self._observe(
            PartitionsLoaded(
                len(epochs),
                len(self._failed),
                records,
                self._now_ms() - started_ms,
                self._read_ms - started_ms,
                self.topic,
            )
        )

    def elect_soon(self, partitions: Iterable[int]) -> None:
        """As `elect`, in the background."""
        self._in_background(self.elect(partitions))

    async def resign(self, partition: int) -> None:
        """Give a partition up: what waits there is answered NOT_COORDINATOR."""
        self._queued.pop(partition, None)  # a running load checks this, and stops
        async with self._lock(partition):
            self._drop(partition)

    def resign_all(self) -> None:
        """The last step of a shutdown: nothing is loading or awaited any more."""
        partitions = tuple(self._epochs)
        for partition in partitions:
            self._drop(partition)
        if not partitions:
            return
        self._observe(PartitionsResigned(len(partitions), self.topic))

    async def flush(self, timeout_s: float) -> bool:
        """Wait until everything that was appended is stored; False if that takes too long."""
        self._is_flushing = True
        with suppress(TimeoutError):
            await asyncio.wait_for(self._wait_stored(), timeout_s)
        return self._is_flushed

    async def _wait_stored(self) -> None:
        while not self._is_flushed and not self._journal_failed:
            self._stored.clear()
            await self._stored.wait()

    @property
    def _is_flushed(self) -> bool:
        return all(log.stored_position == log.end_position for log, _ in self._open.values())

    def _drop(self, partition: int) -> None:
        epoch = self._epochs.pop(partition, None)
        if epoch is None:
            return
        self._queued.pop(partition, None)
        self._restoring.pop(partition, None)
        self._prioritized.pop(partition, None)
        self._failed.pop(partition, None)
        self._awaiting_reload.pop(partition, None)
        self.coordinator.resign(partition, self._clock.now())
        self._observe(PartitionResigned(partition, epoch, self.topic))
        self._turned()

    def _elect(self, partition: int) -> int | Exception:
        """In any thread, because it writes files: the epoch that begins, or why none does."""
        try:
            return self._logs.elect(partition)
        except (OSError, Corrupt, MemoryError) as error:
            return error

    def _begin(self, partition: int, elected: int | Exception) -> int | None:
        """From here on clients get COORDINATOR_LOAD_IN_PROGRESS."""
        try:
            if isinstance(elected, Exception):
                raise elected
            self._open[partition] = self._logs.open(partition)
        except (OSError, Corrupt, MemoryError) as error:
            self._epochs[partition] = -1
            self._fail(partition, error)
            return None
        epoch = self._epochs[partition] = elected
        self._enqueue(partition)
        self._observe(PartitionElected(partition, epoch, self.topic))
        return epoch

    def _enqueue(self, partition: int) -> None:
        self._awaiting_reload.pop(partition, None)
        self.coordinator.begin_load(partition, self._open[partition][0])
        self._queued[partition] = self._now_ms()

    # Loading.

    async def _load_queued(self) -> int:
        """Load what is elected, the prioritized first, and restore all groups; the records read."""
        records = 0
        begins = self._progress is None
        progress = self._progress = self._progress or LoadProgress(self._now_ms())
        reporting = asyncio.create_task(self._report_progress()) if begins else None
        try:
            while self._queued or self._restoring:
                if not self._queued:
                    self._restore_slice(progress)
                    await asyncio.sleep(0)
                    continue
                await self._add_sizes(progress)
                partition = next(iter(self._prioritized or self._queued), None)
                if partition is None:
                    continue  # resigned during the survey
                self._prioritized.pop(partition, None)
                async with self._lock(partition):
                    if partition in self._queued:
                        records += await self._load(partition, progress)
        finally:
            if reporting is not None:
                reporting.cancel()
                self._progress = None
        return records

    async def _add_sizes(self, progress: LoadProgress) -> None:
        """Add the sizes of those that are new in the queue to the progress."""
        unknown = [partition for partition in self._queued if partition not in self._sized]
        if not unknown:
            return
        self._sized.update(unknown)
        loop = asyncio.get_running_loop()
        try:
            found = await loop.run_in_executor(None, self._logs.load_sizes, unknown)
        except OSError:
            return  # the load of that partition reports it
        for log_bytes, snapshot_bytes in found.values():
            progress.expect(log_bytes, snapshot_bytes)

    async def _report_progress(self) -> None:
        while True:
            await asyncio.sleep(PROGRESS_INTERVAL_S)
            report = self.progress
            if report is not None:
                self._observe(LoadProgressed(report, self.topic))

    async def _load(self, partition: int, progress: LoadProgress) -> int:
        queued_ms, started_ms = self._queued[partition], self._now_ms()
        log = self._open[partition][1]
        # What it reads goes from one of its methods into another.
        coordinator = cast("Coordinator[object]", self.coordinator)
        load = PartitionLoad(self._logs, coordinator, self._observe, progress)
        try:
            records = await load.run(
                partition,
                log,
                lambda: partition in self._queued,
                # A second reload does not use the snapshot, which may be the cause.
                use_snapshot=len(self._reloads.get(partition, ())) < 2,
            )
        except Exception as error:  # noqa: BLE001 - whatever is in a log, it fails its partition
            self._dequeue(partition)
            self.coordinator.fail_load(partition, _reason(error))
            epoch = self._epochs[partition]
            self._observe(PartitionNotLoaded(partition, epoch, _reason(error), self.topic))
            self._fail(partition, error)
            self.on_load_ended(partition)
            return 0
        if not self._dequeue(partition):
            return records  # it was resigned while it was read
        self.coordinator.finish_load(partition, self._clock.now())
        progress.read(self.coordinator.load_left(partition)[0])
        self._restoring[partition] = None
        self.attach(log)
        self.on_load_ended(partition)
        self._turned()
        self._observe(
            PartitionRead(
                partition,
                self._epochs[partition],
                records,
                log.size_bytes,
                self._now_ms() - started_ms,
                started_ms - queued_ms,
                self.topic,
            )
        )
        return records

    def _dequeue(self, partition: int) -> bool:
        self._sized.discard(partition)
        if self._queued.pop(partition, None) is None:
            return False
        self._read_ms = self._now_ms()
        return True

    def _restore_slice(self, progress: LoadProgress) -> None:
        """Restore some groups that no request has needed yet."""
        partition = next(iter(self._restoring))
        groups, cost = self.coordinator.load_left(partition)
        more = self.coordinator.restore_slice(partition, self._clock.now(), RESTORE_BUDGET)
        groups_left, cost_left = self.coordinator.load_left(partition)
        progress.ready(groups - groups_left, cost - cost_left)
        self._turned()
        if not more:
            self._restoring.pop(partition, None)

    def _fail(self, partition: int, error: Exception) -> None:
        self._failed[partition] = _reason(error)
        if isinstance(error, Corrupt):
            self.damage = self.damage or error
        if shortage(error) is not None:
            self._in_background(self._try_again(partition))
        elif not isinstance(error, OSError | Corrupt | InvalidBatch):
            self._observe(PartFailed(f"loading of {self._named(partition)}", error))

    # Loading again.

    async def _try_again(self, partition: int) -> None:
        """Load after a shortage; if it fails for the same reason, this runs again."""
        await self._sleep(SHORTAGE_PAUSE_S)
        async with self._lock(partition):
            if partition not in self._epochs or partition not in self._failed:
                return  # it was resigned, or loaded meanwhile
            if self._epochs[partition] >= 0:
                del self._failed[partition]
                self._open_again(partition)
            else:
                loop = asyncio.get_running_loop()
                elected = await loop.run_in_executor(None, self._elect, partition)
                if self._failed.pop(partition, None) is None:
                    return  # the daemon stops
                self._begin(partition, elected)
        await self._load_queued()

    def on_flush(self) -> None:
        """The journal has stored something."""
        if self._reloads or self._is_flushing:
            self._stored.set()

    def shard_failed(self, partition: int, error: Exception) -> None:
        """A bug of ours ended a shard: reload what is on the disk."""
        if isinstance(error, LogClosed):
            return  # no bug: the journal has just failed, and reports it in a moment
        self._observe(PartFailed(f"shard of {self._named(partition)}", error))
        self._restoring.pop(partition, None)
        self._awaiting_reload[partition] = _reason(error)
        self._in_background(self._reload(partition))

    def journal_failed(self) -> None:
        """Nothing more is stored: serve what is on the disk, and refuse all writes."""
        self._journal_failed = True
        self._journal_failures += 1
        self._stored.set()
        self._load_all_again()

    def journal_reopened(self, first: Callable[[], Awaitable[None]]) -> None:
        """It takes writes again, and the disk may have more than what was loaded since.

        `first` runs before anything is loaded again.
        """
        self._in_background(self._serve_again(self._journal_failures, first))

    async def _serve_again(self, failures: int, first: Callable[[], Awaitable[None]]) -> None:
        await first()
        await self._load_queued()  # a load that still runs uses the log of before
        if failures == self._journal_failures:
            self._journal_failed = False
            self._load_all_again()

    def _load_all_again(self) -> None:
        now = self._clock.now()
        for partition in tuple(self._epochs):
            if partition in self._failed or partition in self._queued:
                continue
            self.coordinator.on_log_failed(partition, now)
            self._restoring.pop(partition, None)
            self._awaiting_reload.pop(partition, None)
            self._open_again(partition)
        self._turned()
        self._in_background(self._load_again())

    def _open_again(self, partition: int) -> None:
        """With the end of the log as it is in the journal now."""
        try:
            self._open[partition] = self._logs.open(partition)
        except (OSError, Corrupt, MemoryError) as error:
            self._fail(partition, error)
        else:
            self._enqueue(partition)

    async def _load_again(self) -> None:
        await self._load_queued()

    def _reload_pause_ms(self, partition: int) -> int:
        """How long this reload waits; it counts from now on."""
        now_ms = self._now_ms()
        recent = self._reloads.setdefault(partition, deque(maxlen=RELOADS_PER_WINDOW))
        while recent and recent[0] <= now_ms - RELOAD_WINDOW_MS:
            recent.popleft()
        pause_ms = RELOAD_PAUSE_MS * len(recent)
        if len(recent) == RELOADS_PER_WINDOW:
            pause_ms = max(pause_ms, recent[0] + RELOAD_WINDOW_MS - now_ms)
        recent.append(now_ms + pause_ms)
        return pause_ms

    async def _reload(self, partition: int) -> None:
        await self._sleep(self._reload_pause_ms(partition) / 1000)
        async with self._lock(partition):
            if partition not in self._awaiting_reload:
                return  # it was resigned, or reloaded for another reason
            log = self._open[partition][0]
            # What the shard appended before it failed is not stored yet; then the log is complete.
            while log.stored_position < log.end_position and not self._journal_failed:
                self._stored.clear()
                await self._stored.wait()
            if partition in self._awaiting_reload:
                self._enqueue(partition)
        await self._load_queued()

    def _named(self, partition: int) -> str:
        words = f"partition {partition}"
        return words if self.topic == OFFSETS_TOPIC else f"{words} of {self.topic}"

    def _in_background(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _now_ms(self) -> int:
        return self._clock.now().mono_ms

    def _lock(self, partition: int) -> asyncio.Lock:
        return self._locks.setdefault(partition, asyncio.Lock())


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, OSError | Corrupt | InvalidBatch) else repr(error)
