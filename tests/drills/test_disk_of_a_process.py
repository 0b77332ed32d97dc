"""Disk faults of a process: a disk that is full for a while, files damaged while it was down.

The full disk is a limit on the size of its files (RLIMIT_FSIZE), which another process may set: no
mount, no privilege, and the very errors that the kernel gives.
"""

import os
import resource
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from logtools.findings import LintCounts
from logtools.layout import place_at
from logtools.lint import findings
from protocol.messages.offset_commit import OffsetCommitResponse
from protocol.names import OFFSETS_TOPIC, ErrorCode
from storage.batch.record_batch import HEADER_BYTES
from tests.broker.daemon import TEST_SETTINGS, Daemon
from tests.compare.wire import Wire
from tests.conftest import StartDaemon
from tests.drills.crowd import COMMIT_VERSION, TIMEOUT_S, commit_request, committed_offsets
from tests.interop.conftest import create_topic

TOPIC = "orders"
FULL_AT = 10_000  # bytes of any file; a few hundred bytes into the journal
AGAIN = {
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}


class Committer:
    """Commits one offset after the other, over one connection."""

    def __init__(self, daemon: Daemon, group: str) -> None:
        self.group = group
        self.wire = Wire(daemon.port, group)
        self.acknowledged = self.sent = 0

    def commit(self) -> ErrorCode:
        self.sent += 1
        self.wire.send(commit_request(self.group, TOPIC, {0: self.sent}), COMMIT_VERSION)
        answer = self.wire.receive(OffsetCommitResponse, COMMIT_VERSION)
        assert isinstance(answer, OffsetCommitResponse)
        error_code = answer.topics[0].partitions[0].error_code
        if error_code is ErrorCode.NONE:
            self.acknowledged = self.sent
        return error_code


def _until(what: str, fact: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not fact():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.01)


def _commit_at_last(committer: Committer) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while (answer := committer.commit()) is not ErrorCode.NONE:
        assert answer in AGAIN
        assert time.monotonic() < deadline, f"{committer.group} is refused forever: {answer!r}"


def _allow_files_of(pid: int, size: int) -> None:
    hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))


def _refuses_and_says_why(daemon: Daemon, committer: Committer) -> bool:
    """The daemon soon reuses its journal file, and has room until that is as long: so fill it."""
    status, reason = daemon.get("/readyz")
    refused = committer.commit() is ErrorCode.COORDINATOR_NOT_AVAILABLE
    return refused and status == 503 and "disk full: " in reason


def test_a_disk_that_was_full_is_served_on_without_a_restart(start_daemon: StartDaemon) -> None:
    # Its log is on the full disk as well: that must harm nobody.
    settings = {**TEST_SETTINGS, "rollcall.disk.full.retry.ms": "20", "rollcall.log.level": "debug"}
    daemon = start_daemon(settings)
    create_topic(daemon.bootstrap, TOPIC, 1)
    committer, other = Committer(daemon, "billing"), Committer(daemon, "shipping")
    for client in (committer, other):
        assert client.commit() is ErrorCode.NONE

    assert len(daemon.log()) > FULL_AT
    for _ in range(2):
        # When the kernel takes no byte any more beyond what is there.
        _allow_files_of(daemon.pid, FULL_AT)
        while (refused := committer.commit()) is ErrorCode.NONE:
            pass
        assert refused in AGAIN
        _until("a refusal", lambda: _refuses_and_says_why(daemon, committer))

        # Then what was acknowledged is read, and nothing else has happened.
        (read,) = committed_offsets(daemon.port, "billing", TOPIC, [0])
        assert committer.acknowledged <= read <= committer.sent
        assert committed_offsets(daemon.port, "shipping", TOPIC, [0]) == [other.acknowledged]

        # And with room again it goes on by itself: what was shown is still there.
        _allow_files_of(daemon.pid, resource.RLIM_INFINITY)
        _until("a ready daemon", lambda: daemon.get("/readyz")[0] == 200)
        (shown,) = committed_offsets(daemon.port, "billing", TOPIC, [0])
        assert shown >= read
        for client in (committer, other):
            _commit_at_last(client)

    daemon.kill()
    daemon.start()
    for client in (committer, other):
        assert committed_offsets(daemon.port, client.group, TOPIC, [0]) == [client.acknowledged]


# --- damage --------------------------------------------------------------------------------------


def _segment_of(daemon: Daemon, group: str) -> Path:
    (found,) = (
        path
        for path in daemon.data_dir.glob("__consumer_offsets-*/*.log")
        if group.encode() in path.read_bytes()
    )
    return found


def _batches(content: bytes) -> Iterator[int]:
    position = 0
    while position < len(content):
        yield position
        position += 12 + int.from_bytes(content[position + 8 : position + 12])


