"""DeleteRecords: what is deleted, what is refused, and what a kill leaves of it."""

import itertools
import random

import pytest

from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from protocol.names import OFFSETS_TOPIC, ErrorCode, TopicName
from seams.reply_token import ReplyToken
from storage.api import LogClosed, TopicPartition
from storage.log.log_store import LogStore
from tests.simulator.disk import PowerCut, SimulatedDisk
from tests.topics.batches import batch
from tests.topics.held_io import HeldIo
from tests.topics.plane import WALL_MS, Plane
from tests.topics.test_admin_crashes import DATA, DiskPlane
from topics.events import PartitionFailed, RecordsDeleted
from topics.handlers.delete_records import DELETED_AT_ONCE

Asked = tuple[str, int, int]
"""Topic, partition and offset."""


def request_of(*asked: Asked) -> DeleteRecordsRequest:
    return DeleteRecordsRequest(
        [
            DeleteRecordsTopic(TopicName(name), [DeleteRecordsPartition(index, offset)])
            for name, index, offset in asked
        ],
        timeout_ms=1_000,
    )


def outcomes(answer: object) -> dict[tuple[str, int], tuple[int, ErrorCode]]:
    assert isinstance(answer, DeleteRecordsResponse)
    return {
        (topic.name, result.partition_index): (result.low_watermark, result.error_code)
        for topic in answer.topics
        for result in topic.partitions
    }


def delete(plane: Plane, *asked: Asked, version: int = 2) -> dict[tuple[str, int], object]:
    return {**outcomes(plane.ask(request_of(*asked), version, DeleteRecordsResponse))}


@pytest.fixture
def plane(plane: Plane) -> Plane:
    """A topic `a` with two partitions, of five records and of none."""
    plane.given("a", 2)
    plane.given_records("a", 5)
    return plane


@pytest.mark.parametrize("version", range(3))
def test_records_below_the_offset_are_deleted(plane: Plane, version: int) -> None:
    answer = delete(plane, ("a", 0, 3), ("a", 1, -1), version=version)

    assert answer == {("a", 0): (3, ErrorCode.NONE), ("a", 1): (0, ErrorCode.NONE)}
    assert plane.fetch("a", 2).error_code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert plane.fetch("a", 3).log_start_offset == 3
    assert plane.events_of(RecordsDeleted) == [RecordsDeleted(TopicPartition("a", 0), 3)]


def test_the_high_watermark_stands_for_all_records(plane: Plane) -> None:
    assert delete(plane, ("a", 0, -1)) == {("a", 0): (5, ErrorCode.NONE)}


def test_an_offset_below_the_log_start_deletes_nothing(plane: Plane) -> None:
    delete(plane, ("a", 0, 3))
    plane.events.clear()

    assert delete(plane, ("a", 0, 1)) == {("a", 0): (3, ErrorCode.NONE)}
    assert plane.events_of(RecordsDeleted) == []


@pytest.mark.parametrize("offset", [6, -2, 1 << 62])
def test_an_offset_beyond_the_high_watermark_is_out_of_range(plane: Plane, offset: int) -> None:
    assert delete(plane, ("a", 0, offset)) == {("a", 0): (-1, ErrorCode.OFFSET_OUT_OF_RANGE)}
    assert plane.fetch("a").log_start_offset == 0


