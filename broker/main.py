"""How does a configuration become a running daemon? The composition root: nothing else builds it.

In order: lock the data directory / bind the ports / open the logs and re-apply the journal / make
the parts / accept clients / elect and load the partitions / open the console. What forbids a start
is told in one line and ends with exit code 2, or 1 if the data are damaged. SIGTERM, SIGINT and
SIGHUP stop the daemon; a second signal ends it at once. Kafka's counterpart: `BrokerServer`.
"""

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from types import FrameType
from typing import Final, NamedTuple, Protocol

import uvloop
from msgspec.structs import replace

from broker.background.log_cleaner import build_cleaning
from broker.background.snapshotter import Snapshots
from broker.background.worker import WorkerProcess
from broker.cluster_view import ClusterOfOne
from broker.daemon import Daemon
from broker.fail_points import fail_at
from broker.health import Health
from broker.history_log.last_alive import LastAlive, away_since
from broker.history_log.writer import HistoryLog
from broker.lag.topic import build_lag
from broker.lag.verdict_watch import build_watch
from broker.loop.clock import SystemClock
from broker.loop.flush_watch import FlushWatch
from broker.loop.gc_policy import GcPolicy
from broker.loop.ids import new_member_id
from broker.loop.io_thread import IoThreads
from broker.loop.journal_bridge import JournalBridge
from broker.loop.process import SMALL_DESCRIPTOR_LIMIT, notify, raise_descriptor_limit
from broker.loop.ticker import Ticker
from broker.net.dispatch import Dispatcher
from broker.net.server import Server
from broker.net.sockets import Bound, CannotListen, address_text, bind_admin, bind_listener
from broker.observe.events import DaemonStep, PartFailed, Warned
from broker.observe.observer import Observer, log_to_stderr
from broker.partitions.offsets_logs import OffsetsLogs
from broker.partitions.ownership import Ownership
from config.crash_steps import NEVER
from config.keys import Config
from config.listeners import BadListeners
from config.settings import (
    group_settings,
    history_index_limits,
    history_record_limits,
    offsets_log_settings,
    server_limits,
    storage_settings,
    topic_settings,
)
from coordinator.coordinator import GroupCoordinator
from history.index import HistoryIndex
from protocol.names import OFFSETS_TOPIC
from rollcall import __version__
from storage.api import Corrupt
from storage.data_dir import DataDir, DataDirRefused
from storage.disk import RealDisk
from storage.journal.journal import Journal
from storage.log.sealed_flush import SealedFlush
from storage.loop_guard import LoopGuard
from storage.open import JournalCallbacks, open_storage, topics_file
from storage.repair.repair import choice
from topics.catalog import expected_partitions
from topics.data_plane import DataPlane
from topics.registry import TopicRegistry

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
EXIT_REFUSED: Final = 2

