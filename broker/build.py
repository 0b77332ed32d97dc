"""Composition root: makes the parts of the daemon from a configuration and connects them.

In order: the data directory's logs and journal (`storage/open.py`), the server, the data plane, the
ownership of the offsets topic, the coordinator, and what works beside them. A part gets what it
calls when it is made. Where two parts call each other, the one that is made first has a callback
attribute, or `subscribe` where several parts listen; `_connect` sets all of these (ADR 0022).
Nothing is started here: `Daemon.open` does that. Kafka's counterpart: `BrokerServer.startup`.
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from broker.audit.audit import Audit
from broker.authorization import make_acls
from broker.background.certificate_watch import CertificateWatch
from broker.background.log_cleaner import LogCleaner, active_producers
from broker.background.pipeline_watermark import pipeline_marks
from broker.background.snapshotter import Snapshotter
from broker.background.worker import WorkerProcess
from broker.cluster_view import ClusterOfOne
from broker.daemon import Daemon, sealed_flush_failed
from broker.fail_points import fail_at
from broker.health import Health
from broker.history_log.last_alive import downtime_since
from broker.history_log.writer import HistoryLog
from broker.lag.reader import LagReader
from broker.lag.sampler import LagSampler
from broker.lag.topic import PARTITION as LAG_PARTITION
from broker.lag.topic import LagTopic
from broker.lag.verdict_watch import VerdictWatch, record_nothing
from broker.loop.assignment_thread import AssignmentThread, stopwatch_ms
from broker.loop.clock import SystemClock
from broker.loop.flush_watch import FlushWatch
from broker.loop.gc_policy import GcPolicy
from broker.loop.ids import new_consumer_member_id, new_member_id
from broker.loop.io_thread import IoThreads
from broker.loop.journal_bridge import JournalBridge
from broker.loop.ticker import Ticker
from broker.net.access import Tokens, check_stores, listener_access, use_stores
from broker.net.dispatch import Core, Dispatcher
from broker.net.server import Server
from broker.observe.events import DaemonStep, PartFailed, Warned
from broker.observe.observer import Observer
from broker.partitions.coordinator_logs import CoordinatorLogs
from broker.partitions.ownership import Ownership
from broker.partitions.transaction_topic import TransactionTopic
from broker.stores import open_stores
from broker.transactions.partitions import GroupVerification
from broker.transactions.parts import (
    EventLoop,
    Neighbours,
    make_transactions,
    watch_of,
)
from config.dynamic_rules import DynamicRules
from config.keys import Config
from config.settings import (
    cleaner_settings,
    group_settings,
    history_index_limits,
    history_record_limits,
    lag_limits,
    server_limits,
    verdict_limits,
)
from config.storage_settings import disk_of, offsets_log_settings, storage_settings, topic_settings
from coordinator.consumer.assignors.registry import assignors_of
from coordinator.coordinator import GroupCoordinator
from history.index import HistoryIndex
from history.lag.store import LagStore
from protocol.names import OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from seams.authorizer import ALLOW_ALL
from storage.api import LogSettings, TopicLog, TopicPartition
from storage.boot_record import BootRecord, current_boot_id
from storage.cleaner.messages import LastOfProducer
from storage.data_dir import DataDir
from storage.journal.journaled_view import JournaledView
from storage.log.checkpoints import NO_TOPIC_ID
from storage.log.sealed_flush import SealedFlush
from storage.loop_guard import LoopGuard
from storage.open import JournalCallbacks, Storage, open_storage, topics_file
from topics.broker_properties import BrokerProperties
from topics.catalog import expected_partitions
from topics.data_plane import DataPlane
from topics.registry import TopicRegistry
from transactions.coordinator import TransactionCoordinator

if TYPE_CHECKING:
    from broker.net.tls.listener_tls import ListenerTls


class _Base(Struct, frozen=True):
    """What nearly every part is made with."""

    config: Config
    loop: asyncio.AbstractEventLoop
    observer: Observer
    clock: SystemClock
    storage: Storage
    boot: BootRecord
    verification: GroupVerification
    tls: Mapping[str, "ListenerTls"]
    audit: Audit


def build(
    config: Config,
    observer: Observer,
    data_dir: DataDir,
    loop: asyncio.AbstractEventLoop,
    tls: Mapping[str, "ListenerTls"] | None = None,
    tokens: Tokens | None = None,
    *,
    repair: bool = False,
    strict_files: bool = False,
) -> Daemon:
    """Raises Corrupt, OSError. With `strict_files` disk work on the loop is an AssertionError."""
    guard, bridge = LoopGuard(is_strict=strict_files), JournalBridge(loop)
    storage = _open_storage(config, observer, data_dir, guard, bridge, repair=repair)
    base = _base(config, loop, observer, storage, tls or {})
    server = Server(loop, base.clock, server_limits(config), observer)
    io = IoThreads(loop, lambda error: observer(PartFailed("data plane", error)))
    cluster = ClusterOfOne(config, data_dir.identity.cluster_id)
    data_plane = _data_plane(base, server, io, cluster, repair=repair)
    server.access = listener_access(config, base.tls, data_plane.scram, tokens or {})
    base = _with_existing_partitions(base, data_plane.registry)
    ticker = Ticker(loop, base.clock, lambda error: observer(PartFailed("timer", error)))
    offsets_logs = _offsets_logs(base, data_plane.registry)
    ownership = _ownership(base, offsets_logs, data_plane, ticker)
    transaction_topic = _transaction_topic(base, data_plane, ticker)
    history = _history(base, data_dir) if config.rollcall_history_enable else None
    assignments = _assignments(base)
    coordinator = _coordinator(
        base, server, cluster, data_plane, ownership, history, assignments, transaction_topic
    )
    transactions = _transactions(base, server, data_plane, coordinator, transaction_topic, ticker)
    flush_watch = _flush_watch(base)
    daemon = Daemon(
        config=base.config,
        loop=loop,
        observer=observer,
        clock=base.clock,
        store=storage.store,
        journal=storage.journal,
        bridge=bridge,
        server=server,
        dispatcher=_dispatcher(base, server, coordinator, data_plane, transactions),
        coordinator=coordinator,
        data_plane=data_plane,
        io=io,
        ownership=ownership,
        transaction_topic=transaction_topic,
        boot=base.boot,
        transactions=transactions,
        ticker=ticker,
        gc_policy=GcPolicy(),
        health=_health(base, ownership, transaction_topic, flush_watch),
        lag=(lag := _lag_sampler(base, coordinator, data_plane)),
        verdicts=_verdict_watch(base, data_plane, history, lag),
        transaction_watch=watch_of(config, data_plane, coordinator, transactions, observer),
        worker=(worker := WorkerProcess()),
        assignments=assignments,
        snapshotter=_snapshotter(base, offsets_logs, ownership, worker),
        log_cleaner=_log_cleaner(base, data_plane.registry, coordinator),
        history=history,
        offsets_logs=offsets_logs,
        flush_watch=flush_watch,
        guard=guard,
        sealed_flush=_sealed_flush(base, data_plane.registry),
        token_keys=[each.keys for each in (tokens or {}).values()],
        certificates=CertificateWatch(loop, list(base.tls.values()), observer),
        audit=base.audit,
    )
    _connect(daemon, base.tls)
    return daemon


def _base(
    config: Config,
    loop: asyncio.AbstractEventLoop,
    observer: Observer,
    storage: Storage,
    tls: Mapping[str, "ListenerTls"],
) -> _Base:
    was_clean = storage.store.was_clean
    boot = BootRecord(storage.disk, storage.path, current_boot_id(), was_clean=was_clean)
    clock, verification = SystemClock(), GroupVerification()
    audit = Audit(loop, clock, observer, config.rollcall_audit_log)
    return _Base(config, loop, observer, clock, storage, boot, verification, tls, audit)


def _connect(daemon: Daemon, tls: Mapping[str, "ListenerTls"]) -> None:
    """Set the callbacks of parts that were made before those that they call."""
    daemon.audit.watch(daemon.server, daemon.dispatcher)
    bridge, lag, watch = daemon.bridge, daemon.lag, daemon.verdicts
    bridge.clock = daemon.clock
    bridge.shards = {
        OFFSETS_TOPIC: daemon.coordinator,
        TRANSACTION_STATE_TOPIC: daemon.transactions,
    }
    bridge.readers = daemon.data_plane
    bridge.on_flush = (
        *(ownership.on_flush for ownership in daemon.ownerships),
        daemon.journal.flush_delivered,
    )
    bridge.on_failed = daemon.on_journal_failed
    bridge.on_reopened = daemon.on_journal_reopened
    daemon.server.connections_allowed = daemon.connections_allowed
    bridge.stalls = daemon.server.stalls = daemon.ticker.stalls
    daemon.ticker.backlog = daemon.server
    daemon.clock.on_stall = daemon.on_stall
    daemon.ownership.coordinator = daemon.coordinator
    daemon.ownership.attach = partial(_attach_offsets, daemon.data_plane, daemon.coordinator)
    daemon.transaction_topic.ownership.coordinator = daemon.transactions
    daemon.transaction_topic.coordinator = daemon.transactions
    daemon.data_plane.registry.subscribe(daemon.on_topic_change)
    daemon.loop.set_exception_handler(daemon.on_loop_error)
    counters = daemon.observer.counters
    counters.on_commit = watch.meter
    counters.on_outside_commit = daemon.audit.offsets_committed
    counters.on_join_refused = watch.join_refused
    counters.on_group_deleted = lag.group_deleted
    watch.group_of = lag.group
    lag.watcher = watch
    lag.on_round_end = daemon.on_lag_round
    if daemon.history is not None:
        daemon.history.subscribe(watch.on_entry)
        daemon.history.subscribe(counters.count_entry)
        daemon.history.call_soon = daemon.loop.call_soon
        daemon.history.recorder.name_topics(daemon.data_plane.registry.topic_name)
    _follow_dynamic_configs(daemon, tls)


def _follow_dynamic_configs(daemon: Daemon, tls: Mapping[str, "ListenerTls"]) -> None:
    """Have dynamic configs of the broker in effect, now and after each change.

    Those that topics and groups derive their values from reach them in the data plane.
    """
    rules = DynamicRules(daemon.config)

    def use(properties: BrokerProperties) -> None:
        config = rules.applied(properties)
        daemon.server.set_limits(server_limits(config))
        use_stores(tls, config, daemon.observer)
        daemon.log_cleaner.use(cleaner_settings(config))
        daemon.offsets_logs.use(offsets_log_settings(config))
        daemon.coordinator.use(group_settings(config))
        daemon.data_plane.expire_producers_after(config.producer_id_expiration_ms)
        daemon.data_plane.verify_transactions(config.transaction_partition_verification_enable)

    daemon.data_plane.broker_configs.subscribe(use)


def _open_storage(
    config: Config,
    observer: Observer,
    data_dir: DataDir,
    guard: LoopGuard,
    bridge: JournalBridge,
    *,
    repair: bool,
) -> Storage:
    disk = disk_of(config, guard)
    catalog = topics_file(disk, data_dir.path)
    return open_storage(
        disk,
        data_dir.path,
        storage_settings(config),
        observer,
        expects=expected_partitions(catalog, repair=repair),
        callbacks=JournalCallbacks(bridge.stored, bridge.failed, bridge.reopened),
        repair=repair,
    )


def _data_plane(
    base: _Base, server: Server, io: IoThreads, cluster: ClusterOfOne, *, repair: bool
) -> DataPlane:
    storage = base.storage
    is_repairing = storage.store.is_repairing
    repairs = repair or is_repairing
    rules = DynamicRules(base.config, partial(check_stores, base.tls))
    stores = open_stores(base.config, rules, storage, base.observer, repair=repairs)
    stores.client_quotas.subscribe(server.throttling.use)
    acls = make_acls(base.config, storage, base.observer, base.audit.refused, repair=repairs)
    data_plane = DataPlane(
        storage.store,
        storage.topics_file,
        topic_settings(base.config),
        cluster=cluster,
        group_configs=stores.group_configs,
        broker_configs=stores.broker_configs,
        client_quotas=stores.client_quotas,
        throttle=server.throttling,
        scram=stores.scram,
        loggers=base.observer.levels,
        reply=server.reply,
        observe=base.observer,
        hang_up=server.hang_up,
        fetch_answer_max_bytes=server.fetch_answer_max_bytes,
        producer_snapshot=storage.producers_file,
        appender=io.appender,
        checker=io.checker,
        reader=io.reader,
        admin=io.admin,
        authorizer=ALLOW_ALL if acls is None else acls.authorizer,
        acls=acls,
        repair=repair or is_repairing,
    )
    parts = (storage, data_plane.registry, stores, acls)
    was_repaired = any(part.was_repaired for part in parts if part is not None)
    if is_repairing and not was_repaired:
        base.observer(DaemonStep("Nothing that was stored is damaged: a start needs no --repair"))
    return data_plane


def _with_existing_partitions(base: _Base, registry: TopicRegistry) -> _Base:
    """As Kafka: a group's partition follows from the topic that is there, not from the key."""
    there = registry.partition_count(OFFSETS_TOPIC)
    asked = base.config.offsets_topic_num_partitions
    if there is None or there == asked:
        return base
    words = "offsets.topic.num.partitions says how many a new topic gets; this one keeps its own"
    base.observer(Warned(words, {"asked": asked, "kept": there}))
    return replace(base, config=replace(base.config, offsets_topic_num_partitions=there))