def test_each_refusal_has_its_error_and_stops_no_other(plane: Plane) -> None:
    plane.given("compacted", cleanup_policy="compact")
    plane.given("both", cleanup_policy="compact,delete")

    assert delete(
        plane,
        ("a", 9, 1),
        ("nope", 0, 1),
        ("", 0, 1),
        ("compacted", 0, 0),
        ("both", 0, 0),
        (OFFSETS_TOPIC, 0, 0),
        (OFFSETS_TOPIC, 5_000, 0),
        ("a", 0, 2),
    ) == {
        ("a", 9): (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("nope", 0): (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("", 0): (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("compacted", 0): (-1, ErrorCode.POLICY_VIOLATION),
        ("both", 0): (0, ErrorCode.NONE),
        (OFFSETS_TOPIC, 0): (-1, ErrorCode.INVALID_TOPIC_EXCEPTION),
        (OFFSETS_TOPIC, 5_000): (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("a", 0): (2, ErrorCode.NONE),
    }


def test_of_a_partition_that_is_named_twice_the_later_offset_counts(plane: Plane) -> None:
    assert delete(plane, ("a", 0, 3), ("a", 0, 99)) == {
        ("a", 0): (-1, ErrorCode.OFFSET_OUT_OF_RANGE)
    }
    assert delete(plane, ("a", 0, 99), ("a", 0, 3)) == {("a", 0): (3, ErrorCode.NONE)}


@pytest.mark.parametrize("version", range(3))
def test_a_request_for_nothing_is_answered(plane: Plane, version: int) -> None:
    empty = DeleteRecordsRequest([DeleteRecordsTopic(TopicName("a"), [])])

    assert list(plane.ask(empty, version, DeleteRecordsResponse).topics) == []


# Waiting fetches


def test_a_fetch_that_waits_below_the_new_start_is_out_of_range(plane: Plane) -> None:
    below = plane.park_fetch("a", 4, min_bytes=10_000)
    at_the_start = plane.park_fetch("a", 5)

    delete(plane, ("a", 0, 5))

    assert plane.fetched(below).error_code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert not plane.answered(at_the_start)


# Disk and threads


@pytest.mark.parametrize("fault", [OSError(5, "Input/output error"), LogClosed("a-0: closed")])
def test_a_disk_fault_is_answered_and_reported(
    plane: Plane, fault: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(offset: int) -> int:
        raise fault

    monkeypatch.setattr(plane.log("a"), "delete_before", fail)

    assert delete(plane, ("a", 0, 3)) == {("a", 0): (-1, ErrorCode.KAFKA_STORAGE_ERROR)}
    assert [e.topic_partition for e in plane.events_of(PartitionFailed)] == [TopicPartition("a", 0)]


def held_plane(partitions: int) -> tuple[Plane, HeldIo]:
    appender = HeldIo()
    plane = Plane(appender=appender)
    plane.given("a", partitions)
    for index in range(partitions):
        token = plane.send_records("a", plane.batch(), partition=index)
        appender.run()
        assert plane.answered(token)
    return plane, appender


def test_the_appender_deletes_a_few_partitions_at_a_time() -> None:
    plane, appender = held_plane(DELETED_AT_ONCE + 2)
    token = plane.send(request_of(*(("a", n, -1) for n in range(DELETED_AT_ONCE + 2))), 2)
    most = 0
    while not plane.answered(token):
        before = [plane.log("a", n).log_start_offset for n in range(DELETED_AT_ONCE + 2)]
        appender.step()
        after = [plane.log("a", n).log_start_offset for n in range(DELETED_AT_ONCE + 2)]
        most = max(most, sum(after) - sum(before))

    assert most == DELETED_AT_ONCE
    assert set(outcomes(plane.answers[token]).values()) == {(1, ErrorCode.NONE)}


def test_a_topic_that_is_deleted_meanwhile_is_unknown() -> None:
    plane, appender = held_plane(1)
    token: ReplyToken = plane.send(request_of(("a", 0, 1)), 2)
    topic = plane.data.registry.by_name(TopicName("a"))
    assert topic is not None
    plane.run(plane.data.registry.delete(topic))

    appender.run()

    assert outcomes(plane.answers[token]) == {("a", 0): (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)}


# Crashes


def numbered(sequence: int) -> bytes:
    """A batch of a producer that numbers its records."""
    return batch(b"v", timestamp=WALL_MS, producer_id=7, producer_epoch=0, sequence=sequence)


def disk_plane() -> DiskPlane:
    disk = SimulatedDisk()
    disk.make_dir(DATA)
    disk.sync_dir("/")
    plane = DiskPlane(disk)
    plane.given("a")
    for sequence in range(4):
        assert plane.produce("a", numbered(sequence)).error_code is ErrorCode.NONE
    assert isinstance(plane.store, LogStore)
    log = plane.data.registry.partition("a", 0)
    assert log is not None
    assert log.log is not None
    log.log.flush()
    return plane


def start_offset(plane: Plane) -> int:
    partition = plane.data.registry.partition("a", 0)
    assert partition is not None
    assert partition.log is not None
    return partition.log.log_start_offset


@pytest.mark.parametrize("seed", range(5))
def test_no_power_failure_brings_back_records_whose_deletion_was_answered(seed: int) -> None:
    """At every disk operation of the request; what is not answered yet may be done or not."""
    chance = random.Random(seed)
    for steps in itertools.count():
        plane = disk_plane()
        plane.disk.cut_power_at = plane.disk.operations + steps
        try:
            answer = delete(plane, ("a", 0, 3))
        except PowerCut:
            assert start_offset(DiskPlane(plane.disk.after_crash(chance))) in (0, 3)
            continue
        break
    assert answer == {("a", 0): (3, ErrorCode.NONE)}
    assert start_offset(DiskPlane(plane.disk.after_crash(chance))) == 3
    assert steps > 1


def test_a_producer_goes_on_after_all_its_records_were_deleted_and_a_kill() -> None:
    plane = disk_plane()
    delete(plane, ("a", 0, -1))

    again = DiskPlane(plane.disk.after_kill())

    assert again.produce("a", numbered(3)).base_offset == 3  # repeated
    assert again.produce("a", numbered(9)).error_code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert again.produce("a", numbered(4)).base_offset == 4