STRICT_FILES_VARIABLE: Final = "ROLLCALL_STRICT_FILES"
"""Set by tests: disk work on the loop after the start is an error, where it is else counted."""

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""SIGHUP is a closed terminal; Kafka too stops cleanly at it. It never reloads anything."""

CONSOLE_WAITS_S: Final = 0.5
"""For the load, which is mostly over by then: opening the console is work for the processor."""


STOP_AFTER_FAULT_S: Final = 30.0
"""After a failed write or fsync: how long a stop may take, before the process ends without it."""


class Console(Protocol):
    async def close(self) -> None: ...


OpenConsole = Callable[[Daemon, Bound], Awaitable[Console]]
"""Serves the admin port; given by cli/, for the console stands above this package."""


class Ports(NamedTuple):
    clients: Sequence[Bound]
    admin: Bound | None

    def close(self) -> None:
        for bound in (*self.clients, *filter(None, [self.admin])):
            bound.close()


def serve(config: Config, open_console: OpenConsole | None = None, *, repair: bool = False) -> int:
    """Run the daemon until it is told to stop; the exit code. `repair` cuts what is damaged."""
    observer = log_to_stderr(config.rollcall_log_format, config.rollcall_log_level)
    descriptors = raise_descriptor_limit()
    try:
        storage_settings(config)
    except ValueError as refused:
        return _refuse(str(refused))
    try:
        data_dir = DataDir(str(config.data_dir), config.node_id)
    except DataDirRefused as refused:
        return _refuse(f"{config.data_dir_key}: {refused}")
    try:
        ports = _bind(config)
    except (CannotListen, BadListeners) as refused:
        data_dir.withdraw()
        return _refuse(f"{refused.key}: {refused}")
    observer(DaemonStep("Starting up.", {"version": __version__, "data": data_dir.path}))
    for warning in config.warnings:
        observer(Warned(warning))
    if data_dir.lost_identity:
        words = "The data directory had partitions and no meta.properties: it has a new cluster id"
        observer(Warned(words, {"cluster_id": data_dir.identity.cluster_id}))
    if descriptors < SMALL_DESCRIPTOR_LIMIT:
        observer(Warned("Few file descriptors (ulimit -n)", {"limit": descriptors}))
    if config.rollcall_crash_at != NEVER:
        observer(Warned("Will crash in the next rebalance", {"at": config.rollcall_crash_at}))
    try:
        return uvloop.run(_run(config, observer, data_dir, ports, open_console, repair=repair))
    except Corrupt as damage:
        return _refuse(f"cannot start on {data_dir.path}: {choice(damage)}", EXIT_FAILED)
    except OSError as error:
        return _refuse(f"cannot start on {data_dir.path}: {error}", EXIT_FAILED)
    finally:
        ports.close()
        data_dir.close()


def build(
    config: Config,
    observer: Observer,
    data_dir: DataDir,
    loop: asyncio.AbstractEventLoop,
    *,
    repair: bool = False,
    strict_files: bool = False,
) -> Daemon:
    """Open what lies in the data directory and put the parts together. Raises Corrupt, OSError.

    With `strict_files` disk work on the loop after the start is an AssertionError, for tests.
    """
    guard = LoopGuard(is_strict=strict_files)
    disk, clock = RealDisk(guard), SystemClock()
    bridge = JournalBridge(loop)
    catalog = topics_file(disk, data_dir.path)
    storage = open_storage(
        disk,
        data_dir.path,
        storage_settings(config),
        observer,
        expects=expected_partitions(catalog, repair=repair),
        callbacks=JournalCallbacks(bridge.stored, bridge.failed, bridge.reopened),
        repair=repair,
    )
    store, journal = storage.store, storage.journal
    server = Server(loop, clock, server_limits(config), observer)
    io = IoThreads(loop, lambda error: observer(PartFailed("data plane", error)))
    cluster = ClusterOfOne(config, data_dir.identity.cluster_id)
    data_plane = DataPlane(
        store,
        catalog,
        topic_settings(config),
        cluster=cluster,
        reply=server.reply,
        observe=observer,
        hang_up=server.hang_up,
        producer_snapshot=storage.producers_file,
        appender=io.appender,
        checker=io.checker,
        reader=io.reader,
        admin=io.admin,
        repair=repair or store.is_repairing,
    )
    if store.is_repairing and not (storage.was_repaired or data_plane.registry.was_repaired):
        observer(DaemonStep("Nothing that was stored is damaged: a start needs no --repair"))
    config = _with_partitions_as_they_are(config, data_plane.registry, observer)
    topic_id = data_plane.registry.topic_id(OFFSETS_TOPIC)
    assert topic_id is not None, "the data plane makes the offsets topic"
    ticker = Ticker(loop, clock, lambda error: observer(PartFailed("timer", error)))
    logs = OffsetsLogs(disk, store, journal, topic_id, offsets_log_settings(config))
    ownership = Ownership(
        logs,
        clock,
        observer,
        attach=data_plane.attach,
        turned=ticker.arm,
    )
    history = _history(config, journal, observer)
    reply, observe = fail_at(config.rollcall_crash_at, server.reply, observer)
    coordinator = GroupCoordinator(
        group_settings(config),
        new_member_id=new_member_id,
        topics=data_plane.registry,
        endpoint=cluster.endpoint,
        reply=reply,
        observe=observe,
        shard_failed=ownership.shard_failed,
        history_sink=history,
        deleted_topics=data_plane.registry.forgetting,
        offsets_forgotten=data_plane.registry.offsets_forgotten,
    )
    ownership.serve(coordinator)
    dispatcher = Dispatcher(server.reply, coordinator, data_plane)
    flush_watch = FlushWatch(
        loop, lambda: journal.flush_age_s, config.rollcall_flush_stalled_ms, observer
    )
    partitions = config.offsets_topic_num_partitions
    health = Health(ownership, partitions, lambda: flush_watch.reason)
    lag = build_lag(config, coordinator, data_plane, clock, observer)
    worker = WorkerProcess()
    snapshots = Snapshots(
        logs,
        ownership,
        worker.run,
        clock,
        observer,
        after_bytes=config.rollcall_snapshot_bytes,
    )
    daemon = Daemon(
        config,
        loop,
        observer,
        clock,
        store,
        journal,
        bridge,
        server,
        dispatcher,
        coordinator,
        data_plane,
        io,
        ownership,
        ticker,
        GcPolicy(),
        health,
        lag,
        build_watch(config, data_plane.registry, history, lag, observer),
        worker,
        snapshots,
        build_cleaning(
            config, disk, store, journal, clock, observer, data_plane.registry, coordinator
        ),
        history,
        logs,
        flush_watch,
        guard,
    )
    daemon.sealed_flush = SealedFlush(
        store, config.log_flush_offset_checkpoint_interval_ms, daemon.sealed_flush_failed
    )
    daemon.connect()
    return daemon


async def _run(
    config: Config,
    observer: Observer,
    data_dir: DataDir,
    ports: Ports,
    open_console: OpenConsole | None,
    *,
    repair: bool,
) -> int:
    loop = asyncio.get_running_loop()
    strict_files = bool(os.environ.get(STRICT_FILES_VARIABLE))
    daemon = build(config, observer, data_dir, loop, repair=repair, strict_files=strict_files)
    told = asyncio.Event()
    listen_to_signals(loop, told, observer)
    faults: list[str] = []
    daemon.storage_failed = partial(_storage_failed, data_dir.path, told, faults)
    if daemon.history is not None:
        away = away_since(
            data_dir.alive_at_ms, daemon.clock.now(), was_clean=daemon.store.was_clean
        )
        daemon.history.facts.away = away
    alive = LastAlive(loop, data_dir.touch)
    alive.start()
    await daemon.open(ports.clients)
    notify("READY=1")  # it answers, if only that it loads: a long load is no failed start
    loading = loop.create_task(daemon.load())
    opening = loop.create_task(console_after(loading, daemon, ports.admin, open_console))
    stopping = loop.create_task(told.wait())
    await asyncio.wait((loading, stopping), return_when=asyncio.FIRST_COMPLETED)
    damage = None
    if loading.done():
        loading.result()
        damage = daemon.ownership.damage
        if damage is None:
            _say_ready(ports, data_dir.path, observer)
            observer(DaemonStep("Startup complete."))
        else:
            told.set()  # as if it had been found before the first client came
    await stopping
    notify("STOPPING=1")
    loading.cancel()
    clean = await daemon.stop()
    alive.stop()
    if (console := await opening) is not None:
        await console.close()
    if damage is not None:
        raise damage
    return EXIT_OK if clean and not faults else EXIT_FAILED


def _storage_failed(path: str, told: asyncio.Event, faults: list[str], reason: str) -> None:
    """Only a start can tell what the disk has: end, so that whoever watches the process starts it.

    What waits is answered on the way, as at every stop. A disk that hangs as well must not keep
    the process.
    """
    if not faults:
        words = "the process ends, and the next start recovers what was acknowledged"
        _refuse(f"the journal of {path} has failed ({reason}); {words}", EXIT_FAILED)
        watchdog = threading.Timer(STOP_AFTER_FAULT_S, os._exit, (EXIT_FAILED,))
        watchdog.daemon = True
        watchdog.start()
    faults.append(reason)
    told.set()


async def console_after(
    loading: asyncio.Future[None],
    daemon: Daemon,
    admin: Bound | None,
    open_console: OpenConsole | None,
) -> Console | None:
    """A daemon without a console still serves its clients: a fault there is told, no more."""
    if admin is None or open_console is None:
        return None
    await asyncio.wait((loading,), timeout=CONSOLE_WAITS_S)
    if loading.cancelled():
        return None
    try:
        return await open_console(daemon, admin)
    except Exception as error:  # noqa: BLE001 - whatever a library raises
        daemon.observer(PartFailed("console", error))
        return None


def listen_to_signals(
    loop: asyncio.AbstractEventLoop, told: asyncio.Event, observer: Observer
) -> None:
    for number in STOP_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup: SIGHUP is not for us
            loop.add_signal_handler(number, _on_signal, loop, told, observer, number)


def _on_signal(
    loop: asyncio.AbstractEventLoop,
    told: asyncio.Event,
    observer: Observer,
    number: signal.Signals,
) -> None:
    told.set()
    observer(
        DaemonStep(
            "Received a signal to stop; another one ends it at once", {"signal": number.name}
        )
    )
    for one in STOP_SIGNALS:
        if loop.remove_signal_handler(one):
            signal.signal(one, _end_at_once)


def _end_at_once(number: int, _frame: FrameType | None) -> None:
    """As the signal would have done without us, but not without a word."""
    name = signal.Signals(number).name
    words = f"rollcall: ended at once by a second signal ({name}); the next start recovers\n"
    with contextlib.suppress(OSError):
        os.write(2, words.encode())
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _bind(config: Config) -> Ports:
    """All ports or none. Raises CannotListen, BadListeners."""
    bound: list[Bound] = []
    try:
        bound.extend(
            bind_listener(
                listener,
                backlog=config.socket_listen_backlog_size,
                send_buffer_bytes=config.socket_send_buffer_bytes,
                receive_buffer_bytes=config.socket_receive_buffer_bytes,
            )
            for listener in config.endpoints
        )
        admin = config.admin_address
        return Ports(bound, None if admin is None else bind_admin(*admin))
    except BaseException:
        for one in bound:
            one.close()
        raise


def _history(config: Config, journal: Journal, observer: Observer) -> HistoryLog | None:
    if not config.rollcall_history_enable:
        return None
    return HistoryLog(
        journal,
        config.rollcall_history_topic_num_partitions,
        HistoryIndex(history_index_limits(config)),
        history_record_limits(config),
        observer,
    )


def _with_partitions_as_they_are(
    config: Config, registry: TopicRegistry, observer: Observer
) -> Config:
    """As Kafka: a group's partition follows from the topic that is there, not from the key."""
    there = registry.partition_count(OFFSETS_TOPIC)
    asked = config.offsets_topic_num_partitions
    if there is None or there == asked:
        return config
    words = "offsets.topic.num.partitions says how many a new topic gets; this one keeps its own"
    observer(Warned(words, {"asked": asked, "kept": there}))
    return replace(config, offsets_topic_num_partitions=there)


def _say_ready(ports: Ports, data: str, observer: Observer) -> None:
    """One line on stdout, for scripts and people; no reader is no reason to stop serving."""
    clients = ",".join(str(bound) for bound in ports.clients)
    words = ["rollcall ready:", "clients", clients]
    if ports.admin is not None:
        words += ["admin", address_text(ports.admin.host, ports.admin.port)]
    if sys.stdout is None:  # closed by who started us
        observer(Warned("stdout is closed: nobody reads the ready line"))
        return
    try:
        print(*words, "data", data, flush=True)
    except (OSError, ValueError) as failed:
        observer(Warned("The ready line could not be written to stdout", {"reason": str(failed)}))
        # What it still buffers goes nowhere, or the end of the process would fail for it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _refuse(reason: str, exit_code: int = EXIT_REFUSED) -> int:
    print(f"rollcall: {reason}", file=sys.stderr, flush=True)
    return exit_code
