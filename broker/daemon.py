"""Daemon: the parts of a node, the order in which they start, and a stop that loses no answer.

Holds the parts that build.py made. A start opens the ports first and loads then, so that clients
hear COORDINATOR_LOAD_IN_PROGRESS instead of silence. A stop goes from the clients inwards: no more
requests are read; what waits for the disk is stored and answered; what waits for other members is
answered NOT_COORDINATOR; then the logs are closed and marked as closed cleanly. Kafka's
counterparts: `BrokerServer.startup`, `BrokerServer.shutdown`.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from broker.audit.audit import Audit
from broker.background.certificate_watch import CertificateWatch
from broker.background.log_cleaner import LogCleaner
from broker.background.snapshotter import Snapshotter
from broker.background.worker import WorkerProcess
from broker.health import Health
from broker.history_log.writer import HistoryLog
from broker.lag.sampler import LagSampler
from broker.lag.transaction_watch import TransactionWatch
from broker.lag.verdict_watch import VerdictWatch
from broker.loop.assignment_thread import AssignmentThread
from broker.loop.clock import SystemClock
from broker.loop.flush_watch import FlushWatch
from broker.loop.gc_policy import GcPolicy
from broker.loop.io_thread import IoThreads
from broker.loop.journal_bridge import JournalBridge
from broker.loop.process import connections_allowed, descriptor_limit, partitions_allowed
from broker.loop.ticker import Ticker
from broker.net.dispatch import Dispatcher
from broker.net.request import PendingRequest
from broker.net.server import Server
from broker.net.sockets import Bound
from broker.observe.events import (
    DaemonStep,
    JournalFailed,
    JournalReopened,
    LoopStalled,
    PartFailed,
    Warned,
)
from broker.observe.observer import Observer
from broker.partitions.coordinator_logs import CoordinatorLogs
from broker.partitions.load_wait import LoadWait
from broker.partitions.ownership import Ownership
from broker.partitions.transaction_topic import TransactionTopic
from broker.transactions.left_open import abort_left_open
from config.keys import Config
from coordinator.coordinator import GroupCoordinator
from history.entry_values import TopicPartitionCounts
from protocol.names import TRANSACTION_STATE_TOPIC
from seams.now import Now
from seams.reply_token import ReplyToken
from storage.api import Corrupt, SyncFailed, TopicPartition
from storage.boot_record import BOOT_FILE, BootRecord
from storage.journal.journal import Journal
from storage.log.log_store import LogStore
from storage.log.sealed_flush import SealedFlush
from storage.loop_guard import LoopGuard
from topics.data_plane import DataPlane
from topics.events import PartitionFailed, PartitionsAdded, TopicChange, TopicCreated, TopicDeleted
from topics.registry import TopicRegistry
from transactions.coordinator import TransactionCoordinator

if TYPE_CHECKING:
    from broker.net.token_keys import TokenKeys

UNSETTLED_CHECK_S: Final = 0.2
"""Between two looks whether all transactions that lost records are aborted."""

STORE_TIMEOUT_S: Final = 10.0
"""At a stop: how long the disk may take for what was appended last."""

DRAIN_TIMEOUT_S: Final = 5.0
"""At a stop: how long clients may take to read their last answers."""


def _noop(_: str) -> None:
    pass


async def _at_once() -> None:
    """Nothing has to be read before the transactions are loaded again."""


@dataclass(slots=True, eq=False, kw_only=True)
class Daemon:
    """All parts of one node. No value: a dataclass, as ADR 0016 says."""

    config: Config
    loop: asyncio.AbstractEventLoop
    observer: Observer
    clock: SystemClock
    store: LogStore
    journal: Journal
    bridge: JournalBridge
    server: Server
    dispatcher: Dispatcher
    coordinator: GroupCoordinator
    data_plane: DataPlane
    io: IoThreads
    ownership: Ownership
    transaction_topic: TransactionTopic
    boot: BootRecord
    transactions: TransactionCoordinator
    ticker: Ticker
    gc_policy: GcPolicy
    health: Health
    lag: LagSampler
    verdicts: VerdictWatch
    transaction_watch: TransactionWatch
    worker: WorkerProcess
    assignments: AssignmentThread
    snapshotter: Snapshotter
    log_cleaner: LogCleaner
    history: HistoryLog | None
    offsets_logs: CoordinatorLogs
    flush_watch: FlushWatch
    guard: LoopGuard
    sealed_flush: SealedFlush
    certificates: CertificateWatch
    audit: Audit
    token_keys: Sequence["TokenKeys"]
    recording_boot: asyncio.Task[None] | None = None
    accepting: int = 0
    """Sockets that clients connect to; a listener has one for each address of its host."""
    storage_failed: Callable[[str], None] = _noop
    """Called when the journal has failed and only a start can recover; broker/main.py sets it."""

    @property
    def ownerships(self) -> tuple[Ownership, ...]:
        """Of the coordinators' topics."""
        return self.ownership, self.transaction_topic.ownership

    @property
    def damage(self) -> Corrupt | None:
        """The first damage that a load met."""
        return next((each.damage for each in self.ownerships if each.damage is not None), None)

    def connections_allowed(self) -> int:
        """What the limit of file descriptors leaves beside the log's files."""
        return connections_allowed(descriptor_limit(), len(self.store.partitions()), self._backlog)

    @property
    def _backlog(self) -> int:
        """Of all sockets that accept."""
        return self.config.socket_listen_backlog_size * self.accepting

    def _log_descriptor_limits(self) -> None:
        backlog, limit = self._backlog, descriptor_limit()
        facts = {
            "limit": limit,
            "connections": min(self.connections_allowed(), self.config.max_connections),
            "partitions": partitions_allowed(limit, backlog),
        }
        self.observer(DaemonStep("File descriptors (ulimit -n) allow", facts))

    async def open(self, listeners: Sequence[Bound]) -> None:
        """Accept clients; until `load` is done, requests about groups are answered LOADING,
        or wait (load_wait.py)."""
        self.journal.start(self.loop.call_soon, self.bridge.open_report(self.journal.collect))
        self.sealed_flush.start()
        self.flush_watch.start()
        self.ticker.stalls.watch_gc()
        self.ticker.start(
            [self.coordinator, self.transactions, self.data_plane, self.server, self.audit]
        )
        self.certificates.start()
        for keys in self.token_keys:
            keys.start(self._report_keys)
        self.accepting = sum(len(listener.sockets) for listener in listeners)
        await self.server.serve(self.dispatcher, listeners)

    def _report_keys(self, words: str, fields: Mapping[str, object]) -> None:
        """In the keys' thread, which may outlive the loop."""
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self.observer, Warned(words, fields))

    async def load(self) -> None:
        """Elect and load; returns when everything that can be served is served."""
        if self.history is not None:
            self.history.open(self.store.partitions, self.data_plane.attach)
        waiting = LoadWait(
            self.ownership, self.coordinator.partition_for, self.clock, self._request_failed
        )
        self.dispatcher.on_coordinator_request(waiting.takes)
        await asyncio.gather(
            self.ownership.elect(range(self.config.offsets_topic_num_partitions)),
            self.transaction_topic.open(),
        )
        self.dispatcher.on_coordinator_request(None)
        self._abort_left_open()
        self.recording_boot = self.loop.create_task(self._record_boot())
        self.snapshotter.start()
        self.log_cleaner.start()
        if self.history is not None:
            self.history.close_interrupted(self.coordinator.knows, self.clock.now())
        self.gc_policy.start()
        self.lag.start()
        self._log_descriptor_limits()  # now that the partitions are known
        self.guard.begin()

    def _abort_left_open(self) -> None:
        """Transactions of offsets that came from a Kafka without its `__transaction_state`."""
        if self.data_plane.registry.by_name(TRANSACTION_STATE_TOPIC) is not None:
            return
        partitions = range(self.config.offsets_topic_num_partitions)
        aborted = abort_left_open(self.coordinator.transactions, partitions, self.clock.now())
        if aborted:
            self.observer(
                Warned("Aborted transactions that another broker left open", {"count": aborted})
            )

    async def _record_boot(self) -> None:
        """Once the transactions that lost records are aborted."""
        while self.transactions.unsettled_partitions:  # noqa: ASYNC110 - a number tells nobody
            await asyncio.sleep(UNSETTLED_CHECK_S)
        try:
            await self.loop.run_in_executor(None, self.boot.save)
        except OSError as failure:
            self.observer(PartFailed(BOOT_FILE, failure))

    async def stop(self) -> bool:
        """As the module docstring says; False if not everything could be stored."""
        self.health.stopping = True
        if self.recording_boot is not None:
            self.recording_boot.cancel()
            await asyncio.wait([self.recording_boot])
        self.observer(DaemonStep("Shutting down."))
        await self.certificates.stop()
        for keys in self.token_keys:
            keys.close()
        await self.lag.stop()
        await self.log_cleaner.stop()
        self.server.stop_accepting()
        self.server.finish_all()
        self.data_plane.answer_all()
        if not await self.io.wait_idle(STORE_TIMEOUT_S):
            self.observer(Warned("The disk did not take what was produced last in time"))
        self.data_plane.close()
        if self.history is not None:
            self.history.flush_steady_commits(self.clock.now(), all_of_them=True)
        stored = await asyncio.gather(*(each.flush(STORE_TIMEOUT_S) for each in self.ownerships))
        if not all(stored):
            self.observer(Warned("The disk did not take what was appended last in time"))
        served = self.ownership.served
        self.transaction_topic.ownership.resign_all()  # first: it writes markers to the other
        self.ownership.resign_all()
        await self.server.drain(DRAIN_TIMEOUT_S)
        await self.audit.close()
        await self.snapshotter.stop(served)
        await self.worker.stop()
        await self.assignments.close()
        self.ticker.stop()
        self.flush_watch.stop()
        self.ticker.stalls.unwatch_gc()
        self.gc_policy.stop()
        await self.log_cleaner.remove_leftovers()
        is_idle = await self.io.close(STORE_TIMEOUT_S)
        self.guard.end()
        clean = await self.loop.run_in_executor(None, self._close_logs, is_idle)
        self.bridge.close_report()
        self.observer(DaemonStep("Shutdown complete."))
        return clean

    def _close_logs(self, is_idle: bool) -> bool:  # noqa: FBT001 - the executor's call
        """In a thread: it waits for the flusher and the disk."""
        is_idle = self.sealed_flush.stop(STORE_TIMEOUT_S) and is_idle
        if not self.journal.close():
            self.store.abandon("the journal has failed")
            return False
        if not is_idle:
            self.store.abandon("a thread of the data plane is still busy with it")
            return False
        self.offsets_logs.remove_partial_snapshots()
        failures = self.store.close()
        if not failures:
            try:
                self.boot.clear(is_resolved=not self.transactions.unsettled_partitions)
            except OSError as refusal:
                failures.append(refusal)
        for failure in failures:
            self.observer(PartFailed("closing the logs", failure))
        return not failures

    def _request_failed(self, token: ReplyToken, error: Exception) -> None:
        assert isinstance(token, PendingRequest)
        self.server.failed(token, error)

    # Callbacks of the parts, set by build.py.

    def on_journal_failed(self, failure: Exception) -> None:
        reason = self.journal.closed_because or str(failure)
        self.health.journal_failed = reason
        self.observer(JournalFailed(reason, is_full=self.journal.is_full))
        for ownership in self.ownerships:
            ownership.journal_failed()
        self.journal.failure_delivered()
        if not self.journal.is_full:
            self.storage_failed(reason)

    def on_journal_reopened(self) -> None:
        self.health.journal_failed = None
        self.observer(JournalReopened())
        self.ownership.journal_reopened(self._reload_history)
        self.transaction_topic.ownership.journal_reopened(_at_once)

    async def _reload_history(self) -> None:
        """Before any group is loaded again."""
        if self.history is not None:
            await self.history.reopen_in_slices()

    def on_lag_round(self, now: Now) -> None:
        if self.history is not None:
            self.history.flush_steady_commits(now)
        self.transaction_watch.inspect(now)

    def on_stall(self, stalled_ms: int) -> None:
        self.observer(LoopStalled(stalled_ms))

    def on_topic_change(self, change: TopicChange) -> None:
        """Within a turn of the data plane; the coordinator has its own turn after it."""
        if isinstance(change, TopicDeleted):
            self.log_cleaner.topic_deleted(change.name)
        if isinstance(change, TopicCreated) and change.name == TRANSACTION_STATE_TOPIC:
            self.transaction_topic.created()
        self.loop.call_soon(self._notify_coordinator, change)

    def _notify_coordinator(self, change: TopicChange) -> None:
        now = self.clock.now()
        match change:
            case TopicDeleted(name, topic_id, count, client_id, host, principal):
                self._topic_changed(TopicPartitionCounts(name, count, 0), now)
                deleted = [(name, topic_id)]
                self.coordinator.topics_deleted(deleted, now, client_id, host, principal)
            case TopicCreated(name, _, count):
                self._topic_changed(TopicPartitionCounts(name, 0, count), now)
                self.coordinator.partitions_changed({name}, now)
            case PartitionsAdded(name, _, before, count):
                self._topic_changed(TopicPartitionCounts(name, before, count), now)
                self.coordinator.partitions_changed({name}, now)
        self.ticker.arm()

    def _topic_changed(self, change: TopicPartitionCounts, now: Now) -> None:
        """Its consumers may rejoin: the history shows the reason."""
        if self.history is not None:
            self.history.topics_changed([change], now)

    def on_loop_error(self, _loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        error = context.get("exception")
        if not isinstance(error, Exception):
            error = RuntimeError(str(context.get("message")))
        self.observer(PartFailed("event loop", error))


def sealed_flush_failed(
    loop: asyncio.AbstractEventLoop,
    registry: TopicRegistry,
    observer: Observer,
    key: TopicPartition | None,
    failure: OSError,
) -> None:
    """In the thread of the sealed flush, with no partition where a checkpoint failed."""
    with suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(_report_unsynced, registry, observer, key, failure)


def _report_unsynced(
    registry: TopicRegistry, observer: Observer, key: TopicPartition | None, failure: OSError
) -> None:
    if key is None:
        observer(PartFailed("recovery-point-offset-checkpoint", failure))
        return
    partition = registry.partition(key.topic, key.partition)
    is_lost = isinstance(failure, SyncFailed)
    if partition is not None and is_lost:
        partition.offline = True
    observer(PartitionFailed(key, str(failure), is_lost))
