"""Log cleaner, the daemon's side: decides which log is cleaned, and when.

Every log.cleaner.backoff.ms, and again at once after a log was cleaned: sealed segments of topics
are synced (Kafka does that when it rolls), every compacted log is inspected, and the dirtiest of
those that need it is cleaned. The pass is a job of the worker process, which does all the reading
and writing. The swap runs in a thread, because it waits for the disk. The event loop only decides.

A log that is deleted or truncated during its pass ends the pass. A log that cannot be cleaned (a
damaged batch, a failed rename) is marked uncleanable until the next start and logged; the others go
on. Replaced files are deleted after file.delete.delay.ms. Kafka's counterparts:
LogCleaner.CleanerThread, LogCleanerManager.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from time import perf_counter
from typing import Final, NamedTuple, TypeVar

from msgspec import Struct

from broker.background.jobs import CLEAN_LOG
from broker.background.pipeline_watermark import Marks, no_marks
from broker.background.worker import JobFailed, WorkerProcess
from broker.loop.clock import SystemClock
from broker.observe.cleaner_events import (
    CleanerEvent,
    CleaningAborted,
    CleaningBegun,
    CleanOffsetReset,
    LogCleaned,
    LogUncleanable,
    PipelineOvertaken,
)
from broker.observe.events import PartFailed
from config.limits import CleanerSettings
from protocol.names import TopicName
from seams.now import Now
from seams.topic_names import is_internal
from storage.api import Corrupt, TopicPartition
from storage.cleaner.cleaner import (
    LogToClean,
    inspect_log,
    plan_pass,
    read_clean_offsets,
    swap_in_pass,
)
from storage.cleaner.messages import LastOfProducer, PassResult
from storage.cleaner.selection import Unread, filthiest
from storage.disk import Disk
from storage.journal.journal import Journal
from storage.journal.journaled_view import JournaledView
from storage.log.log_store import LogStore
from storage.log.partition_log import PartitionLog
from storage.log.segment_swap import SwapRefused, remove_cleaned, remove_deleted
from storage.snapshot import covers_up_to
from topics.producers import SEQUENCE_MAX, ProducerEntry
from topics.registry import TopicRegistry

ATTEMPTS_MAX: Final = 3
"""Passes of one log that may fail in a row before it is marked uncleanable."""

T = TypeVar("T")

ActiveProducers = Callable[[TopicPartition], Mapping[int, LastOfProducer] | None]
"""The active producers of a partition; None where they are not known."""

Cleaned = Callable[[TopicPartition, int], None]
"""Called after each pass: nothing of aborted transactions is left in the log before this offset."""


def ignore_cleaned(_key: TopicPartition, _up_to: int) -> None:
    pass


class CleanerStats(Struct):
    """For metrics: totals, and of the last pass what Kafka's metrics show."""

    runs: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    seconds: float = 0.0
    last_run_ms: int | None = None  # monotonic
    last_pass_seconds: float = 0.0
    last_utilization: float = 0.0
    last_recopy_ratio: float = 0.0
    max_dirty_ratio: float = 0.0
    max_delay_ms: int = 0
    uncleanable_bytes: int = 0
    aborted: int = 0
    kept_for_pipeline_bytes: int = 0
    pipeline_overtaken: int = 0


class Candidate(NamedTuple):
    key: TopicPartition
    log: PartitionLog
    stable_to: int
    survey: LogToClean
    unread: Unread | None


