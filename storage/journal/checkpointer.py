"""Checkpoint: syncs the segments that a write-ahead file covers, so that the file can be reused.

While commits go on in the other file, `Checkpointer` syncs the segments of every partition that the
passed file holds batches of, writes the recovery points and lets the file begin its next pass. That
is some fifty fsyncs, so it has a thread of its own; without threads, `run` does it when called.
`journal.py` starts one when a file has enough, and waits for it only before it needs the file.

The disk is shared with the commits, whose fsyncs queue behind these. So the thread pauses after
each fsync for several times as long as it took, unless the flusher has begun to wait.
"""

import threading
from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Final

from storage.journal.write_ahead_pair import WriteAheadPair
from storage.log.log_store import LogStore
from storage.log.partition_log import PartitionLog

_REST: Final = 4.0  # times as long as the sync took: a fifth of the disk's time is used
_REST_MAX_S: Final = 0.1


class Checkpointer:
    """At most one checkpoint at a time. `begin` and `finish` belong to the flusher's thread."""

    __slots__ = (
        "_files",
        "_is_awaited",
        "_is_due",
        "_on_end",
        "_store",
        "_thread",
        "checkpoints",
        "failure",
        "is_threaded",
        "logs",
        "seconds",
        "wait_seconds",
    )

    def __init__(self, store: LogStore, on_end: Callable[[], None]) -> None:
        """`on_end` is called in the checkpoint's thread, after success or failure."""
        self._store = store
        self._on_end = on_end
        self._files: WriteAheadPair | None = None
        self._is_awaited = threading.Event()
        self._is_due = False
        self._thread: threading.Thread | None = None
        self.is_threaded = False
        self.logs: dict[PartitionLog, None] = {}  # that the passed file has batches of
        self.failure: Exception | None = None
        self.checkpoints = 0
        self.seconds = 0.0
        self.wait_seconds = 0.0  # spent by the flusher

    @property
    def is_running(self) -> bool:
        """Whether a thread runs a checkpoint."""
        return self._is_due and self.failure is None and self._thread is not None

    def begin(self, files: WriteAheadPair, logs: dict[PartitionLog, None]) -> None:
        """Start the checkpoint of the file that was just passed, which covers these logs."""
        assert not self._is_due, "one checkpoint at a time"
        self._files, self.logs = files, logs
        self._is_due = True
        self._is_awaited.clear()
        if self.is_threaded:
            self._thread = threading.Thread(target=self.run, name="journal-checkpoint", daemon=True)
            self._thread.start()

    def run(self) -> bool:
        """Run the checkpoint that is due; False if none is, or if it fails."""
        if not self._is_due or self.failure is not None:
            return False
        assert self._files is not None
        started = perf_counter()
        try:
            self.make_durable(self.logs, paced=self._thread is not None)
            self._files.renew_passed()
        except Exception as failure:  # noqa: BLE001  the flusher reports any failure
            self.failure = failure
            self._on_end()
            return False
        self.checkpoints += 1
        self.seconds += perf_counter() - started
        self._is_due = False
        self._on_end()
        return True

    def finish(self) -> None:
        """Wait until no checkpoint is due. Raises what the checkpoint raised."""
        if not self._is_due:
            return
        started = perf_counter()
        if self._thread is None:
            self.run()
        self.join()
        self.wait_seconds += perf_counter() - started
        if self.failure is not None:
            raise self.failure

    def join(self) -> None:
        """Wait for the thread, whether it succeeds or fails."""
        self._is_awaited.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def forget(self) -> None:
        """Drop the checkpoint: its logs were made durable by other means."""
        self.join()
        self._is_due = False
        self.logs = {}
        self.failure = None

    def make_durable(self, logs: Iterable[PartitionLog], *, paced: bool = False) -> None:
        """Sync these logs, then write their recovery points."""
        is_any = False
        for log in logs:
            started = perf_counter()
            log.flush()
            is_any = True
            if paced:
                took_s = perf_counter() - started
                self._is_awaited.wait(min(_REST * took_s, _REST_MAX_S))
        if is_any:
            self._store.write_checkpoints()
