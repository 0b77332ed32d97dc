"""The node under test: the real coordinator over the real journal over a disk that can fail.

What the shell does with asyncio and a thread is done here by actions: bytes are handed to the real
connections (sockets.py), the journal is pumped (`Journal.pump`), its word reaches the coordinator a
little later, deadlines are looked at, partitions are loaded in slices, snapshots are taken and logs
cleaned (cleaner.py).
Between any two of these the process may be killed, and a disk with `cut_power_at` set ends it in
the middle of one. `start` is what a daemon does at start.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, Protocol, TypeVar
from uuid import UUID

from broker.background.snapshot_job import SnapshotAbandoned, take_snapshot
from broker.history_log.writer import HistoryLog
from broker.observe.events import PartFailed, ShellEvent
from broker.partitions.coordinator_logs import CoordinatorLogs
from broker.partitions.loading import Tail
from coordinator.consumer.assignors.assignor import AssignorFailed
from coordinator.consumer.assignors.registry import assignors_of
from coordinator.coordinator import GroupCoordinator
from coordinator.events import AnyEvent
from coordinator.loaded_record import LoadedRecord
from coordinator.settings import GroupSettings
from history.index import HistoryIndex, IndexLimits
from history.recording.record_limits import RecordLimits
from protocol.messages import Response
from protocol.names import HISTORY_TOPIC, OFFSETS_TOPIC, MemberId
from seams.now import Now
from storage.api import Log, LogSettings, Position, TopicPartition
from storage.journal.journal import Journal
from storage.journal.journal_limits import JournalLimits
from storage.log.log_store import LogStore
from tests.simulator.cleaner import Cleaner
from tests.simulator.disk import PowerCut, SimulatedDisk
from tests.simulator.network import Connection, Network
from tests.simulator.sim import Sim
from tests.simulator.sockets import Socket, Sockets, Token
from tests.world import Topics

T = TypeVar("T")

FOLDER: Final = "/data"
TOPIC_ID: Final = UUID(int=77)
HISTORY: Final = TopicPartition(HISTORY_TOPIC, 0)
HISTORY_ID: Final = UUID(int=78)
WALL_START_MS: Final = 1_700_000_000_000

LIMITS: Final = JournalLimits(
    queue_bytes=256 << 10,
    queue_entries=64,
    batch_bytes=64 << 10,
    group_bytes=16 << 10,
    file_bytes=128 << 10,
    pass_bytes=16 << 10,  # so small that a run sees checkpoints
)
LOG_SETTINGS: Final = LogSettings(
    segment_bytes=2 << 10,  # so small that a run sees the cleaner at work
    cleanup_delete=False,
    cleanup_compact=True,
    delete_retention_ms=2_000,
)
SLICE_RECORDS: Final = 20
RESTORE_BUDGET: Final = 100


def _fail_on_fault(event: ShellEvent) -> None:
    """A journal that has failed takes no history; whatever else is told here is our mistake."""
    if isinstance(event, PartFailed):
        raise event.error


class LateAssignments:
    """Makes target assignments outside of turns: soon, late, or never if the process ends."""

    def __init__(self, node: "Node") -> None:
        self._node = node

    def submit(self, work: Callable[[], T], done: Callable[[T | Exception, Now], None]) -> None:
        delay_ms = self.delay_ms()
        failure = AssignorFailed("the assignor failed") if self._node.sim.happens(0.05) else None
        self._node.later(delay_ms, partial(self._run, work, done, failure))

    def delay_ms(self) -> int:
        sim = self._node.sim
        return sim.around(50) if sim.happens(0.9) else sim.between(100, 5_000)

    def _run(
        self,
        work: Callable[[], T],
        done: Callable[[T | Exception, Now], None],
        failure: Exception | None,
    ) -> None:
        done(work() if failure is None else failure, self._node.now)


class Watcher(Protocol):
    """What the checkers want to be told."""

    def handling(self, node: "Node", token: Token) -> None: ...

    def replied(self, node: "Node", token: Token, response: Response) -> None: ...

    def happened(self, node: "Node", event: AnyEvent) -> None: ...

    def cleaning(self, node: "Node", partition: int) -> None: ...


class Node:
    """One process. A dead one does nothing more; the next one is another object."""

    def __init__(
        self,
        sim: Sim,
        network: Network,
        disk: SimulatedDisk,
        settings: GroupSettings,
        watcher: Watcher,
        incarnation: int,
        topics: Topics,
    ) -> None:
        self.sim = sim
        self.topics = topics
        self.disk = disk
        self.settings = settings
        self.incarnation = incarnation
        self.memory = (incarnation, 0)  # what is in memory is forgotten when this changes
        self.alive = True
        self.journal_failed = False
        self.reopenings = 0
        self.flush_ms = 2.0
        self.wall_shift_ms = 0
        self.loading: set[int] = set()  # until all groups of it are ready
        self.snapshots_taken = self.snapshots_used = 0
        self._reading: set[int] = set()  # of those, the ones whose log is not read yet
        self._snapshot_ms = sim.dice.choice((300, 2_000, 20_000))
        self.cleaner = Cleaner(self)
        self._network = network
        self.watcher = watcher
        self._frozen_until_ms = 0
        self._mono_start_ms = sim.between(0, 1_000_000) - sim.now_ms
        self._flushing = False
        self._tick_at_ms: int | None = None
        self._ids = 0
        self._open_logs: dict[int, Log] = {}
        self._sockets = Sockets(self)

    @property
    def now(self) -> Now:
        wall_ms = WALL_START_MS + self.sim.now_ms + self.wall_shift_ms
        return Now(self._mono_start_ms + self.sim.now_ms, wall_ms)

    # ------------------------------------------------------------ a start

    def start(self) -> None:
        """Recover, be elected everywhere, begin to load. Raises what the disk raises."""
        if not self.disk.exists(FOLDER):
            self.disk.make_dir(FOLDER)
            self.disk.sync_dir("/")
        self.store = LogStore(self.disk, FOLDER, lambda _: LOG_SETTINGS)
        opened = self.store.open()
        assert not opened.damaged, f"a crash has damaged {opened.damaged}"
        self.journal = Journal(
            self.disk,
            self.store,
            on_stored=self._stored,
            on_failed=self._failed,
            on_reopened=self._reopened,
            limits=LIMITS,
        )
        self.journal.recover()
        self.history = self._open_history()
        self.logs = CoordinatorLogs(self.disk, self.store, self.journal, TOPIC_ID, LOG_SETTINGS)
        self.coordinator = GroupCoordinator(
            self.settings,
            new_member_id=self._new_member_id,
            new_consumer_member_id=partial(self._new_member_id, "consumer"),
            topics=self.topics,
            endpoint=lambda _: (1, "localhost", 9092),
            reply=self._sockets.reply,
            observe=partial(self.watcher.happened, self),
            history_sink=self.history,
            assignment_runner=LateAssignments(self),
            assignors=assignors_of(self.settings.group_consumer_assignors),
        )
        for partition in range(self.settings.offsets_topic_num_partitions):
            self.logs.elect(partition)
            self._begin_load(partition)
        self._snapshots_later()
        self.cleaner.start()
        self.sim.log_event(f"node {self.incarnation} starts")

    def _open_history(self) -> HistoryLog:
        if self.store.partition_log(HISTORY) is None:
            self.store.create(HISTORY, HISTORY_ID, LOG_SETTINGS)
        history = HistoryLog(
            self.journal, 1, HistoryIndex(IndexLimits()), RecordLimits(), _fail_on_fault
        )
        history.open(self.store.partitions, lambda _: None)
        return history

    def _begin_load(self, partition: int) -> None:
        log, view = self.logs.open(partition)
        self._open_logs[partition] = log
        self.loading.add(partition)
        self._reading.add(partition)
        self.coordinator.begin_load(partition, log)
        snapshot, ignored = self.logs.snapshot(partition)
        if snapshot is not None:
            self.snapshots_used += 1
        self.sim.log_event(
            f"partition {partition} begins with {snapshot and snapshot.path} {ignored}"
        )
        coordinator = self.coordinator
        tail = Tail(view, snapshot, coordinator.records_of, coordinator.quick_records_of)
        coordinator.load_from(partition, tail.load_start)
        slices: list[tuple[Sequence[LoadedRecord], int]] = []
        while tail.has_more and tail.read_next():
            for records in tail.slices():
                slices += [
                    (records[i : i + SLICE_RECORDS], tail.next_offset)
                    for i in range(0, len(records), SLICE_RECORDS)
                ]
        self._next_slice(partition, iter(slices))

    def _next_slice(
        self, partition: int, slices: Iterator[tuple[Sequence[LoadedRecord], int]]
    ) -> None:
        self.later(self.sim.around(2), partial(self._load, partition, slices))

    def _load(self, partition: int, slices: Iterator[tuple[Sequence[LoadedRecord], int]]) -> None:
        following = next(slices, None)
        if following is None:
            self.coordinator.finish_load(partition, self.now)
            self._reading.remove(partition)
            self.later(self.sim.around(2), partial(self._restore_slice, partition, self.memory))
            return
        self.coordinator.load(partition, *following)
        self._next_slice(partition, slices)

    def _restore_slice(self, partition: int, memory: tuple[int, int]) -> None:
        """Groups are ready one by one; a requested one comes first."""
        if memory != self.memory:
            return  # it is loaded once more
        if self.coordinator.restore_slice(partition, self.now, RESTORE_BUDGET):
            self.later(self.sim.around(2), partial(self._restore_slice, partition, memory))
        else:
            self.loading.remove(partition)

    def _snapshots_later(self) -> None:
        self.later(self.sim.around(self._snapshot_ms), partial(self._take_snapshot))

    def _take_snapshot(self) -> None:
        """In the daemon the worker process does it."""
        self._snapshots_later()
        partition = self.sim.between(0, self.settings.offsets_topic_num_partitions - 1)
        log = self.logs.log(partition)
        if partition in self._reading or log is None:
            return
        arguments: dict[str, object] = {
            "folder": log.path,
            "up_to": self._open_logs[partition].stored_position,
            "topic_id": str(TOPIC_ID),
            "now_ms": self.now.wall_ms,
        }
        try:
            result = take_snapshot(self.disk, arguments)
        except (OSError, SnapshotAbandoned) as failure:
            self.sim.log_event(f"no snapshot of partition {partition}: {failure}")
        else:
            self.snapshots_taken += 1
            self.sim.log_event(f"a snapshot of partition {partition}: {result}")

    @property
    def healthy(self) -> bool:
        return self.alive and not self.journal_failed and not self.loading

    # ------------------------------------------------------------ requests and answers

    def accept(self, client: Connection) -> Socket:
        return self._sockets.accept(client)

    def _new_member_id(self, prefix: str) -> MemberId:
        self._ids += 1
        return MemberId(f"{prefix}-{self.incarnation}.{self._ids}")

    def handling(self, token: Token) -> None:
        self.watcher.handling(self, token)

    def replied(self, token: Token, response: Response) -> None:
        self.watcher.replied(self, token, response)

    def cleaning(self, partition: int) -> None:
        self.watcher.cleaning(self, partition)

    # ------------------------------------------------------------ the shell's other work

    def later(self, delay_ms: int, action: "partial[None]", *, thaws_last: bool = False) -> None:
        """An action of this process: not while it is frozen, and never after its end."""
        self.sim.after(delay_ms, partial(self._act, action, thaws_last=thaws_last))

    def _act(self, action: "partial[None]", *, thaws_last: bool) -> None:
        if not self.alive:
            return
        if self.sim.now_ms < self._frozen_until_ms:
            again = partial(self._act, action, thaws_last=thaws_last)
            self.sim.at(self._frozen_until_ms + thaws_last, again)
            return
        try:
            action()
        except PowerCut:
            self.sim.log_event("the power goes in the middle of a write")
            self.die()
            return
        self._arrange()

    def _arrange(self) -> None:
        """After each action: is there something to flush, and when is the next deadline?"""
        if not self._flushing and self._has_queued:
            self._flushing = True
            self.later(self.sim.around(self.flush_ms), partial(self._flush))
        deadline_ms = self.coordinator.next_deadline_ms
        if deadline_ms is None:
            return
        at_ms = max(deadline_ms - self._mono_start_ms, self.sim.now_ms)
        if self._tick_at_ms is None or at_ms < self._tick_at_ms:
            self._tick_at_ms = at_ms
            self.later(at_ms - self.sim.now_ms, partial(self._tick, at_ms), thaws_last=True)

    @property
    def _has_queued(self) -> bool:
        return self.journal.closed_because is None and self.journal.queued_bytes > 0

    def _tick(self, at_ms: int) -> None:
        if at_ms == self._tick_at_ms:
            self._tick_at_ms = None
            self.coordinator.tick(self.now)

    def _flush(self) -> None:
        self._flushing = False
        before = self.journal.checkpointer.logs
        self.journal.pump()
        if self.journal.checkpointer.logs is not before:
            self.later(self.sim.around(20), partial(self._checkpoint))

    def _checkpoint(self) -> None:
        """In the daemon a thread does it; a failure is the flusher's to tell."""
        self.journal.checkpointer.run()
        self.journal.pump()

    def _stored(self, stored: list[tuple[TopicPartition, Position]], _seconds: float) -> None:
        """In the flusher; the loop hears of it a little later."""
        self.later(self.sim.between(0, 2), partial(self._heard_stored, stored))

    def _heard_stored(self, stored: list[tuple[TopicPartition, Position]]) -> None:
        for topic_partition, position in stored:
            if topic_partition.topic != OFFSETS_TOPIC:
                continue
            self.coordinator.on_stored(topic_partition.partition, position, self.now)

    def _failed(self, failure: Exception) -> None:
        self.sim.log_event(f"the journal fails: {failure}")
        assert isinstance(failure, OSError), failure
        self.later(self.sim.between(0, 2), partial(self._heard_failure))

    def _heard_failure(self) -> None:
        """Serve what is on the disk, refuse all writes: as `Ownership.journal_failed`."""
        self.journal_failed = True
        self.memory = (self.incarnation, self.memory[1] + 1)
        for partition in range(self.settings.offsets_topic_num_partitions):
            if partition not in self._reading:
                self.coordinator.on_log_failed(partition, self.now)
                self._begin_load(partition)
        self.journal.failure_delivered()
        if self.journal.is_full:
            self._check_for_room_later()

    def _check_for_room_later(self) -> None:
        self.later(self.sim.around(1_000), partial(self._check_for_room))

    def _check_for_room(self) -> None:
        """In the daemon the flusher does."""
        if self.journal.is_full and not self.journal.try_reopen():
            self._check_for_room_later()

    def _reopened(self) -> None:
        self.sim.log_event("the disk has room again")
        self.reopenings += 1
        self.later(self.sim.between(0, 2), partial(self._heard_reopening))

    def _heard_reopening(self) -> None:
        """Load what is on the disk once more: as `Ownership.journal_reopened`."""
        if self.journal.closed_because is not None:
            return  # it has failed again, and that is heard next
        if self.loading:
            self.later(self.sim.around(5), partial(self._heard_reopening))
            return
        self.journal_failed = False
        self.memory = (self.incarnation, self.memory[1] + 1)
        self.history.reopen()
        for partition in range(self.settings.offsets_topic_num_partitions):
            self.coordinator.on_log_failed(partition, self.now)
            self._begin_load(partition)

    # ------------------------------------------------------------ faults

    def freeze(self, for_ms: int) -> None:
        """SIGSTOP: afterwards what came meanwhile is read before any deadline is looked at.

        A second one on top would let what comes after it pass by what is held up already.
        """
        if self.sim.now_ms >= self._frozen_until_ms:
            self.sim.log_event(f"the node stands still for {for_ms} ms")
            self._frozen_until_ms = self.sim.now_ms + for_ms

    def die(self) -> None:
        self.alive = False
        self._network.cut_all()
        if self._network.node is self:
            self._network.node = None