class LogCleaner:
    """Runs on the event loop, except for the functions given to `_in_thread`."""

    def __init__(
        self,
        disk: Disk,
        store: LogStore,
        journal: Journal,
        worker: WorkerProcess,
        clock: SystemClock,
        observe: Callable[[CleanerEvent | PartFailed], None],
        settings: CleanerSettings,
        *,
        producers: ActiveProducers,
        marks: Marks = no_marks,
        cleaned: Cleaned = ignore_cleaned,
    ) -> None:
        self._disk = disk
        self._store = store
        self._journal = journal
        self._worker = worker
        self._clock = clock
        self._observe = observe
        self._settings = settings
        self._producers = producers
        self._marks = marks
        self._cleaned = cleaned
        self._task: asyncio.Task[None] | None = None
        self._awake = asyncio.Event()
        self._current: TopicPartition | None = None
        self._pass: asyncio.Task[dict[str, object]] | None = None
        self._deletions: list[
            tuple[int, PartitionLog, list[str]]
        ] = []  # when due, of which log, which files
        self._latest: PartitionLog | None = None  # a stop during its pass leaves files
        self._failed: dict[PartitionLog, int] = {}  # passes that failed in a row
        self._blocked: dict[PartitionLog, int] = {}  # no progress up to this offset
        self.uncleanable: dict[PartitionLog, str] = {}
        self.stats = CleanerStats()

    def start(self) -> None:
        if self._settings.is_enabled:
            self._task = asyncio.get_running_loop().create_task(self._run_forever())

    async def stop(self) -> None:
        """End what runs; nothing of it is touched any more when this returns."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self._worker.stop()

    async def remove_leftovers(self) -> None:
        """After `stop`, once there are no readers: a clean stop leaves no files to remove."""
        # A file that cannot be removed is removed by the next start.
        for _, log, paths in self._deletions:
            with suppress(OSError):
                await self._in_thread(remove_deleted, self._disk, log, paths)
        self._deletions.clear()
        if self._latest is not None and self._latest.is_open:
            await self._in_thread(self._sweep, self._latest)

    def use(self, settings: CleanerSettings) -> None:
        """From the next pass on; a shorter `log.cleaner.backoff.ms` ends the present pause."""
        self._settings = settings
        self._awake.set()

    def topic_deleted(self, name: str) -> None:
        """Cancel its pass, if one of its logs is being cleaned."""
        if self._current is not None and self._current.topic == name and self._pass is not None:
            self._pass.cancel()

    async def _run_forever(self) -> None:
        while True:
            try:
                was_busy = await self.run_once()
            except Exception as error:  # noqa: BLE001 - a bug of ours must not end the cleaner
                self._observe(PartFailed("log cleaner", error))
                was_busy = False
            if not was_busy:
                self._awake.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._awake.wait(), self._pause_s())

    def _pause_s(self) -> float:
        due = [due_ms for due_ms, _, _ in self._deletions]
        until_due_ms = min(due, default=1 << 62) - self._clock.now().mono_ms
        return max(min(self._settings.backoff_ms, until_due_ms), 1) / 1000

    # --- one run -------------------------------------------------------------------------------

    async def run_once(self) -> bool:
        """Clean the log that needs it most; False if none did."""
        now = self._clock.now()
        await self._remove_replaced(now)
        if self._journal.closed_because is not None:
            return False  # the disk has failed or is full: write nothing
        self.stats.last_run_ms = now.mono_ms
        logs = self._compacted()
        self._roll_old(logs, now.wall_ms)
        marks = self._marks([key for key, _ in logs])
        inspected = await self._in_thread(self._survey_all, logs, now.wall_ms, marks)
        chosen = self._choose(inspected)
        return chosen is not None and await self._clean(chosen, now)

    def _compacted(self) -> list[tuple[TopicPartition, PartitionLog]]:
        found = [
            (key, log)
            for key in self._store.partitions()
            if (log := self._store.partition_log(key)) is not None
            and log.settings.cleanup_compact
            and log.is_open
        ]
        present = {log for _, log in found}
        for table in (self.uncleanable, self._failed, self._blocked):
            for log in table.keys() - present:
                del table[log]
        return found

    def _roll_old(self, logs: Sequence[tuple[TopicPartition, PartitionLog]], now_ms: int) -> None:
        """Roll a quiet journaled log's segment at its age (topics: maintenance.py). One at a time:
        it costs two fsyncs in the thread that all commits wait for."""
        views = self._store.partitions()
        journaled = [log for key, log in logs if isinstance(views.get(key), JournaledView)]

        def roll_one() -> None:
            with suppress(OSError, Corrupt):  # the next append reports it
                any(log.roll_if_old(now_ms) for log in journaled)

        if journaled:
            self._journal.run_on_flusher(roll_one)

    def _choose(self, inspected: Sequence[Candidate]) -> Candidate | None:
        stats = self.stats
        stats.uncleanable_bytes = sum(
            candidate.survey.dirty.cleanable_bytes
            for candidate in inspected
            if candidate.log in self.uncleanable
        )
        stats.kept_for_pipeline_bytes = sum(candidate.survey.kept_bytes for candidate in inspected)
        candidates = [
            candidate
            for candidate in inspected
            if candidate.log not in self.uncleanable
            and self._blocked.get(candidate.log) != candidate.survey.found.first_uncleanable
        ]
        levels = [candidate.survey.dirty for candidate in candidates]
        stats.max_dirty_ratio = max([level.ratio for level in levels], default=0.0)
        stats.max_delay_ms = max([level.delay_ms for level in levels], default=0)
        place = filthiest(
            (candidate.survey.dirty, candidate.log.settings) for candidate in candidates
        )
        return None if place is None else candidates[place]

    # --- in a thread ---------------------------------------------------------------------------

    def _survey_all(
        self,
        logs: Sequence[tuple[TopicPartition, PartitionLog]],
        now_ms: int,
        marks: Mapping[TopicPartition, Unread],
    ) -> list[Candidate]:
        self._sync_sealed(logs)
        offsets = self._read_offsets()
        inspected: list[Candidate] = []
        resets: dict[PartitionLog, int] = {}
        for key, log in logs:
            view = self._store.partitions().get(key)
            if view is None or not log.is_open:
                continue
            stable_to = min(self._store.durable_to(log), view.high_watermark)
            unread = marks.get(key)
            try:
                inspection = inspect_log(
                    log,
                    checkpoint=offsets.get(key),
                    stable_to=stable_to,
                    now_ms=now_ms,
                    unread=unread,
                )
            except (OSError, Corrupt) as fault:
                self._call_on_loop(self._mark, key, log, str(fault))
                continue
            if not covers_up_to(self._disk, log.path, inspection.found.first_uncleanable):
                continue  # not before there is a newer snapshot
            if inspection.found.reset_because is not None:
                resets[log] = inspection.found.first_dirty
                if not log.settings.cleanup_delete:  # there retention moves the start often
                    reset = CleanOffsetReset(key, inspection.found.reset_because)
                    self._call_on_loop(self._observe, reset)
            inspected.append(Candidate(key, log, stable_to, inspection, unread))
        if resets:
            self._store.set_clean_offsets(resets)
        return inspected

    def _sync_sealed(self, logs: Sequence[tuple[TopicPartition, PartitionLog]]) -> None:
        views, is_any = self._store.partitions(), False
        for key, log in logs:
            if isinstance(views.get(key), JournaledView) or not log.is_open:
                continue  # the journal's checkpoints do it
            segments = log.segments
            if segments and self._store.durable_to(log) < segments[-1].base_offset:
                try:
                    log.sync_sealed()
                except OSError as fault:
                    self._call_on_loop(self._mark, key, log, str(fault))
                else:
                    is_any = True
        if is_any:
            self._store.write_checkpoints()

    def _read_offsets(self) -> dict[TopicPartition, int]:
        try:
            return read_clean_offsets(self._disk, self._store.path)
        except Corrupt as fault:
            # Begin as if nothing was ever cleaned: that costs time only.
            self._call_on_loop(self._observe, PartFailed("cleaner-offset-checkpoint", fault))
            self._disk.remove(fault.path)
            return {}

    def _swap(self, log: PartitionLog, result: PassResult) -> list[str]:
        replaced = swap_in_pass(self._disk, log, result)
        self._store.set_clean_offsets({log: result.end_offset})
        return replaced

    def _sweep(self, log: PartitionLog) -> None:
        with suppress(OSError):
            remove_cleaned(self._disk, log.path)

    def _call_on_loop(self, callback: Callable[..., object], *arguments: object) -> None:
        self._loop.call_soon_threadsafe(callback, *arguments)

    # --- one log -------------------------------------------------------------------------------

    async def _clean(self, chosen: Candidate, now: Now) -> bool:
        key, log, stable_to, (found, dirty, _), unread = chosen
        self._observe(
            CleaningBegun(
                key, found.first_dirty, found.first_uncleanable, dirty.ratio, dirty.delay_ms > 0
            )
        )
        job = plan_pass(
            log,
            found,
            stable_to=stable_to,
            now_ms=now.wall_ms,
            map_bytes=self._settings.map_bytes,
            producers=self._producers(key),
        )
        began_s = perf_counter()
        result = await self._run(key, log, job.to_message())
        if result is None:
            return False
        if result.end_offset <= found.first_dirty:
            self._blocked[log] = found.first_uncleanable  # by an open transaction
            return False
        segments_before = len(log.segments)
        try:
            replaced = await self._in_thread(self._swap, log, result)
        except SwapRefused as refused:
            await self._in_thread(self._sweep, log)
            self._abort(key, str(refused))
            return False
        except OSError as fault:
            self._mark(key, log, f"cannot swap in what was cleaned: {fault}")
            return False
        self._failed.pop(log, None)
        # Not the end of this pass: somebody may be reading what it has replaced.
        self._cleaned(key, found.first_dirty)
        due_ms = self._clock.now().mono_ms + log.settings.file_delete_delay_ms
        if replaced:
            self._deletions.append((due_ms, log, replaced))
        seconds = perf_counter() - began_s
        self._count(result, seconds)
        self._observe(
            LogCleaned(key, found.first_dirty, result, segments_before, len(log.segments), seconds)
        )
        if unread is not None and result.end_offset > unread.begins_at:
            self.stats.pipeline_overtaken += 1
            begin = max(found.first_dirty, unread.begins_at)
            self._observe(PipelineOvertaken(key, begin, result.end_offset))
        return True

    async def _run(
        self, key: TopicPartition, log: PartitionLog, message: dict[str, object]
    ) -> PassResult | None:
        """The result of the pass; None if it did not finish."""
        arguments: dict[str, object] = {
            "pass": message,
            "io_max_bytes_per_second": self._settings.io_max_bytes_per_second,
        }
        self._current, self._latest = key, log
        loop = asyncio.get_running_loop()
        self._pass = loop.create_task(self._worker.run(CLEAN_LOG, arguments))
        try:
            return PassResult.from_message(await self._pass)
        except JobFailed as failure:
            self._job_failed(key, log, failure)
        except asyncio.CancelledError:
            us = asyncio.current_task()
            if us is not None and us.cancelling():
                raise
            self._abort(key, "the topic was deleted")
        finally:
            if not self._pass.done():
                self._pass.cancel()
                await asyncio.wait([self._pass])
            self._current = self._pass = None
        if log.is_open:
            await self._in_thread(self._sweep, log)
        return None

    def _job_failed(self, key: TopicPartition, log: PartitionLog, failure: JobFailed) -> None:
        if not log.is_open:
            self._abort(key, "the topic was deleted")
            return
        attempts = self._failed[log] = self._failed.get(log, 0) + 1
        # A damaged batch stays damaged; a full disk or a killed process may not happen again.
        if failure.kind != Corrupt.__name__ and attempts < ATTEMPTS_MAX:
            self._abort(key, str(failure))
        else:
            self._mark(key, log, str(failure))

    def _abort(self, key: TopicPartition, reason: str) -> None:
        self.stats.aborted += 1
        self._observe(CleaningAborted(key, reason))

    def _mark(self, key: TopicPartition, log: PartitionLog, reason: str) -> None:
        if log not in self.uncleanable:
            self.uncleanable[log] = reason
            self._observe(LogUncleanable(key, reason))

    def _count(self, result: PassResult, seconds: float) -> None:
        stats = self.stats
        stats.runs += 1
        stats.bytes_read += result.map_bytes_read + result.bytes_read
        stats.bytes_written += result.bytes_written
        stats.seconds += seconds
        stats.last_pass_seconds = seconds
        stats.last_utilization = result.map_utilization
        stats.last_recopy_ratio = result.bytes_written / max(result.bytes_read, 1)

    async def _remove_replaced(self, now: Now) -> None:
        due = [deletion for deletion in self._deletions if deletion[0] <= now.mono_ms]
        if not due:
            return
        self._deletions = [deletion for deletion in self._deletions if deletion[0] > now.mono_ms]
        for _, log, paths in due:
            # A file that cannot be removed is removed by the next start.
            with suppress(OSError):
                await self._in_thread(remove_deleted, self._disk, log, paths)

    async def _in_thread(self, work: Callable[..., T], *arguments: object) -> T:
        """To cancel this waits until the thread is done: two threads must not rename at once."""
        self._loop = asyncio.get_running_loop()
        future = self._loop.run_in_executor(None, work, *arguments)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            await asyncio.wait([future])
            raise


def active_producers(
    registry: TopicRegistry, key: TopicPartition
) -> Mapping[int, LastOfProducer] | None:
    """The `ActiveProducers` of a data plane; None where they are not known."""
    partition = registry.partition(*key)
    if partition is None or is_internal(TopicName(key.topic)):
        return {}  # internal topics have no producer ids
    if partition.producers is None:
        return None
    return {
        producer_id: LastOfProducer(_last_offset(entry), entry.epoch)
        for producer_id, entry in tuple(partition.producers.entries.items())  # a thread adds
    }


def _last_offset(entry: ProducerEntry) -> int | None:
    if not entry.batches:
        return None
    sent = entry.batches[-1]
    return sent.first_offset + ((sent.last_sequence - sent.first_sequence) & SEQUENCE_MAX)
