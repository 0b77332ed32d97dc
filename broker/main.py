"""Serving: runs the daemon from a configuration until a signal stops it, and says how it ended.

In order: lock the data directory / bind the ports / build the daemon (build.py) / accept clients /
elect and load the partitions / open the console. What forbids a start is one line on stderr, with
exit code 2, or 1 if the data are damaged. SIGTERM, SIGINT and SIGHUP stop the daemon; a second
signal ends it at once, the same one not within a second. Kafka's counterpart: `Kafka.main`,
`BrokerServer`.
"""

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import uvloop

from broker.build import build
from broker.daemon import Daemon
from broker.history_log.last_alive import LastAlive
from broker.loop.process import SMALL_DESCRIPTOR_LIMIT, notify, raise_descriptor_limit
from broker.net.access import Tokens, open_tls, open_tokens
from broker.net.sockets import Bound, CannotListen, address_text, bind_admin, bind_listener
from broker.observe.events import DaemonStep, PartFailed, Warned
from broker.observe.observer import Observer, log_to_stderr
from config.crash_steps import NO_CRASH
from config.key_stores import BadStore
from config.keys import Config
from config.listeners import BadListeners
from config.storage_settings import storage_settings
from coordinator.consumer.assignors.registry import assignors_of
from rollcall import __version__
from rollcall.compiled import describe_build, interpreter_version
from storage.api import Corrupt
from storage.data_dir import DataDir, DataDirRefused
from storage.repair.repair import repair_hint

if TYPE_CHECKING:
    from broker.net.tls.listener_tls import ListenerTls

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
EXIT_REFUSED: Final = 2

