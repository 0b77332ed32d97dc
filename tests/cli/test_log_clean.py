"""`rollcall log clean`: does it free what it says, and only where nobody else is at work?"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker.daemon import Daemon
from tests.cli.test_command import Command, rollcall
from tests.interop.offsets_givens import commit_by_hand, fetch_by_hand

__all__ = ["rollcall"]  # the fixture
NO_LAG = ("--set", "rollcall.offsets.history.ms=0")


SETTINGS = {"offsets.topic.segment.bytes": "300000"}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a daemon has left: a log with a sealed segment, many commits of few partitions."""
    daemon = Daemon(tmp_path_factory.mktemp("filled"), SETTINGS)
    try:
        daemon.start()
        admin = AdminClient({"bootstrap.servers": daemon.bootstrap})
        admin.create_topics([NewTopic("orders", 10)])["orders"].result(60)
        commit_by_hand(daemon.port, "billing", "orders", range(20))
        assert daemon.stop() == 0
    finally:
        daemon.close()
    return daemon.data_dir


@pytest.fixture
def given(filled: Path, tmp_path: Path) -> Iterator[Daemon]:
    """A daemon that was stopped, with a copy of that."""
    daemon = Daemon(tmp_path, SETTINGS)
    shutil.copytree(filled, daemon.data_dir)
    yield daemon
    daemon.close()


def bytes_of(daemon: Daemon) -> int:
    return sum(log.stat().st_size for log in daemon.data_dir.glob("__consumer_offsets-*/*.log"))


def files_of(daemon: Daemon) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in daemon.data_dir.rglob("*") if path.is_file()}


def test_a_dry_run_says_what_cleaning_frees_and_changes_nothing(
    given: Daemon, rollcall: Command
) -> None:
    before = {path: content for path, content in files_of(given).items() if path.name != ".lock"}
    rehearsed = rollcall("log", "clean", "--dry-run", "--json", *NO_LAG, str(given.data_dir))
    assert rehearsed.exit_code == 0, rehearsed.err
    after = {path: content for path, content in files_of(given).items() if path.name != ".lock"}
    changed = {
        path.name for path in before.keys() | after.keys() if before.get(path) != after.get(path)
    }
    # Only what any start and stop renews: the journal's passes, which hold nothing.
    assert changed <= {"rollcall-journal.wal", "rollcall-journal-2.wal"}

    size = bytes_of(given)
    cleaned = rollcall("log", "clean", "--json", *NO_LAG, str(given.data_dir))
    assert cleaned.exit_code == 0, cleaned.err
    assert cleaned.out == rehearsed.out
    facts = [json.loads(line) for line in cleaned.out.splitlines()]
    freed = sum(fact["bytesBefore"] - fact["bytesAfter"] for fact in facts)
    assert freed == size - bytes_of(given) > size // 2


def test_the_daemon_goes_on_with_what_is_left(given: Daemon, rollcall: Command) -> None:
    done = rollcall("log", "clean", "--roll", *NO_LAG, str(given.data_dir))
    assert done.exit_code == 0, done.err
    assert "KiB freed of" in done.out
    assert rollcall("log", "lint", str(given.data_dir)).exit_code == 0
    given.start()
    assert [fetch_by_hand(given.port, "billing", "orders", n)[0] for n in range(10)] == [19] * 10


def test_what_the_lag_protects_stays(given: Daemon, rollcall: Command) -> None:
    size = bytes_of(given)
    done = rollcall("log", "clean", str(given.data_dir))
    assert done.exit_code == 0
    assert done.out.startswith("0 B freed of ")
    assert bytes_of(given) == size


def test_it_keeps_off_while_a_daemon_runs(given: Daemon, rollcall: Command) -> None:
    given.start()
    for arguments in ((), ("--dry-run",)):
        refused = rollcall("log", "clean", *arguments, str(given.data_dir))
        assert refused.exit_code == 2
        assert refused.out == ""
        assert refused.err.count("\n") == 1
    assert f"in use by process {given.pid}" in rollcall("log", "clean", str(given.data_dir)).err


def test_the_directory_of_a_killed_daemon_is_recovered_first(
    given: Daemon, rollcall: Command
) -> None:
    given.start()
    commit_by_hand(given.port, "billing", "orders", range(20, 25))
    given.kill()
    refused = rollcall("log", "clean", "--dry-run", str(given.data_dir))
    assert refused.exit_code == 2
    assert "was not stopped cleanly" in refused.err
    done = rollcall("log", "clean", *NO_LAG, str(given.data_dir))
    assert done.exit_code == 0, done.err
    given.start()
    assert fetch_by_hand(given.port, "billing", "orders", 3)[0] == 24


def test_only_what_is_asked_for_is_cleaned(given: Daemon, rollcall: Command) -> None:
    def cleaned(*arguments: str) -> list[dict]:
        done = rollcall("log", "clean", "--json", *arguments, str(given.data_dir))
        assert done.exit_code == 0, done.err
        return [json.loads(line) for line in done.out.splitlines()]

    assert [fact["partition"] for fact in cleaned("--partition", "7")] == [7]
    assert {fact["topic"] for fact in cleaned("--log-topic", "__consumer_offsets")} == {
        "__consumer_offsets"
    }
    assert cleaned("--log-topic", "orders") == []  # not compacted


def test_what_is_not_ours_is_refused(tmp_path: Path, rollcall: Command) -> None:
    (tmp_path / "kafka").mkdir()
    (tmp_path / "kafka" / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=1\n")
    refused = rollcall("log", "clean", str(tmp_path / "kafka"))
    assert refused.exit_code == 2
    assert "belongs to an Apache Kafka broker" in refused.err
    refused = rollcall("log", "clean", str(tmp_path / "nothing"))
    assert refused.exit_code == 2
    assert not (tmp_path / "nothing").exists()


def test_damage_ends_it_with_1(given: Daemon, rollcall: Command) -> None:
    log = max(
        given.data_dir.glob("__consumer_offsets-*/*.log"), key=lambda path: path.stat().st_size
    )
    with log.open("r+b") as file:
        file.seek(200)
        file.write(b"\xff\xff")
    failed = rollcall("log", "clean", *NO_LAG, str(given.data_dir))
    assert failed.exit_code == 1
    assert str(log) in failed.err
    assert failed.err.count("\n") == 1
