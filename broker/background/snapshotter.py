"""Snapshotter: takes a snapshot where a start would have to read too much of the log.

Every second it checks the partitions. One whose log has grown by `rollcall.snapshot.bytes` since
its newest snapshot, or by half of that snapshot where it is larger, gets a new one, the largest
growth first. If all logs together have grown by `ALL_PARTITIONS` times as much, smaller growths
count too. So what a start reads is bounded, for each log and in total, and writing snapshots stays
in proportion to writing the logs. The work itself is a job of the worker process (snapshot_job.py),
in the background unless it falls behind;
this module decides, and handles failures: a failure only makes a start longer, so it is logged, and
tried again when the log has grown as much once more. A clean stop takes the snapshots that are
worth it, for as long as a stop may take.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from broker.background.jobs import TAKE_SNAPSHOT, URGENT_JOB
from broker.background.worker import JobFailed
from broker.loop.clock import SystemClock
from broker.observe.events import PartFailed, SnapshotFailed, SnapshotTaken
from broker.partitions.loading import LoadSize
from broker.partitions.ownership import Ownership
from storage.log.partition_log import PartitionLog

SNAPSHOT_ABANDONED: Final = "SnapshotAbandoned"
"""The `kind` of a job that the log cleaner interrupted: no failure."""

CHECK_INTERVAL_S: Final = 1.0

FIRST_CHECK_S: Final = 2.0
"""After a load: then all clients come back at once, and a worker process would take a core."""

STOP_LIMIT_S: Final = 2.0
"""How long a clean stop may take for snapshots."""

WORTH_IT_AT_STOP: Final = 16
"""A stop takes a snapshot from this part of `rollcall.snapshot.bytes` on."""

ALL_PARTITIONS: Final = 16
"""What all partitions together may have behind their snapshots, in `rollcall.snapshot.bytes`: 16
MiB are some 200,000 commits, which a start reads in a few tenths of a second."""

SMALL_GROWTH: Final = 16
"""Above that, a partition with this part of `rollcall.snapshot.bytes` gets a snapshot."""

URGENT: Final = 2
"""Above this many times as much, a snapshot is no background work any more: on a busy machine the
worker's low priority would leave it behind forever, and the next start would read it all."""

Run = Callable[[str, dict[str, object]], Awaitable[dict[str, object]]]


class _Need(NamedTuple):
    """A snapshot that is due. Ordered by the growth."""

    growth: int
    partition: int
    is_urgent: bool


class SnapshotLogs(Protocol):
    """The partitions' logs, and how much of each is newer than its snapshot."""

    topic_id: UUID

    def log(self, partition: int) -> PartitionLog | None: ...

    def load_sizes(self, partitions: Iterable[int]) -> dict[int, LoadSize]: ...


class Snapshotter:
    """On the event loop; `run` hands a job to the worker process."""

    def __init__(
        self,
        logs: SnapshotLogs,
        ownership: Ownership,
        run: Run,
        clock: SystemClock,
        observe: Callable[[SnapshotTaken | SnapshotFailed | PartFailed], None],
        *,
        after_bytes: int,
    ) -> None:
        self._logs = logs
        self._ownership = ownership
        self._run = run
        self._clock = clock
        self._observe = observe
        self._after_bytes = after_bytes
        self._failed_at: dict[int, int] = {}  # how much log there was when it last failed
        self._ends: dict[int, object] = {}  # where in its files a partition's last job ended
        self._checking: asyncio.Task[None] | None = None
        self._taking: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._checking = asyncio.get_running_loop().create_task(self._check_forever())

    async def stop(self, partitions: Sequence[int], limit_s: float = STOP_LIMIT_S) -> None:
        """Take the snapshots of these partitions that are worth it, within the limit."""
        if self._checking is not None:
            self._checking.cancel()
            await asyncio.wait([self._checking])
        with suppress(TimeoutError):
            await asyncio.wait_for(self._take_at_stop(partitions), limit_s)

    async def _check_forever(self) -> None:
        await asyncio.sleep(FIRST_CHECK_S)
        while True:
            try:
                while (following := await self._next(self._after_bytes)) is not None:
                    # A task of its own: a stop cancels this one and lets that one finish.
                    self._taking = asyncio.ensure_future(self._take(following))
                    await asyncio.shield(self._taking)
            except Exception as error:  # noqa: BLE001 - the daemon goes on, with longer starts
                self._observe(PartFailed("snapshots", error))
            await asyncio.sleep(CHECK_INTERVAL_S)

    async def _take_at_stop(self, partitions: Sequence[int]) -> None:
        if self._taking is not None and not self._taking.done():
            await self._taking
        least = max(self._after_bytes // WORTH_IT_AT_STOP, 1)
        while (following := await self._next(least, partitions)) is not None:
            await self._take(following)

    async def _next(self, least: int, partitions: Sequence[int] | None = None) -> _Need | None:
        """The partition that needs a snapshot most; None if none does."""
        if self._ownership.writes_are_refused:
            return None  # the disk is full
        loop = asyncio.get_running_loop()
        try:
            served = self._ownership.served if partitions is None else partitions
            found = await loop.run_in_executor(None, self._logs.load_sizes, served)
        except OSError:
            return None  # a file that was removed meanwhile, or a disk that fails: logged elsewhere
        allowed = ALL_PARTITIONS * self._after_bytes
        total = sum([size.log_bytes for size in found.values()])
        if total > allowed:
            least = min(least, max(self._after_bytes // SMALL_GROWTH, 1))
        needs = [
            _Need(size.log_bytes, partition, total > URGENT * allowed)
            for partition, size in found.items()
            if size.log_bytes >= max(least, size.snapshot_bytes // 2)
            and size.log_bytes >= self._failed_at.get(partition, -least) + least
        ]
        return max(needs, default=None)

    async def _take(self, need: _Need) -> None:
        """Take a snapshot of what is stored by now."""
        growth, partition, is_urgent = need
        log = self._logs.log(partition)
        if log is None:
            return
        began = self._clock.now()
        up_to = self._ownership.stored_position(partition)
        arguments: dict[str, object] = {
            "folder": log.path,
            "up_to": up_to,
            "topic_id": str(self._logs.topic_id),
            "now_ms": began.wall_ms,
            "ended": self._ends.pop(partition, None),
            URGENT_JOB: is_urgent,
        }
        try:
            result = await self._run(TAKE_SNAPSHOT, arguments)
        except JobFailed as failure:
            self._failed_at[partition] = growth
            if failure.kind != SNAPSHOT_ABANDONED:
                self._observe(SnapshotFailed(partition, str(failure)))
            return
        position, size, groups, records = (
            int(str(result[key])) for key in ("position", "bytes", "groups", "records")
        )
        self._failed_at.pop(partition, None)
        self._ends[partition] = result["end"]
        if position < up_to:
            self._failed_at[partition] = growth  # else it would be the next one again without end
            self._observe(SnapshotFailed(partition, f"the files end at {position}, not {up_to}"))
        took_ms = self._clock.now().mono_ms - began.mono_ms
        self._observe(SnapshotTaken(partition, position, groups, records, size, took_ms))