def _offsets_logs(base: _Base, registry: TopicRegistry) -> CoordinatorLogs:
    topic_id = registry.topic_id(OFFSETS_TOPIC)
    assert topic_id is not None, "the data plane makes the offsets topic"
    storage, settings = base.storage, offsets_log_settings(base.config)
    return CoordinatorLogs(storage.disk, storage.store, storage.journal, topic_id, settings)


def _ownership(
    base: _Base, logs: CoordinatorLogs, data_plane: DataPlane, ticker: Ticker
) -> Ownership:
    return Ownership(
        logs,
        base.clock,
        base.observer,
        attach=data_plane.attach,
        turned=ticker.arm,
        topic=logs.topic,
    )


def _transaction_topic(base: _Base, data_plane: DataPlane, ticker: Ticker) -> TransactionTopic:
    """Its logs get their id and settings when the topic is there."""
    storage, topic = base.storage, TRANSACTION_STATE_TOPIC
    logs = CoordinatorLogs(
        storage.disk, storage.store, storage.journal, NO_TOPIC_ID, LogSettings(), topic
    )
    ownership = _ownership(base, logs, data_plane, ticker)
    create = data_plane.create_transaction_state_topic
    return TransactionTopic(data_plane.registry, create, logs, ownership)


def _history(base: _Base, data_dir: DataDir) -> HistoryLog:
    config = base.config
    history = HistoryLog(
        base.storage.journal,
        config.rollcall_history_topic_num_partitions,
        HistoryIndex(history_index_limits(config)),
        history_record_limits(config),
        base.observer,
    )
    history.recorder.downtime = downtime_since(
        data_dir.alive_at_ms, base.clock.now(), was_clean=base.storage.store.was_clean
    )
    return history