STRICT_FILES_VARIABLE: Final = "ROLLCALL_STRICT_FILES"
"""Set by tests: disk work on the loop after the start is an error. Otherwise it is counted."""

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""SIGHUP is a closed terminal: it stops the daemon cleanly, as it does Kafka, and no more."""

REPEATED_SIGNAL_S: Final = 1.0
"""The same signal within this time is no second one: `timeout` and `make` signal the process and
its process group."""

CONSOLE_WAITS_S: Final = 0.5
"""How long the console waits for the load: opening it takes CPU time that the load needs."""

STOP_AFTER_FAULT_S: Final = 30.0
"""After a failed write or fsync: how long a stop may take before the process ends without it."""


class RunningConsole(Protocol):
    async def close(self) -> None: ...


OpenConsole = Callable[[Daemon, Bound], Awaitable[RunningConsole]]
"""Serves the admin port. cli/ passes it in: the console is in a layer above this package."""


class Ports(NamedTuple):
    clients: Sequence[Bound]
    admin: Bound | None

    def close(self) -> None:
        for bound in (*self.clients, *filter(None, [self.admin])):
            bound.close()


Announce = Callable[[Daemon, Ports], None]
"""Called on the loop once the daemon serves all its groups."""


def run_daemon(
    config: Config,
    open_console: OpenConsole | None = None,
    *,
    repair: bool = False,
    announce: Announce | None = None,
) -> int:
    """Run the daemon until a signal stops it; the exit code. `repair` cuts what is damaged.

    `announce` takes the place of the ready line on stdout.
    """
    observer = log_to_stderr(config.rollcall_log_format, config.rollcall_log_level)
    descriptors = raise_descriptor_limit()
    try:
        storage_settings(config)
        assignors_of(config.group_consumer_assignors)
    except ValueError as refused:
        return _refuse(str(refused))
    try:
        data_dir = DataDir(str(config.data_dir), config.node_id)
    except DataDirRefused as refused:
        return _refuse(f"{config.data_dir_key}: {refused}")
    try:
        tls = open_tls(config)
        tokens = open_tokens(config)
        ports = _bind(config)
    except (CannotListen, BadListeners, BadStore) as refused:
        data_dir.withdraw()
        return _refuse(f"{refused.key}: {refused}")
    observer(DaemonStep("Starting up.", {"version": __version__, "data": data_dir.path}))
    for warning in _warnings_of_start(config, data_dir, descriptors):
        observer(warning)
    try:
        running = _run(
            config,
            observer,
            data_dir,
            ports,
            tls,
            tokens,
            open_console,
            announce or partial(_print_ready_line, data_dir.path),
            repair=repair,
        )
        return uvloop.run(running)
    except Corrupt as damage:
        return _refuse(f"cannot start on {data_dir.path}: {repair_hint(damage)}", EXIT_FAILED)
    except OSError as error:
        return _refuse(f"cannot start on {data_dir.path}: {error}", EXIT_FAILED)
    finally:
        observer.end_wait_of_joins()
        ports.close()
        data_dir.close()


def _warnings_of_start(config: Config, data_dir: DataDir, descriptors: int) -> Iterator[Warned]:
    yield from map(Warned, config.warnings)
    if data_dir.lost_identity:
        words = "The data directory had partitions and no meta.properties: it has a new cluster id"
        yield Warned(words, {"cluster_id": data_dir.identity.cluster_id})
    if descriptors < SMALL_DESCRIPTOR_LIMIT:
        yield Warned("Few file descriptors (ulimit -n)", {"limit": descriptors})
    if config.rollcall_crash_at != NO_CRASH:
        yield Warned("Will crash in the next rebalance", {"at": config.rollcall_crash_at})
    if config.rollcall_drill_faults:
        words = "Faults are injected: this is the daemon of a drill"
        yield Warned(words, {"file": config.rollcall_drill_faults})


async def _run(
    config: Config,
    observer: Observer,
    data_dir: DataDir,
    ports: Ports,
    tls: Mapping[str, "ListenerTls"],
    tokens: Tokens,
    open_console: OpenConsole | None,
    announce: Announce,
    *,
    repair: bool,
) -> int:
    loop = asyncio.get_running_loop()
    observer.let_joins_wait(config.rollcall_log_join_linger_ms / 1000, loop.call_later)
    strict = bool(os.environ.get(STRICT_FILES_VARIABLE))
    daemon = build(
        config, observer, data_dir, loop, tls, tokens, repair=repair, strict_files=strict
    )
    stop_requested = asyncio.Event()
    listen_to_signals(loop, stop_requested, observer)
    faults: list[str] = []
    daemon.storage_failed = partial(_storage_failed, data_dir.path, stop_requested, faults)
    alive = LastAlive(loop, data_dir.touch)
    alive.start()
    await daemon.open(ports.clients)
    notify("READY=1")  # clients are answered, if only LOADING: a long load is no failed start
    loading = loop.create_task(daemon.load())
    opening = loop.create_task(console_after(loading, daemon, ports.admin, open_console))
    stopping = loop.create_task(stop_requested.wait())
    await asyncio.wait((loading, stopping), return_when=asyncio.FIRST_COMPLETED)
    damage = None
    if loading.done():
        loading.result()
        damage = daemon.damage
        if damage is None:
            announce(daemon, ports)
            observer(
                DaemonStep(
                    "Startup complete.",
                    {"build": describe_build(), "python": interpreter_version()},
                )
            )
        else:
            stop_requested.set()  # a start that finds damage is refused, at whatever step
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


def _storage_failed(
    path: str, stop_requested: asyncio.Event, faults: list[str], reason: str
) -> None:
    """End the process, so that its supervisor starts it: only a start can find out what is stored.

    Pending requests are answered, as at every stop. A disk that hangs must not keep the process.
    """
    if not faults:
        words = "the process ends, and the next start recovers what was acknowledged"
        _refuse(f"the journal of {path} has failed ({reason}); {words}", EXIT_FAILED)
        watchdog = threading.Timer(STOP_AFTER_FAULT_S, os._exit, (EXIT_FAILED,))
        watchdog.daemon = True
        watchdog.start()
    faults.append(reason)
    stop_requested.set()


async def console_after(
    loading: asyncio.Future[None],
    daemon: Daemon,
    admin: Bound | None,
    open_console: OpenConsole | None,
) -> RunningConsole | None:
    """Open the console once the load is over; a fault there is logged, and clients are served."""
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
    loop: asyncio.AbstractEventLoop, stop_requested: asyncio.Event, observer: Observer
) -> None:
    for number in STOP_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # by nohup: SIGHUP must not stop it
            loop.add_signal_handler(number, _on_signal, loop, stop_requested, observer, number)


def _on_signal(
    loop: asyncio.AbstractEventLoop,
    stop_requested: asyncio.Event,
    observer: Observer,
    number: signal.Signals,
) -> None:
    stop_requested.set()
    observer(
        DaemonStep(
            "Received a signal to stop; another one ends it at once", {"signal": number.name}
        )
    )
    end = partial(_end_at_once, (number, monotonic()))
    for other in STOP_SIGNALS:
        if loop.remove_signal_handler(other):
            signal.signal(other, end)


def _end_at_once(first: tuple[int, float], number: int, _frame: FrameType | None) -> None:
    """End as the signal does by default, after one line on stderr."""
    first_number, first_s = first
    if number == first_number and monotonic() - first_s < REPEATED_SIGNAL_S:
        return
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
        if config.rollcall_admin_ssl_certificate:
            from broker.net.admin_tls import admin_certificate

            admin_certificate(config)  # one that cannot be loaded stops the start
        admin = config.admin_address
        return Ports(bound, None if admin is None else bind_admin(*admin))
    except BaseException:
        for port in bound:
            port.close()
        raise


def _print_ready_line(data: str, daemon: Daemon, ports: Ports) -> None:
    """One line on stdout, for scripts and people. The daemon also serves if nobody reads it."""
    observer = daemon.observer
    clients = ",".join(str(bound) for bound in ports.clients)
    words = ["rollcall ready:", "clients", clients]
    if ports.admin is not None:
        words += ["admin", address_text(ports.admin.host, ports.admin.port)]
    if sys.stdout is None:  # the parent process has closed it
        observer(Warned("stdout is closed: nobody reads the ready line"))
        return
    try:
        print(*words, "data", data, flush=True)
    except (OSError, ValueError) as failed:
        observer(Warned("The ready line could not be written to stdout", {"reason": str(failed)}))
        # What it still buffers would make the end of the process fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _refuse(reason: str, exit_code: int = EXIT_REFUSED) -> int:
    print(f"rollcall: {reason}", file=sys.stderr, flush=True)
    return exit_code
