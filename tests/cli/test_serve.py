"""`rollcall serve` as a process: what it says when it cannot start; does it obey its sources?"""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.broker.daemon import Daemon

ROLLCALL = Path(sys.executable).with_name("rollcall")
FREE_PORTS = ("--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")


def refused(*arguments: str | Path) -> str:
    """The one line with which a daemon declines to start."""
    done = subprocess.run(
        [ROLLCALL, "serve", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]


@pytest.fixture
def busy_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield taken.getsockname()[1]


def test_a_port_in_use_is_one_line_with_its_key(tmp_path: Path, busy_port: int) -> None:
    data = ("--data-dir", tmp_path / "data")
    address = f"127.0.0.1:{busy_port}"

    clients = refused(*data, "--listen", address, "--admin", "127.0.0.1:0")
    assert "listeners" in clients
    assert address in clients
    admin = refused(*data, "--listen", "127.0.0.1:0", "--admin", address)
    assert "rollcall.admin.listener" in admin
    assert address in admin


def test_text_that_is_no_host_name_is_one_line_with_its_key(tmp_path: Path) -> None:
    data = tmp_path / "data"
    output = refused(*FREE_PORTS, "--data-dir", data, "--advertise", os.fsdecode(b"h\xff:9092"))
    assert output.startswith("rollcall: advertised.listeners = ")
    bound = refused("--data-dir", data, "--listen", "a..b:9092")
    assert "'a..b' is not a host name" in bound
    assert not data.exists()


def test_a_data_dir_that_cannot_be_one_names_its_key(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "log.dirs" in refused(*FREE_PORTS, "--set", f"log.dirs={tmp_path}/file/inside")


def test_a_second_daemon_on_the_same_data_is_refused(daemon: Daemon) -> None:
    assert str(daemon.data_dir) in refused(*FREE_PORTS, "--data-dir", daemon.data_dir)
    assert daemon.running


def test_the_environment_and_a_file_reach_the_daemon(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("node.id=7\nnum.partitions=3\nauto.create.topics.enable=false\n")
    daemon = Daemon(tmp_path / "data", {})
    daemon.arguments = ["--config", str(path)]
    daemon.environment = {
        "KAFKA_NODE_ID": "8",
        "ROLLCALL_LOG_FORMAT": "json",
        "KAFKA_NODE_IDS": "1",
    }
    (tmp_path / "data").mkdir()
    daemon.start()
    try:
        cluster = AdminClient({"bootstrap.servers": daemon.bootstrap}).list_topics(timeout=60)
        assert list(cluster.brokers) == [8]
        # Every line is one JSON object, the warning about a misspelled variable too.
        said = [json.loads(line) for line in daemon.log().splitlines()]
        assert any("KAFKA_NODE_IDS" in str(fact) for fact in said)
    finally:
        assert daemon.stop() == 0
        daemon.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_while_the_options_are_read_is_a_clean_end(tmp_path: Path, number: int) -> None:
    fifo = tmp_path / "server.properties"
    os.mkfifo(fifo)
    data = tmp_path / "data"
    process = subprocess.Popen(
        [ROLLCALL, "serve", *FREE_PORTS, "--data-dir", data, "--config", fifo],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with fifo.open("w"):  # as soon as it reads
        process.send_signal(number)
        assert process.communicate(timeout=60) == (b"", b"")
    assert process.returncode == 0
    assert not data.exists()


@pytest.mark.parametrize("moment", [b"Starting up.", b"Elected as"])
def test_a_signal_in_the_midst_of_a_start_is_a_clean_end(tmp_path: Path, moment: bytes) -> None:
    data = ("--data-dir", tmp_path / "data")
    for _ in range(2):  # the second time on what the first left
        process = subprocess.Popen([ROLLCALL, "serve", *FREE_PORTS, *data], stderr=subprocess.PIPE)
        assert process.stderr is not None
        for line in process.stderr:
            if moment in line:
                break
        process.terminate()
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0, said
        assert b"Traceback" not in said


@pytest.mark.parametrize("stdout", ["/dev/full", "a closed pipe", "closed"])
def test_a_ready_line_that_nobody_can_read_ends_no_daemon(tmp_path: Path, stdout: str) -> None:
    data = ("--data-dir", str(tmp_path / "data"))
    command = [str(ROLLCALL), "serve", *FREE_PORTS, *data]
    if stdout == "closed":
        command = ["sh", "-c", 'exec "$@" >&-', "sh", *command]
    if stdout == "a closed pipe":
        reader, writer = os.pipe()
        os.close(reader)
    else:
        writer = os.open("/dev/full", os.O_WRONLY)
    process = subprocess.Popen(command, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert process.stderr is not None
    said = b""
    for line in process.stderr:
        said += line
        if b"Startup complete" in line:
            break
    assert b"ready line" in said
    assert process.poll() is None
    process.terminate()
    _, rest = process.communicate(timeout=60)
    assert process.returncode == 0, rest
    assert b"Traceback" not in said + rest
    assert b"Shutdown complete" in rest
    # Nothing took the place of a stream that was closed.
    assert not [path for path in (tmp_path / "data").rglob("*") if b"ready:" in _content(path)]


def test_a_daemon_whose_parent_closed_stderr_serves(tmp_path: Path) -> None:
    data = tmp_path / "data"
    command = ["sh", "-c", 'exec "$@" 2>&-', "sh", str(ROLLCALL), "serve", *FREE_PORTS]
    process = subprocess.Popen([*command, "--data-dir", data], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b"rollcall ready: ")
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert not [path for path in data.rglob("*") if b"Starting up." in _content(path)]


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() and path.stat().st_size < 1_000_000 else b""
