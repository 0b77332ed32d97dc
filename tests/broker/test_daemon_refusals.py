"""Refused starts: one line that names the key to change, an exit code, and no traceback."""

import os
import socket
import subprocess
from pathlib import Path

import pytest

from tests.broker.daemon import Daemon


def refused(daemon: Daemon) -> tuple[int, str]:
    """(exit code, the one line) of a daemon that must not start."""
    ended = subprocess.run(
        daemon.command(), capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.stdout == ""
    lines = ended.stderr.splitlines()
    assert len(lines) == 1, ended.stderr
    return ended.returncode, lines[0]


@pytest.fixture
def fresh(tmp_path: Path) -> Daemon:
    (tmp_path / "fresh").mkdir()
    return Daemon(tmp_path / "fresh")


def test_a_port_in_use(fresh: Daemon) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        fresh.listen = f"127.0.0.1:{taken.getsockname()[1]}"
        exit_code, line = refused(fresh)
    assert exit_code == 2
    assert line.startswith("rollcall: listeners: ")
    assert "is in use by another process" in line
    assert fresh.listen in line
    assert not fresh.data_dir.exists()


def test_an_admin_port_in_use(fresh: Daemon) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        fresh.admin_listen = f"127.0.0.1:{taken.getsockname()[1]}"
        exit_code, line = refused(fresh)
    assert exit_code == 2
    assert line.startswith("rollcall: rollcall.admin.listener: ")


def test_an_address_that_is_not_this_machines(fresh: Daemon) -> None:
    fresh.listen = "192.0.2.1:9092"
    exit_code, line = refused(fresh)
    assert exit_code == 2
    assert "the address does not belong to this machine" in line


def test_an_authorizer_that_is_not_kafkas(fresh: Daemon) -> None:
    fresh.settings["authorizer.class.name"] = "com.example.OwnAuthorizer"
    exit_code, line = refused(fresh)
    assert exit_code == 2
    assert line.startswith("rollcall: authorizer.class.name = com.example.OwnAuthorizer ")


def test_an_assignor_that_nobody_has_installed(fresh: Daemon) -> None:
    fresh.settings["group.consumer.assignors"] = "uniform,nobody"
    exit_code, line = refused(fresh)
    assert exit_code == 2
    assert line.startswith("rollcall: group.consumer.assignors: no assignor 'nobody': ")
    assert not fresh.data_dir.exists()


def test_a_second_daemon_on_the_same_data(daemon: Daemon, fresh: Daemon) -> None:
    fresh.data_dir = daemon.data_dir
    exit_code, line = refused(fresh)
    assert exit_code == 2
    assert line == (
        f"rollcall: log.dirs: data directory {daemon.data_dir} is in use by process {daemon.pid}"
        ": stop it first, or use another directory"
    )
    assert daemon.get("/livez")[0] == 200


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_data_directory_that_cannot_be_written(fresh: Daemon) -> None:
    fresh.data_dir.mkdir(mode=0o500)
    exit_code, line = refused(fresh)
    assert exit_code == 2
    assert line.startswith("rollcall: log.dir: ")


def test_a_data_directory_that_cannot_be_made(fresh: Daemon) -> None:
    fresh.data_dir.write_text("not a directory")
    fresh.data_dir /= "data"
    exit_code, line = refused(fresh)
    assert exit_code == 2
    assert line.startswith(f"rollcall: log.dirs: data directory {fresh.data_dir} cannot be used")


def test_data_of_another_version_and_of_another_node(daemon: Daemon, fresh: Daemon) -> None:
    assert daemon.stop() == 0
    fresh.data_dir = daemon.data_dir
    fresh.settings["node.id"] = "7"
    exit_code, line = refused(fresh)
    assert exit_code == 2
    assert "belongs to node 1, this is node 7" in line

    del fresh.settings["node.id"]
    meta = daemon.data_dir / "meta.properties"
    meta.write_text(meta.read_text().replace("rollcall.data.version=1", "rollcall.data.version=9"))
    exit_code, line = refused(fresh)
    assert exit_code == 2
    assert "has data version 9, this Rollcall supports 1" in line


def test_a_journal_too_small_for_one_flush(fresh: Daemon) -> None:
    fresh.settings["rollcall.journal.bytes"] = "1048576"
    exit_code, line = refused(fresh)
    assert exit_code == 2
    assert line.startswith("rollcall: ")
    assert "rollcall.journal.bytes" in line
    assert "36582208" in line


def test_an_address_that_no_client_could_reach(fresh: Daemon) -> None:
    fresh.arguments = ["--advertise", "0.0.0.0:9092"]
    exit_code, line = refused(fresh)
    assert exit_code == 2
    assert "advertised.listeners" in line


def test_a_real_kafkas_directory_is_left_as_it_was(fresh: Daemon) -> None:
    fresh.data_dir.mkdir()
    meta = fresh.data_dir / "meta.properties"
    meta.write_text("node.id=1\nversion=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qk\n")
    exit_code, line = refused(fresh)
    assert exit_code == 2
    assert f"rollcall offsets import --from {fresh.data_dir}" in line
    assert list(fresh.data_dir.iterdir()) == [meta]
