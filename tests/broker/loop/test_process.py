"""Process: what the daemon and the operating system report to each other."""

import asyncio
import contextlib
import errno
import os
import re
import resource
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from broker.loop.process import notify, raise_descriptor_limit
from broker.main import STOP_SIGNALS, listen_to_signals
from broker.net import sockets
from broker.net.peer import client_host, peer_address, peer_name
from broker.net.sockets import CannotListen, address_text, bind, bind_listener
from broker.observe.events import DaemonStep
from config.limits import ServerLimits
from config.listeners import Listener
from protocol.messages.offset_commit import OffsetCommitResponse
from protocol.names import OFFSETS_TOPIC, ErrorCode
from tests.broker.daemon import TEST_SETTINGS, Daemon
from tests.broker.shell import Shell
from tests.compare.wire import Wire
from tests.drills.crowd import COMMIT_VERSION, commit_request

FEW_DESCRIPTORS = ("sh", "-c", 'ulimit -n 1000 && exec "$@"', "sh")


@pytest.fixture
def service_manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> socket.socket:
    """The socket on which systemd hears its services."""
    address = str(tmp_path / "notify")
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.settimeout(60)
    manager.bind(address)
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    return manager


def test_systemd_is_notified_of_the_start_and_of_the_stop(
    service_manager: socket.socket, tmp_path: Path
) -> None:
    (tmp_path / "node").mkdir()
    daemon = Daemon(tmp_path / "node").start()
    assert service_manager.recv(1_000) == b"READY=1"
    assert daemon.stop() == 0
    assert service_manager.recv(1_000) == b"STOPPING=1"
    service_manager.close()


def test_without_a_service_manager_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    assert not notify("READY=1")
    monkeypatch.setenv("NOTIFY_SOCKET", "/nowhere/to/be/found")
    assert not notify("READY=1")


def test_the_limit_of_descriptors_is_raised_to_what_is_allowed() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(512, before[1]), before[1]))
        assert raise_descriptor_limit() == resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= 512
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_small_limit_of_descriptors_is_worth_a_warning(tmp_path: Path) -> None:
    (tmp_path / "node").mkdir()
    daemon = Daemon(tmp_path / "node", prefix=FEW_DESCRIPTORS)
    try:
        daemon.start()
        assert "Few file descriptors" in daemon.log()
        assert "limit=1000" in daemon.log()
    finally:
        daemon.close()


def test_a_connection_storm_leaves_descriptors_for_the_log(tmp_path: Path) -> None:
    """600 connections at a limit of 400: some wait, some are closed, and every commit is stored."""
    (tmp_path / "node").mkdir()
    daemon = Daemon(tmp_path / "node", prefix=("sh", "-c", 'ulimit -n 400 && exec "$@"', "sh"))
    crowd: list[socket.socket] = []
    try:
        daemon.start()
        (line,) = [line for line in daemon.log().splitlines() if "(ulimit -n) allow" in line]
        allowed = int(re.findall(r"connections=(\d+)", line)[0])
        assert 50 < allowed < 300 < 400
        wire = Wire(daemon.port, "committer")
        for number in range(600):
            with contextlib.suppress(OSError):
                crowd.append(socket.create_connection(("127.0.0.1", daemon.port), timeout=60))
            if number % 20 == 0:
                # Another group each time: other partitions, and new files.
                wire.send(commit_request(f"g-{number}", OFFSETS_TOPIC, {0: number}), COMMIT_VERSION)
                answer = wire.receive(OffsetCommitResponse, COMMIT_VERSION)
                assert isinstance(answer, OffsetCommitResponse)
                assert answer.topics[0].partitions[0].error_code is ErrorCode.NONE
        assert "Too many open files" not in daemon.log()
        assert "The journal has failed" not in daemon.log()
        assert daemon.log().count(f"{allowed} connections; the other file descriptors") == 1
    finally:
        for client in crowd:
            client.close()
        daemon.close()