def _sealed_flush(base: _Base, registry: TopicRegistry) -> SealedFlush:
    return SealedFlush(
        base.storage.store,
        base.config.log_flush_offset_checkpoint_interval_ms,
        partial(sealed_flush_failed, base.loop, registry, base.observer),
    )


def _flush_watch(base: _Base) -> FlushWatch:
    journal, stalled_ms = base.storage.journal, base.config.rollcall_flush_stalled_ms
    return FlushWatch(base.loop, lambda: journal.flush_age_s, stalled_ms, base.observer)


def _health(
    base: _Base, ownership: Ownership, topic: TransactionTopic, flush_watch: FlushWatch
) -> Health:
    partitions = base.config.offsets_topic_num_partitions
    return Health(ownership, partitions, lambda: flush_watch.reason, topic.ownership)


def _dispatcher(base: _Base, server: Server, *cores: Core) -> Dispatcher:
    level = base.config.rollcall_transaction_version
    return Dispatcher(server.reply, *cores, transaction_version=level)


def _assignments(base: _Base) -> AssignmentThread:
    observer = base.observer
    return AssignmentThread(
        base.loop, base.clock, lambda error: observer(PartFailed("assignor", error))
    )


def _coordinator(
    base: _Base,
    server: Server,
    cluster: ClusterOfOne,
    data_plane: DataPlane,
    ownership: Ownership,
    history: HistoryLog | None,
    assignments: AssignmentThread,
    topic: TransactionTopic,
) -> GroupCoordinator:
    registry = data_plane.registry
    reply, observe = fail_at(base.config, server.reply, base.observer)
    return GroupCoordinator(
        group_settings(base.config),
        new_member_id=new_member_id,
        new_consumer_member_id=new_consumer_member_id,
        assignors=assignors_of(base.config.group_consumer_assignors),
        assignment_runner=assignments,
        stopwatch=stopwatch_ms,
        topics=registry,
        endpoint=cluster.endpoint,
        reply=reply,
        observe=observe,
        shard_failed=ownership.shard_failed,
        history_sink=history,
        deleted_topics=registry.forgetting,
        offsets_forgotten=registry.offsets_forgotten,
        group_configs=data_plane.group_configs,
        authorizer=data_plane.authorizer,
        find_transactions=topic.find,
        verifier=base.verification,
        first_unstable_changed=lambda partition, offset: data_plane.set_first_unstable(
            TopicPartition(OFFSETS_TOPIC, partition), offset
        ),
    )