def _refused(daemon: Daemon) -> str:
    """What a start says that is refused."""
    done = subprocess.run(
        daemon.command(), capture_output=True, text=True, timeout=60, check=False, cwd=os.getcwd()
    )
    assert done.returncode == 1
    assert "rollcall ready" not in done.stdout
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize("stop", ["kill", "stop"])
def test_damaged_offsets_forbid_the_start_until_a_repair(
    start_daemon: StartDaemon, stop: str
) -> None:
    daemon = start_daemon({**TEST_SETTINGS, "rollcall.checkpoint.idle.ms": "1"})
    create_topic(daemon.bootstrap, TOPIC, 1)
    committer = Committer(daemon, "billing")
    for _ in range(30):
        assert committer.commit() is ErrorCode.NONE
    path = _segment_of(daemon, "billing")
    point = daemon.data_dir / "recovery-point-offset-checkpoint"
    number = path.parent.name.rpartition("-")[2]
    # Only what a checkpoint has made durable can be damaged: the journal has what is above it.
    _until("a checkpoint", lambda: point.exists() and f" {number} 30\n" in point.read_text())
    # And it has it until the next pass begins, which the end of another checkpoint proves.
    other = Committer(daemon, "shipping")
    assert other.commit() is ErrorCode.NONE
    number = _segment_of(daemon, "shipping").parent.name.rpartition("-")[2]
    _until("another checkpoint", lambda: f" {number} 1\n" in point.read_text())
    assert (daemon.stop() == 0) if stop == "stop" else (daemon.kill() is None)

    content = bytearray(path.read_bytes())
    position = list(_batches(bytes(content)))[20]
    content[position + HEADER_BYTES + 12] ^= 0xFF
    path.write_bytes(content)

    # The start is refused, with the place and the choice in one line, as often as it is tried.
    for _ in range(2):
        line = _refused(daemon)
        assert line.startswith("rollcall: cannot start on ")
        assert f"{path} at byte {position}: " in line
        assert "offset 20" in line
        assert "--repair" in line
        assert path.read_bytes() == content

    # A repair cuts there, keeps what it cuts, and says what was lost.
    daemon.arguments = ["--repair"]
    daemon.start()
    assert committed_offsets(daemon.port, "billing", TOPIC, [0]) == [20]
    assert path.with_name(path.name + ".damaged").read_bytes() == content[position:]
    logged = daemon.log()
    assert "Cut what was damaged" in logged
    assert "first_offset=20 last_offset=29" in logged
    assert "Lost the newest values of" in logged
    assert "group_id=billing" in logged
    assert f"{TOPIC}-0" in logged
    committer = Committer(daemon, "billing")
    committer.sent = 100
    assert committer.commit() is ErrorCode.NONE
    assert daemon.stop() == 0
    # The offsets of what was lost are given to no other record.
    bases = [int(segment.stem) for segment in path.parent.glob("*.log")]
    assert sorted(bases) == [0, 30]
    assert list(findings(place_at(daemon.data_dir, topic=OFFSETS_TOPIC), LintCounts())) == []

    daemon.arguments = []
    daemon.start()
    assert committed_offsets(daemon.port, "billing", TOPIC, [0]) == [101]


def test_a_damaged_topic_keeps_no_group_from_being_served_and_can_be_deleted(
    start_daemon: StartDaemon,
) -> None:
    from confluent_kafka import KafkaException, Producer
    from confluent_kafka.admin import AdminClient

    daemon = start_daemon()
    for topic in (TOPIC, "sound"):
        create_topic(daemon.bootstrap, topic, 1)
    producer = Producer({"bootstrap.servers": daemon.bootstrap})
    for topic in (TOPIC, "sound"):
        for _ in range(3):
            producer.produce(topic, b"value")
            assert producer.flush(60) == 0
    committer = Committer(daemon, "billing")
    assert committer.commit() is ErrorCode.NONE
    assert daemon.stop() == 0
    path = next((daemon.data_dir / f"{TOPIC}-0").glob("*.log"))
    path.write_bytes(b"\x00" * 16 + b"\x07" + path.read_bytes()[17:])

    daemon.start()
    assert committed_offsets(daemon.port, "billing", TOPIC, [0]) == [1]
    assert "A partition is damaged and not served" in daemon.log()
    assert str(path) in daemon.log()
    producer = Producer({"bootstrap.servers": daemon.bootstrap})
    producer.produce("sound", b"value")
    assert producer.flush(60) == 0
    admin = AdminClient({"bootstrap.servers": daemon.bootstrap})
    try:
        admin.delete_topics([TOPIC])[TOPIC].result(60)
    except KafkaException as refused:
        raise AssertionError(f"a damaged topic cannot be deleted: {refused}") from None
    assert not path.parent.exists()
    create_topic(daemon.bootstrap, TOPIC, 1)
    producer.produce(TOPIC, b"value")
    assert producer.flush(60) == 0