def connections_of(folder: Path, *listeners: str) -> int:
    """How many a daemon with these listeners allows, by its log."""
    folder.mkdir()
    names = [listener.partition("://")[0] for listener in listeners]
    settings = {
        "listeners": ",".join(listeners),
        "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in names),
        "inter.broker.listener.name": names[0],
        "controller.listener.names": "CONTROLLER",
    }
    daemon = Daemon(folder, TEST_SETTINGS | settings, prefix=FEW_DESCRIPTORS)
    daemon.listen = None
    try:
        daemon.start()
        (line,) = [line for line in daemon.log().splitlines() if "(ulimit -n) allow" in line]
    finally:
        daemon.close()
    return int(re.findall(r"connections=(\d+)", line)[0])


def test_each_listener_has_clients_that_wait_for_a_slot(tmp_path: Path) -> None:
    """Their descriptors are no others' either."""
    first, *others = (f"L{number}://127.0.0.1:0" for number in range(3))
    of_one = connections_of(tmp_path / "one", first)
    assert of_one - connections_of(tmp_path / "three", first, *others) == 2 * 2 * 50


def test_a_controllers_listener_is_not_opened_and_has_no_clients(tmp_path: Path) -> None:
    first, controllers = "L0://127.0.0.1:0", "CONTROLLER://127.0.0.1:0"
    of_one = connections_of(tmp_path / "one", first)
    assert connections_of(tmp_path / "two", first, controllers) == of_one


async def test_the_first_signal_is_logged_and_each_may_be_the_first() -> None:
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    try:
        for number in STOP_SIGNALS:
            stop_requested, said = asyncio.Event(), list[object]()
            for stop_signal in STOP_SIGNALS:  # under nohup SIGHUP is ignored, and stays so
                signal.signal(stop_signal, signal.default_int_handler)
            listen_to_signals(loop, stop_requested, said.append)  # type: ignore[arg-type]
            os.kill(os.getpid(), number)
            await asyncio.wait_for(stop_requested.wait(), 60)
            (event,) = said
            assert isinstance(event, DaemonStep)
            assert event.fields == {"signal": number.name}
            assert len({signal.getsignal(number) for number in STOP_SIGNALS}) == 1
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def test_a_signal_that_nohup_ignores_stays_ignored() -> None:
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    loop, stop_requested = asyncio.get_running_loop(), asyncio.Event()
    try:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        listen_to_signals(loop, stop_requested, lambda _: None)  # type: ignore[arg-type]
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        for number in STOP_SIGNALS:
            loop.remove_signal_handler(number)
        for number, handler in before.items():
            signal.signal(number, handler)


def test_sighup_is_a_clean_stop(daemon: Daemon) -> None:
    daemon.process.send_signal(signal.SIGHUP)
    assert daemon.wait() == 0
    assert "Shutdown complete." in daemon.log()


STOPS_FOR_EVER = """
import asyncio, os, signal, uvloop
from broker.main import listen_to_signals

async def stop_for_ever():
    stop_requested = asyncio.Event()
    listen_to_signals(asyncio.get_running_loop(), stop_requested, print)
    os.kill(os.getpid(), signal.SIGTERM)
    await stop_requested.wait()
    for _ in range(4):
        os.kill(os.getpid(), signal.SIGINT)
    await asyncio.Event().wait()

uvloop.run(stop_for_ever())
"""


def test_a_second_signal_ends_it_at_once_and_says_so() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", STOPS_FOR_EVER], capture_output=True, text=True, timeout=60,
        check=False, cwd=Path(__file__).parents[3],
    )  # fmt: skip
    assert ended.returncode == -signal.SIGINT
    assert "another one ends it at once" in ended.stdout
    assert ended.stderr == (
        "rollcall: ended at once by a second signal (SIGINT); the next start recovers\n"
    )


STOPS_AT_TIMES = """
import asyncio, os, signal, uvloop
from broker import main

async def stop_for_ever():
    stop_requested = asyncio.Event()
    main.monotonic = lambda: 5.0
    main.listen_to_signals(asyncio.get_running_loop(), stop_requested, print)
    os.kill(os.getpid(), signal.SIGTERM)
    await stop_requested.wait()
    for _ in range(4):
        os.kill(os.getpid(), signal.SIGTERM)
    print("goes on", flush=True)
    main.monotonic = lambda: 5.0 + main.REPEATED_SIGNAL_S
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.Event().wait()

uvloop.run(stop_for_ever())
"""


def test_a_signal_that_comes_twice_at_once_is_one() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", STOPS_AT_TIMES], capture_output=True, text=True, timeout=60,
        check=False, cwd=Path(__file__).parents[3],
    )  # fmt: skip
    assert ended.stdout.endswith("goes on\n")
    assert ended.returncode == -signal.SIGTERM