def _transactions(
    base: _Base,
    server: Server,
    data_plane: DataPlane,
    groups: GroupCoordinator,
    topic: TransactionTopic,
    ticker: Ticker,
) -> TransactionCoordinator:
    neighbours = Neighbours(data_plane, groups, topic, base.verification)
    timing = EventLoop(base.loop, base.clock, ticker.arm)
    return make_transactions(
        base.config, neighbours, server.reply, base.observer, base.boot, timing
    )


def _lag_sampler(base: _Base, coordinator: GroupCoordinator, data_plane: DataPlane) -> LagSampler:
    config, registry = base.config, data_plane.registry
    limits = lag_limits(config)
    topic = LagTopic(
        registry.partition(LAG_PARTITION.topic, LAG_PARTITION.partition),
        base.clock,
        base.observer,
        readable=data_plane.advanced,
        # Each group's whole window was written once in this time, also if a restart fell in it.
        tail_ms=2 * (config.rollcall_lag_keepalive_ms + limits.interval_ms),
        tail_bytes_max=config.rollcall_lag_tail_max_bytes,
        appender=data_plane.appender,
    )
    return LagSampler(
        LagReader(coordinator, registry),
        LagStore(limits),
        topic,
        base.clock,
        base.observer,
        lookups_max=config.rollcall_lag_record_times_max,
        keepalive_ms=config.rollcall_lag_keepalive_ms,
    )


