"""Transactions over faults of the disk: what a failed or lost write must not bring about.

A real log store on the simulated disk.
"""

import random
from typing import Any, Final

import pytest

from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from protocol.messages.produce import ProduceResponse
from protocol.names import ErrorCode, TopicName
from storage.api import SyncFailed, TopicPartition
from storage.atomic_file import StoredFile
from storage.log.log_store import LogStore
from storage.log.partition_log import PartitionLog
from tests.simulator.disk import SimulatedDisk
from tests.storage.rig import DATA, new_disk
from tests.topics.plane import Plane
from tests.topics.transactions import ADDS, Transactions
from topics.settings import TopicSettings

KEY: Final = TopicPartition("a", 0)


class Daemon(Transactions):
    """A data plane on a simulated disk."""

    def __init__(self, settings: TopicSettings | None = None) -> None:
        self.plane = Plane(settings)
        self.use(new_disk())
        self.plane.given("a")
        self.disk.sync_dir(DATA)

    def use(self, disk: SimulatedDisk) -> None:
        """Start on this disk."""
        self.disk = disk
        store = LogStore(disk, DATA)
        store.open()
        self.store = store
        self.plane.store = store  # type: ignore[assignment]
        self.plane.producer_snapshot = StoredFile(disk, f"{DATA}/producers")  # type: ignore[assignment]
        self.plane.restart()
        super().__init__(self.plane)

    @property
    def log(self) -> PartitionLog:
        log = self.store.partition_log(KEY)
        assert log is not None
        return log

    def synced(self) -> ErrorCode:
        found: list[ErrorCode] = []
        self.plane.data.markers.sync([KEY], lambda errors: found.append(errors[KEY]))
        (error_code,) = found
        return error_code

    def delete_before(self, offset: int) -> None:
        asked = (DeleteRecordsPartition(0, offset),)
        request = DeleteRecordsRequest((DeleteRecordsTopic(TopicName("a"), asked),))
        answer = self.plane.ask(request, 2, DeleteRecordsResponse)
        assert answer.topics[0].partitions[0].error_code is ErrorCode.NONE


def test_records_whose_sync_failed_are_never_taken_for_durable() -> None:
    """The kernel drops the pages of a failed fsync: the next one succeeds without them."""
    daemon = Daemon(TopicSettings(flush="commit"))
    daemon.given(b"a")
    daemon.disk.fail_sync(".log")
    assert daemon.synced() is ErrorCode.KAFKA_STORAGE_ERROR
    assert daemon.synced() is ErrorCode.KAFKA_STORAGE_ERROR


def test_records_whose_sync_failed_in_the_background_are_not_taken_for_durable() -> None:
    daemon = Daemon(TopicSettings(flush="commit"))
    daemon.given(b"a")
    daemon.log.roll()
    daemon.disk.fail_sync(".log")
    with pytest.raises(SyncFailed):
        daemon.log.sync_sealed()
    assert daemon.synced() is ErrorCode.KAFKA_STORAGE_ERROR


@pytest.mark.parametrize("seed", range(10))
def test_records_of_a_daemon_that_was_killed_are_synced(seed: int) -> None:
    """Its transaction goes on after the restart, so its records may still be committed."""
    daemon = Daemon(TopicSettings(flush="commit"))
    daemon.given(b"a")
    daemon.use(daemon.disk.after_kill())
    assert daemon.synced() is ErrorCode.NONE
    daemon.use(daemon.disk.after_crash(random.Random(seed)))
    assert daemon.log.log_end_offset == 1


def test_an_open_transaction_survives_the_deletion_of_its_first_records() -> None:
    daemon = Daemon()
    daemon.given(b"a", b"b", b"c")
    daemon.use(daemon.disk.after_kill())
    daemon.delete_before(1)
    assert daemon.read(1).last_stable_offset == 1


def test_producers_survive_the_deletion_of_their_records() -> None:
    daemon = Daemon()
    daemon.given(b"a")
    daemon.end(commit=True)
    daemon.use(daemon.disk.after_kill())
    daemon.delete_before(-1)
    assert daemon.send(b"late").error_code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_log_that_starts_within_the_batch_that_began_a_transaction() -> None:
    daemon = Daemon()
    daemon.given(b"a", b"b", b"c")
    daemon.log.delete_before(1)
    daemon.use(daemon.disk.after_kill())
    assert daemon.log.log_start_offset == 1
    assert daemon.read(1).last_stable_offset == 1


@pytest.mark.parametrize("by_retention", [False, True])
def test_records_that_are_deleted_while_they_are_read_are_not_taken_for_committed(
    monkeypatch: pytest.MonkeyPatch, by_retention: bool
) -> None:
    """The list of aborted transactions goes with them, and is looked up after the read."""
    daemon = Daemon()
    daemon.given(b"aborted")
    daemon.end(commit=False)
    daemon.log.roll()
    daemon.plain(b"plain")
    read = PartitionLog.read

    def deleted_behind(log: PartitionLog, offset: int, max_bytes: int, **limits: Any) -> bytes:
        found = read(log, offset, max_bytes, **limits)
        if by_retention:
            first = log.segments[0]
            log.remove_oldest(lambda segment: segment is first)
        else:
            log.delete_before(2)
        return found

    monkeypatch.setattr(PartitionLog, "read", deleted_behind)
    data = daemon.read()
    assert (data.error_code, data.records) == (ErrorCode.OFFSET_OUT_OF_RANGE, b"")


def test_a_batch_that_waits_is_not_appended_to_a_topic_of_the_same_name() -> None:
    daemon = Daemon()
    daemon.coordinator.error_code = None
    waiting = daemon.plane.send_records("a", daemon.batch(b"a"), version=ADDS, transactional_id="t")
    topic = daemon.plane.data.registry.by_name(TopicName("a"))
    assert topic is not None
    daemon.plane.run(daemon.plane.data.registry.delete(topic))
    daemon.plane.given("a")
    daemon.coordinator.asked[0].answer()
    response = daemon.plane.answers[waiting]
    assert isinstance(response, ProduceResponse)
    (answer,) = response.responses[0].partition_responses
    assert answer.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    data = daemon.read()
    assert (data.high_watermark, data.last_stable_offset) == (0, 0)


def test_a_marker_is_tried_again_on_a_full_disk() -> None:
    daemon = Daemon(TopicSettings(flush="commit"))
    daemon.given(b"a")
    daemon.disk.room = 0
    assert daemon.end(commit=False) is ErrorCode.KAFKA_STORAGE_ERROR
    assert daemon.read().last_stable_offset == 0
    daemon.disk.room = None
    assert daemon.end(commit=False) is ErrorCode.NONE
    daemon.use(daemon.disk.after_crash(random.Random(1)))
    data = daemon.read()
    assert (data.last_stable_offset, data.high_watermark) == (2, 2)
    assert [each.first_offset for each in data.aborted_transactions or ()] == [0]