def test_a_client_is_shown_as_java_shows_it() -> None:
    assert client_host("127.0.0.1") == "/127.0.0.1"
    assert client_host("::1") == "/0:0:0:0:0:0:0:1"
    assert client_host("2001:db8::ff00:42:8329") == "/2001:db8:0:0:0:ff00:42:8329"
    assert client_host("fe80::1%eth0") == "/fe80:0:0:0:0:0:0:1%eth0"


class Transport:
    def __init__(self, name: object) -> None:
        self.name = name

    def get_extra_info(self, key: str) -> object:
        return self.name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (("10.0.0.7", 5), ("10.0.0.7", "10.0.0.7:5")),
        (("::ffff:10.0.0.7", 5, 0, 0), ("10.0.0.7", "10.0.0.7:5")),
        (("::1", 5, 0, 0), ("::1", "[::1]:5")),
        (None, ("", "")),
    ],
)
def test_a_peer_is_named_as_it_came(name: object, expected: tuple[str, str]) -> None:
    host, port = peer_address(Transport(name))  # type: ignore[arg-type]
    assert (host, peer_name(host, port)) == expected


def test_an_empty_host_listens_everywhere_and_a_name_on_all_its_addresses() -> None:
    everywhere = bind("ANY", "", 0)
    try:
        assert everywhere.port > 0
        assert everywhere.sockets[0].getsockname()[0] in ("::", "0.0.0.0")
    finally:
        everywhere.close()
    named = bind("NAMED", "localhost", 0)
    try:
        assert {sock.getsockname()[1] for sock in named.sockets} == {named.port}
    finally:
        named.close()


def test_a_port_of_0_is_advertised_as_the_one_that_was_found() -> None:
    bound = bind_listener(
        Listener("OUTSIDE", "127.0.0.1", 0, "example.org", 0),
        backlog=7,
        send_buffer_bytes=65_536,
        receive_buffer_bytes=-1,
    )
    try:
        assert (bound.advertised_host, bound.advertised_port) == ("example.org", bound.port)
        assert str(bound) == f"127.0.0.1:{bound.port}"
        (sock,) = bound.sockets
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) >= 65_536
    finally:
        bound.close()


async def test_a_storm_of_connections_finds_room_in_the_kernels_queue() -> None:
    """A full queue drops a connection without a word; its client tries again after a second."""
    listener = Listener("OUTSIDE", "127.0.0.1", 0, "127.0.0.1", 0)
    bound = bind_listener(listener, backlog=7, send_buffer_bytes=-1, receive_buffer_bytes=-1)
    async with Shell(ServerLimits(socket_listen_backlog_size=7)) as shell:
        addresses = [(bound.host, bound.port), ("127.0.0.1", shell.listener.port)]
        clients = [socket.socket() for _ in range(200)]
        try:
            for number, client in enumerate(clients):  # The loop does not run meanwhile.
                client.settimeout(30)
                client.connect(addresses[number % 2])
        finally:
            for client in clients:
                client.close()
            bound.close()


def test_an_unknown_host_is_one_clear_line() -> None:
    with pytest.raises(CannotListen, match=r"^cannot listen on no\.such\.invalid:9092 \(X\): "):
        bind("X", "no.such.invalid", 9092)
    assert address_text("::1", 9092) == "[::1]:9092"


def test_a_port_that_is_taken_at_the_second_address_is_not_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chosen: list[int] = []

    class Socket(socket.socket):
        def bind(self, address: Any) -> None:
            if address[1] and len(chosen) < 3:
                chosen.append(address[1])
                raise OSError(errno.EADDRINUSE, "taken")
            super().bind(address)

    two = [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "127.0.0.2")]
    monkeypatch.setattr(sockets, "_addresses", lambda *_: two)
    monkeypatch.setattr(socket, "socket", Socket)
    bound = bind("TWO", "two", 0)
    assert len({each.getsockname()[1] for each in bound.sockets}) == 1
    assert len(chosen) == 3
    bound.close()
    chosen.clear()
    with pytest.raises(CannotListen, match="in use"):
        bind("TWO", "two", bound.port)
    assert len(chosen) == 1