def _verdict_watch(
    base: _Base, data_plane: DataPlane, history: HistoryLog | None, lag: LagSampler
) -> VerdictWatch:
    """Without a history it sees only how groups are now."""
    return VerdictWatch(
        data_plane.registry,
        verdict_limits(base.config),
        base.config.rollcall_trouble_groups_max,
        base.observer,
        record_nothing if history is None else history.record_entry,
        lag.skipped,
        data_plane.group_configs,
    )


def _snapshotter(
    base: _Base, offsets_logs: CoordinatorLogs, ownership: Ownership, worker: WorkerProcess
) -> Snapshotter:
    return Snapshotter(
        offsets_logs,
        ownership,
        worker.run,
        base.clock,
        base.observer,
        after_bytes=base.config.rollcall_snapshot_bytes,
    )


def _log_cleaner(base: _Base, registry: TopicRegistry, coordinator: GroupCoordinator) -> LogCleaner:
    """With a worker process of its own: a pass may take long, and snapshots must not wait."""
    config, storage = base.config, base.storage
    return LogCleaner(
        storage.disk,
        storage.store,
        storage.journal,
        WorkerProcess(),
        base.clock,
        base.observer,
        cleaner_settings(config),
        producers=partial(_active_producers, registry, coordinator),
        marks=pipeline_marks(
            coordinator,
            keep_ms=config.rollcall_pipeline_keep_ms,
            keep_bytes=config.rollcall_pipeline_keep_bytes,
        ),
        cleaned=partial(_forget_aborted, coordinator),
    )


def _active_producers(
    registry: TopicRegistry, coordinator: GroupCoordinator, log: TopicPartition
) -> Mapping[int, LastOfProducer] | None:
    """Those of a log; None where they are not known."""
    if log.topic != OFFSETS_TOPIC:
        return active_producers(registry, log)
    known = coordinator.transactions.producers(log.partition)
    if known is None:
        return None
    return {
        producer_id: LastOfProducer(each.last_offset, each.producer_epoch)
        for producer_id, each in known.items()
    }


def _attach_offsets(data_plane: DataPlane, coordinator: GroupCoordinator, log: TopicLog) -> None:
    """Let clients read a partition of the offsets topic that is loaded."""
    if isinstance(log, JournaledView):
        log.aborted_source = coordinator.transactions.aborted(log.topic_partition.partition)
    data_plane.attach(log)


def _forget_aborted(coordinator: GroupCoordinator, log: TopicPartition, up_to: int) -> None:
    if log.topic == OFFSETS_TOPIC:
        coordinator.transactions.cleaned(log.partition, up_to)
