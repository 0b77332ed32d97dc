"""Journal: one queue, one flusher and one fsync for the appends of many partitions.

A shard appends to its `JournaledLog`: the batch is encoded, gets its offsets and is queued; nothing
waits. The flusher takes what was queued (group commit: group_commit.py), writes it as one group to
the write-ahead file, syncs it (`rollcall.flush=commit`), appends the batches to their segments
(page cache only) and reports the stored positions in one callback. What arrives meanwhile makes the
next group. When the file has enough, the flusher goes on in the other one while a checkpoint syncs
the segments of all partitions that the first one holds batches of, in a thread of its own, so that
no commit waits for that.

A failed write or fsync closes the journal: nobody can know what a failed fsync left in the page
cache, and a second fsync would report success for lost pages. Only if a resource alone was short
(disk space, memory, file descriptors), it opens again once there is some (`try_reopen`): the
segments are reconciled as after a crash, and both files start a new pass. `recovery.py` does that,
and the recovery after a crash.

In the compiled build the loop prepares the usual flush, and the flusher's thread writes it without
the interpreter (posted_flush.py). While one is posted, nobody else uses the files.

Threads: `append`, `has_room`, `flush_delivered`, `failure_delivered` and `collect` belong to the
event loop's thread, the checkpoint to its own, all else to the flusher's. The queue is a deque,
whose two ends need no lock; each counter has one writer at a time. Without `start` there are no
threads: `pump` does one flush, and `checkpointer.run` the checkpoint that is due; the simulator and
tests in virtual time use the journal in this way. Kafka has no counterpart: it syncs each file.
"""

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable
from time import monotonic, perf_counter

from storage.api import LogClosed, TopicPartition
from storage.disk import Disk, shortage
from storage.journal import write_ahead
from storage.journal.checkpointer import Checkpointer
from storage.journal.flush import Flush, OnStored, StoredPositions, take
from storage.journal.group_commit import Defer, GroupCommit, run_at_once
from storage.journal.group_writer import group_writer
from storage.journal.journal_limits import MAX_DECLARE_BYTES, JournalLimits
from storage.journal.journaled_log import Entry, JournaledLog
from storage.journal.journaled_view import JournaledView
from storage.journal.posted_flush import PostedFlush
from storage.journal.recovery import Recovered, recover, salvage
from storage.journal.write_ahead_pair import WriteAheadPair
from storage.log.log_store import LogStore
from storage.log.partition_log import PartitionLog
from storage.log.retention import is_overfull
from storage.repair.repair_plan import Repaired
from storage.reserve import Reserve

OnJournalFailed = Callable[[Exception], None]


