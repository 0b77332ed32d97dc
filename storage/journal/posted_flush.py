"""Posted flush: the usual flush on its way through the group writer.

The event loop posts it, and collects it when the group writer reports. If the flusher has other
work by then, it collects it first: what was posted must be done with before anybody else uses the
journal's files. A failure is left for the flusher, which closes the journal.
"""

import threading
from collections.abc import Callable

from storage.journal.flush import Flush, OnStored, StoredPositions
from storage.journal.group_writer import GroupWriter


class PostedFlush:
    """At most one at a time. `writer` is set before the flusher is started, if there is one."""

    __slots__ = (
        "_flush",
        "_is_synced",
        "_lock",
        "_next",
        "_on_end",
        "_wake",
        "failure",
        "writer",
    )

    def __init__(
        self,
        following: Callable[[], Flush | None],
        on_end: Callable[[Flush, float], StoredPositions],
        wake: Callable[[], None],
        *,
        is_synced: bool,
    ) -> None:
        """`following` prepares the next flush, or leaves it to the flusher; `on_end` is told the
        seconds that it took, after its batches were appended; `wake` wakes the flusher."""
        self._next = following
        self._on_end = on_end
        self._wake = wake
        self._flush: Flush | None = None  # being written, or written and not collected
        self._lock = threading.Lock()  # held while it is collected
        self._is_synced = is_synced
        self.failure: Exception | None = None
        self.writer: GroupWriter | None = None

    def post(self) -> bool:
        """On the loop: post the next flush; False: the flusher has to do it, in Python."""
        writer = self.writer
        if writer is None or not writer.claim():
            return False
        try:
            flush = self._next()
            if flush is None:
                return False
            writes = flush.writes()
            self._flush = flush
            writer.post(writes, self._is_synced)
        except Exception as failure:  # noqa: BLE001  a group may be missing in the file from now on
            self._flush = None
            self.failure = failure
            return False
        finally:
            writer.release()
        return True

    def collect(self, report: OnStored) -> bool:
        """On either thread: report what was stored, once; False if nothing was.

        Under the lock: when the other thread finds that nothing is left to collect, it was reported
        already, so that a later flush cannot be reported before it.
        """
        with self._lock:
            flush, writer = self._flush, self.writer
            if flush is None or writer is None or (said := writer.collect()) is None:
                return False
            seconds, error, failed_at = said
            try:
                if not error:
                    flush.appended()
                    report(self._on_end(flush, seconds), seconds)
                    return True
                self.failure = flush.failure(error, failed_at)
            except Exception as failure:  # noqa: BLE001  memory may be short anywhere
                self.failure = failure
            finally:
                self._flush = None
        self._wake()
        return False
