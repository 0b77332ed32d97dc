"""Maintenance: retention, late flushes, expiry of producers, and a clean stop."""

import errno

import pytest

from protocol.names import OFFSETS_TOPIC, ErrorCode
from storage.api import Corrupt, SyncFailed, TopicPartition
from tests.topics.batches import offsets_of
from tests.topics.held_io import HeldIo
from tests.topics.memory_log import MemoryLog
from tests.topics.plane import Plane
from topics.events import PartitionFailed, SegmentsDeleted
from topics.settings import TopicSettings

CHECK_MS = 300_000


def test_retention_deletes_segments_at_the_next_check_and_reports_it(plane: Plane) -> None:
    plane.given("a", retention_ms="1000")
    plane.given_records("a", 3)
    plane.advance(CHECK_MS - 1)
    assert plane.fetch("a").log_start_offset == 0
    plane.advance(1)
    assert plane.fetch("a", 3).log_start_offset == 3
    assert plane.events_of(SegmentsDeleted) == [SegmentsDeleted(TopicPartition("a", 0), 3, 3)]


def test_the_checks_go_on_at_the_interval_that_was_set() -> None:
    plane = Plane(TopicSettings(log_retention_check_interval_ms=5_000))
    plane.given("a", retention_ms="1000")
    for _ in range(3):
        plane.given_records("a", 1)
        plane.advance(5_001)
    assert len(plane.events_of(SegmentsDeleted)) == 3


def test_a_topic_without_a_limit_keeps_everything(plane: Plane) -> None:
    plane.given("a", retention_ms="-1")
    plane.given("b", cleanup_policy="compact", retention_ms="1000")
    for name in ("a", "b"):
        plane.given_records(name, 1)
    plane.advance(10 * CHECK_MS)
    assert plane.events_of(SegmentsDeleted) == []


def test_the_offsets_topics_log_is_left_to_its_coordinator(plane: Plane) -> None:
    topic_partition = TopicPartition(OFFSETS_TOPIC, 0)
    log = MemoryLog(topic_partition, plane.topic_id(OFFSETS_TOPIC), journaled=True)
    log.fail_next = OSError("nobody may ask")
    plane.data.attach(log)
    plane.advance(2 * CHECK_MS)
    assert log.fail_next is not None
    plane.stop()
    assert log.flushes == 0


@pytest.mark.parametrize("fault", [OSError(5, "Input/output error"), Corrupt("a-0", 1, "a test")])
def test_a_partition_whose_retention_fails_does_not_keep_the_others_waiting(
    plane: Plane, fault: Exception
) -> None:
    plane.given("a", 2, retention_ms="1000")
    for partition in (0, 1):
        plane.given_records("a", 1, partition)
    plane.log("a", 0).fail_next = fault
    plane.advance(CHECK_MS)
    assert [e.topic_partition.partition for e in plane.events_of(PartitionFailed)] == [0]
    assert [e.topic_partition.partition for e in plane.events_of(SegmentsDeleted)] == [1]
    plane.advance(CHECK_MS)
    assert len(plane.events_of(SegmentsDeleted)) == 2


def test_flush_ms_is_honoured_once_records_have_waited_for_so_long(plane: Plane) -> None:
    plane.given("a", flush_ms="1000")
    plane.advance(0)
    plane.given_records("a", 1)
    plane.advance(600)
    plane.given_records("a", 1)
    plane.advance(399)
    assert plane.log("a").flushes == 0
    plane.advance(1)
    assert plane.log("a").flushes == 1
    # What is on the disk is not brought there again.
    plane.advance(10_000)
    assert plane.log("a").flushes == 1


def test_a_late_flush_that_fails_takes_the_partition_off_line(plane: Plane) -> None:
    plane.given("a", flush_ms="1000")
    plane.given_records("a", 1)
    plane.log("a").fail_next = SyncFailed(5, "Input/output error")
    plane.advance(1_000)
    (event,) = plane.events_of(PartitionFailed)
    assert event.offline
    assert plane.produce("a").error_code is ErrorCode.KAFKA_STORAGE_ERROR


def test_a_late_flush_that_met_a_shortage_is_made_up_for(plane: Plane) -> None:
    plane.given("a", flush_ms="1000")
    plane.advance(0)
    plane.given_records("a", 1)
    plane.log("a").fail_next = OSError(errno.ENOSPC, "no space left on device")
    plane.advance(1_000)
    assert [event.offline for event in plane.events_of(PartitionFailed)] == [False]
    plane.advance(1_000)
    assert plane.log("a").flushes == 1
    plane.advance(10_000)
    assert plane.log("a").flushes == 1


def test_a_mistake_behind_one_save_of_the_producers_does_not_end_the_others() -> None:
    appender = HeldIo()
    maintenance = Plane(appender=appender).data._maintenance
    done: list[str] = []

    def mistaken() -> None:
        raise ZeroDivisionError

    maintenance._save(mistaken)
    maintenance._save(lambda: done.append("second"))
    with pytest.raises(ZeroDivisionError):
        appender.run()
    maintenance._save(lambda: done.append("third"))
    appender.run()
    assert done == ["second", "third"]


def test_a_topic_deleted_meanwhile_is_not_flushed(plane: Plane) -> None:
    name = plane.given("a", flush_ms="1000")
    plane.given_records("a", 1)
    log = plane.log("a")
    topic = plane.data.registry.by_name(name)
    assert topic is not None
    plane.run(plane.data.registry.delete(topic))
    plane.advance(5_000)
    assert log.flushes == 0


def test_a_clean_stop_brings_everything_to_the_disk_that_is_not_there_yet(plane: Plane) -> None:
    plane.given("a", 2)
    plane.given_records("a", 1)
    plane.stop()
    assert plane.log("a", 0).flushes == 1
    assert plane.log("a", 1).flushes == 0


def test_a_clean_stop_goes_on_where_one_partition_fails(plane: Plane) -> None:
    plane.given("a", 2)
    plane.given_records("a", 1, 0)
    plane.given_records("a", 1, 1)
    plane.log("a", 0).fail_next = OSError(5, "Input/output error")
    plane.stop()
    assert plane.log("a", 1).flushes == 1
    assert len(plane.events_of(PartitionFailed)) == 1


def test_after_a_restart_everything_can_be_read_and_written_on(plane: Plane) -> None:
    plane.given("a")
    plane.given_records("a", 2)
    plane.stop()
    plane.restart()
    plane.given_records("a", 1)
    assert offsets_of(plane.fetch("a").records or b"") == [0, 1, 2]