class Journal:
    """The write-ahead files and their flusher; makes the JournaledLog of each partition."""

    __slots__ = (
        "_atomic",
        "_declared",
        "_disk",
        "_dispensable",
        "_enqueued_bytes",
        "_flush_began_s",
        "_flushed_bytes",
        "_flusher",
        "_group_commit",
        "_idle_at_s",
        "_is_failure_delivered",
        "_is_renewal_due",
        "_is_stopping",
        "_is_synced",
        "_limits",
        "_on_failed",
        "_on_reopened",
        "_on_stored",
        "_posted",
        "_queue",
        "_reserve",
        "_store",
        "_tasks",
        "_touched",
        "_write_ahead",
        "checkpointer",
        "closed_because",
        "flush_seconds",
        "is_full",
        "stored_bytes",
        "term",
    )

    def __init__(
        self,
        disk: Disk,
        store: LogStore,
        *,
        on_stored: OnStored,
        on_failed: OnJournalFailed,
        on_reopened: Callable[[], None] = lambda: None,
        is_synced: bool = True,
        limits: JournalLimits | None = None,
        dispensable: Collection[str] = (),
    ) -> None:
        """`is_synced` is `rollcall.flush=commit`. The callbacks run on the flusher's thread.

        Damaged partitions of `dispensable` topics do not forbid a recovery.
        """
        self._dispensable = dispensable
        self._disk = disk
        self._store = store
        self._on_stored = on_stored
        self._on_failed = on_failed
        self._on_reopened = on_reopened
        self._is_synced = is_synced
        self._limits = limits or JournalLimits()
        self._reserve = Reserve(disk, store.path, self._limits.reserve_bytes)
        self._queue: deque[Entry | list[Entry]] = deque()  # a list goes into one flush
        self._atomic: list[Entry] | None = None  # appended since `begin_atomic`
        self._tasks: deque[Callable[[], None]] = deque()  # to run on the flusher's thread
        self._enqueued_bytes = 0  # written by the appending thread only
        self._flushed_bytes = 0  # written by the flusher only
        self._group_commit = GroupCommit(self._limits.linger_ms, self._queue, self._is_urgent)
        self._idle_at_s = 0.0  # when it will have had no flush for `idle_ms`
        self._is_renewal_due = False  # after a recovery, before the first flush
        self._declared: dict[JournaledLog, int] = {}  # in this pass of the active file
        self._touched: dict[PartitionLog, None] = {}  # appended to in this pass
        self.checkpointer = Checkpointer(store, self._group_commit.wake)
        self._is_stopping = False
        self._flusher: threading.Thread | None = None
        self._is_failure_delivered = False
        self.closed_because: str | None = None
        self.is_full = False  # closed by a shortage alone (storage.disk.shortage)
        self._flush_began_s: float | None = None  # of the present flush
        self.term = 0  # rises when the journal opens again; older logs are closed
        self.stored_bytes = 0
        self.flush_seconds = 0.0  # spent in writing and syncing the active file
        self._write_ahead = self._open_files()
        self._posted = PostedFlush(
            self._usual_flush, self._posted_ended, self._group_commit.wake, is_synced=is_synced
        )

    def _open_files(self) -> WriteAheadPair:
        return WriteAheadPair(
            self._disk, self._store.path, self._limits.file_bytes, is_synced=self._is_synced
        )

    # --- the event loop's side -----------------------------------------------------------------

    def log(self, topic_partition: TopicPartition) -> JournaledLog:
        """The log of an open partition, written through this journal from now on."""
        partition_log = self._store.partition_log(topic_partition)
        if partition_log is None:
            raise self._store.damaged.get(topic_partition) or KeyError(topic_partition)
        log = JournaledLog(self, partition_log)
        self._store.set_view(topic_partition, JournaledView(partition_log, log))
        return log

    @property
    def queued_bytes(self) -> int:
        """Bytes that wait for a flush, or are in one."""
        return self._enqueued_bytes - self._flushed_bytes

    @property
    def flush_age_s(self) -> float:
        """How long the present flush has taken so far; 0.0 if there is none."""
        began_s = self._flush_began_s
        return 0.0 if began_s is None else max(perf_counter() - began_s, 0.0)

    def has_room(self) -> bool:
        limits = self._limits
        return (
            self.closed_because is None
            and len(self._queue) < limits.queue_entries
            and self._enqueued_bytes - self._flushed_bytes < limits.queue_bytes
        )

    def enqueue(self, entry: Entry, term: int) -> None:
        """Queue a batch and wake the flusher; costs no system call if it is awake."""
        if self.closed_because is not None or term != self.term:
            raise LogClosed(self.closed_because or "the journal has opened again since")
        if len(entry[1]) > self._limits.batch_bytes:
            raise ValueError(f"{len(entry[1])} bytes exceed batch_bytes {self._limits.batch_bytes}")
        self._enqueued_bytes += len(entry[1])
        if self._atomic is not None:
            self._atomic.append(entry)
            return
        self._queue.append(entry)
        self._group_commit.queued()

    def begin_atomic(self) -> None:
        """Start a batch over several logs: it is stored as a whole or not at all."""
        assert self._atomic is None, "atomic batches do not nest"
        self._atomic = []

    def end_atomic(self) -> None:
        """End the batch. Its entries go into one flush, however large they are together."""
        entries, self._atomic = self._atomic, None
        if entries and self.closed_because is None:
            self._queue.append(entries if len(entries) > 1 else entries[0])
            self._group_commit.queued()

    def run_on_flusher(self, task: Callable[[], None]) -> None:
        """Run a task between two flushes, on the thread that alone changes a journaled log's files.

        It does not run while a checkpoint syncs them. It must not raise.
        """
        self._tasks.append(task)
        self._group_commit.wake()

    def flush_delivered(self) -> None:
        """The loop has delivered the positions of a flush; appends that follow join the next one.

        Entries queued during the flush wait for this call. It is optional, but saves the linger.
        """
        if self._queue:
            self._group_commit.queued()

    def start(self, defer: Defer = run_at_once, report: int | None = None) -> None:
        """Flush from a thread of its own until `close`.

        `defer` runs a callback after the event loop has served the sockets that are readable now.
        `report`: a descriptor that does not block; the loop calls `collect` when 8 bytes were
        written to it. It must stay open until `close` has returned.
        """
        self._group_commit.defer = defer
        if report is not None and (writer := group_writer(report)) is not None:
            self._posted.writer = writer
            self._group_commit.rest_in(writer)
            self._group_commit.post = self._posted.post
        self.checkpointer.is_threaded = True
        self._flusher = threading.Thread(target=self._run, name="journal-flusher", daemon=True)
        self._flusher.start()

    def _usual_flush(self) -> Flush | None:
        """What is queued, for the group writer. None: nothing is, or it is not the usual."""
        if (
            self.closed_because is not None
            or self._is_renewal_due
            or self._is_urgent()
            or self._reserve.is_due
            or not self._queue
        ):
            return None
        entries = self._next_entries()
        flush = None
        are_declared = all(entry[0] in self._declared for entry in entries)
        if are_declared and not self._needs_switch(entries):
            flush = Flush(entries, self._declared, self._declare)
        if flush is None or not flush.find_files(self._write_ahead):
            self._queue.appendleft(entries)
            return None
        self._flush_began_s = perf_counter()
        self._idle_at_s = monotonic() + self._limits.idle_ms / 1000
        return flush

    def _next_entries(self) -> list[Entry]:
        return take(self._queue, self._limits.group_bytes, self._limits.group_entries)

    def collect(self, report: OnStored) -> None:
        """Report what the group writer has stored, once, if it has; `report` must not wait."""
        if self._posted.collect(report) and self._queue:
            self._group_commit.queued()

    def _posted_ended(self, flush: Flush, seconds: float) -> StoredPositions:
        self._flush_began_s = None
        self.flush_seconds += seconds
        stored = self._stored(flush)
        self._group_commit.open()
        return stored

    def failure_delivered(self) -> None:
        """Nobody appends to the logs of this term any more: the journal may open again."""
        self._is_failure_delivered = True

    def close(self) -> bool:
        """Flush what is queued, then a checkpoint; False if the journal had failed or does so now.

        Waits for the flusher and the disk: call it off the event loop.
        """
        self._is_stopping = True
        if self._flusher is not None:
            self._group_commit.wake()
            self._flusher.join()
        while self.pump():
            pass
        if self.closed_because is None:
            try:
                self.checkpointer.finish()
                self._checkpoint_all(self._touched)
            except Exception as failure:  # noqa: BLE001  as in `pump`
                self._fail(failure)
        self.checkpointer.join()
        self._write_ahead.close()
        is_sound = self.closed_because is None
        self.closed_because = self.closed_because or "shut down"
        return is_sound

    # --- the flusher's side --------------------------------------------------------------------

    def _run(self) -> None:
        """The thread ends when the journal is closed for good, and only then."""
        while True:
            try:
                self._work()
            except Exception as failure:  # noqa: BLE001  as in `pump`: memory may be short anywhere
                if self.closed_because is None:
                    self._fail(failure)
            else:
                return

    def _work(self) -> None:
        idle_s, retry_s = self._limits.idle_ms / 1000, self._limits.retry_ms / 1000
        while True:
            self._report_posted()
            if self._is_renewal_due and self.closed_because is None:
                self._renew_after_recovery()
            elif self._has_task:
                self._tasks.popleft()()
            elif self.closed_because is not None:
                if not self.is_full or self._is_stopping:
                    return
                self._queue.clear()  # an append that was concurrent with the failure
                if not self._group_commit.sleep_until_work(retry_s):
                    self.try_reopen()
            elif self._queue or self._has_failed:
                self._group_commit.linger()
                self.pump()
                self._idle_at_s = monotonic() + idle_s
            elif self._is_stopping:
                return
            elif not self._group_commit.sleep_until_work(
                max(self._idle_at_s - monotonic(), 0.0) if self._touched else None
            ):
                self._report_posted()
                if monotonic() >= self._idle_at_s:  # tasks that run meanwhile do not postpone it
                    self._checkpoint_when_idle()
                    self._idle_at_s = monotonic() + idle_s

    def _report_posted(self) -> None:
        """What the group writer did last, unless the loop has collected it: so the files are ours.

        In `wait` the flusher does not rest before it is done.
        """
        self._posted.collect(self._on_stored)

    def _is_urgent(self) -> bool:
        return self._has_task or self._is_stopping or self._has_failed

    @property
    def _has_task(self) -> bool:
        return bool(self._tasks) and not self.checkpointer.is_running

    @property
    def _has_failed(self) -> bool:
        return self._failure is not None and self.closed_because is None

    @property
    def _failure(self) -> Exception | None:
        """Of what other threads did."""
        return self._posted.failure or self.checkpointer.failure

    def pump(self) -> bool:
        """One flush of what is queued; False when there was nothing or the journal is closed."""
        self._report_posted()
        if self.closed_because is not None:
            return False
        if self._failure is not None:
            self._fail(self._failure)
            return False
        if self._is_renewal_due:
            self._renew_after_recovery()
        if not self._queue or self.closed_because is not None:
            return False
        try:
            self._reserve.check()
            entries = self._next_entries()
            seconds = self.flush_seconds
            stored = self._flush(entries)
            self._group_commit.open()
            self._on_stored(stored, self.flush_seconds - seconds)
        except Exception as failure:  # noqa: BLE001  after any failure nothing may be acknowledged
            self._fail(failure)
            return False
        return True

    def _flush(self, entries: list[Entry]) -> StoredPositions:
        """Write and sync one group, append it to the segments; returns the new stored positions."""
        if self._needs_switch(entries):
            self._switch()
        flush = Flush(entries, self._declared, self._declare)
        files = self._write_ahead
        started = self._flush_began_s = perf_counter()
        try:
            files.write(flush.parts)
            if self._is_synced:
                files.sync()
        finally:
            self._flush_began_s = None
        self.flush_seconds += perf_counter() - started
        for log, batches in flush.placed.items():
            log.partition_log.append_placed(batches, batches[-1][2])
        return self._stored(flush)

    def _needs_switch(self, entries: list[Entry]) -> bool:
        """Whether this group goes into the other file."""
        size = sum([len(entry[1]) for entry in entries])
        overhead = write_ahead.BATCH_OVERHEAD * len(entries)
        declares = MAX_DECLARE_BYTES * len({entry[0] for entry in entries} - self._declared.keys())
        files = self._write_ahead
        return size + overhead + declares > files.room or (
            files.written_bytes >= self._limits.pass_bytes and not self.checkpointer.is_running
        )

    def _stored(self, flush: Flush) -> StoredPositions:
        """All of it is durable, and in the segments."""
        stored = []
        for log, batches in flush.placed.items():
            self._touched[log.partition_log] = None
            log.stored_position = batches[-1][1] + 1
            stored.append((log.topic_partition, log.stored_position))
        self._flushed_bytes += flush.size
        self.stored_bytes += flush.size
        return stored

    def _declare(self, log: JournaledLog) -> bytes:
        """The entry that gives the log its number in this pass of the active file."""
        reference = self._declared[log] = len(self._declared)
        partition_log = log.partition_log
        return write_ahead.declare(reference, log.topic_partition, partition_log.topic_id)

    def _fail(self, failure: Exception) -> None:
        short_of = shortage(failure)
        self.is_full = short_of is not None
        self._flush_began_s = None
        self._is_failure_delivered = False
        words = str(failure) if isinstance(failure, OSError) else repr(failure)
        self.closed_because = f"{short_of or 'storage failed'}: {words}"
        self._queue.clear()
        self._on_failed(failure)

    # --- checkpoints ---------------------------------------------------------------------------

    def _switch(self) -> None:
        """Go on in the other file, while a checkpoint syncs the segments that this one covers."""
        self.checkpointer.finish()
        self._write_ahead.switch()
        self._declared.clear()
        touched, self._touched = self._touched, {}
        self.checkpointer.begin(self._write_ahead, touched)

    def _checkpoint_when_idle(self) -> None:
        if self._touched and not self.checkpointer.is_running:
            try:
                self._switch()
            except Exception as failure:  # noqa: BLE001  as in `pump`
                self._fail(failure)

    def _checkpoint_all(self, logs: Iterable[PartitionLog]) -> None:
        """Sync all segments that the two files cover, and start a new pass in both files."""
        self.checkpointer.make_durable(logs)
        self._write_ahead.begin()
        self._is_renewal_due = False
        self._touched.clear()
        self._declared.clear()

    def _renew_after_recovery(self) -> None:
        try:
            self._checkpoint_all(self._touched)
        except Exception as failure:  # noqa: BLE001  as in `pump`
            self._fail(failure)

    def retain(self, partition_log: PartitionLog, now_ms: int) -> int:
        """Enforce a log's retention; how many segments it deleted. Runs on the flusher's thread."""
        if self.closed_because is not None:
            return 0
        if is_overfull(partition_log, now_ms):
            # No start may replay what is deleted: neither file may hold batches of it.
            self.checkpointer.finish()
            self._checkpoint_all(self._touched)
        return partition_log.enforce_retention(now_ms)

    # --- after a start, and after a full disk --------------------------------------------------

    def recover(self) -> Recovered:
        """Replay the journal into the segments; before any `log`. Raises Corrupt, OSError.

        The write-ahead files have it all, durably, when this returns. Syncing the segments, so that
        the files may start a new pass, is the flusher's first work: a load need not wait for some
        hundred fsyncs, only appends do.
        On a full disk the journal may be closed when this returns, as if the disk had filled later:
        the segments have all acknowledged batches. `try_reopen` does it all again.
        """
        recovered, logs = recover(
            self._disk,
            self._write_ahead,
            self._store,
            after_clean_stop=self._store.was_clean,
            dispensable=self._dispensable,
        )
        self._touched.update(dict.fromkeys(logs))
        self._is_renewal_due = True
        try:
            self._write_ahead.secure()
        except OSError as failure:
            if shortage(failure) is None:
                raise
            self._fail(failure)
        return recovered

    def repair(self) -> Repaired | None:
        """Replaces `recover`: leave out what is damaged, and return what that was."""
        logs, repaired = salvage(
            self._disk, self._write_ahead, self._store, after_clean_stop=self._store.was_clean
        )
        self._checkpoint_all(logs)
        return repaired

    def try_reopen(self) -> bool:
        """After a full disk: accept appends again if there is room. No acknowledged batch is lost.

        Batches that failed may have reached the disk all the same: shards must load again.
        """
        if not self.is_full or not self._is_failure_delivered:
            return False
        try:
            self._reserve.check()
            self._reopen()
        except Exception as failure:  # noqa: BLE001  as in `pump`
            if shortage(failure) is not None:
                return False
            self._fail(failure)
            return False
        self._on_reopened()
        return True

    def _reopen(self) -> None:
        self.checkpointer.join()
        touched = {**self.checkpointer.logs, **self._touched}
        for log in touched:
            log.drop_partial_write()
        self._write_ahead.close()
        self._write_ahead = self._open_files()
        _, logs = recover(
            self._disk,
            self._write_ahead,
            self._store,
            after_clean_stop=False,
            dispensable=self._dispensable,
        )
        self._checkpoint_all({**touched, **dict.fromkeys(logs)})
        self.checkpointer.forget()
        self._posted.failure = None
        self._queue.clear()
        self._flushed_bytes = self._enqueued_bytes
        self.term += 1
        self.is_full = False
        self.closed_because = None
