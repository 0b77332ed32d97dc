"""ListOffsets and OffsetForLeaderEpoch: which offset answers which question."""

import pytest

from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from protocol.names import OFFSETS_TOPIC, ErrorCode, TopicName
from storage.api import Corrupt, TopicPartition
from tests.topics.batches import at_times
from tests.topics.memory_log import MemoryLog
from tests.topics.plane import WALL_MS, Plane
from topics.handlers.list_offsets import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
)

CONSUMER, DEBUGGER = -1, -2
NOTHING = (ErrorCode.NONE, -1, -1, -1)


@pytest.fixture
def plane() -> Plane:
    """Topic `a` with records at 0, 1000, 2000 and, in one batch, 500 and 3000 ms from now."""
    plane = Plane()
    plane.given("a", 2)
    for batch in ([0], [1_000], [2_000], [500, 3_000]):
        plane.produce("a", at_times(*(WALL_MS + ms for ms in batch)))
    return plane


def ask(
    plane: Plane,
    *asked: ListOffsetsPartition,
    name: str = "a",
    version: int = 11,
    replica_id: int = CONSUMER,
) -> list[ListOffsetsPartitionResponse]:
    topic = ListOffsetsTopic(TopicName(name), asked)
    answer = plane.ask(ListOffsetsRequest(replica_id, 0, (topic,)), version, ListOffsetsResponse)
    return [partition for t in answer.topics for partition in t.partitions]


def found(
    plane: Plane, timestamp: int, partition: int = 0, **how: int
) -> tuple[ErrorCode, int, int, int]:
    """(error, ms from now, offset, epoch)."""
    (answer,) = ask(plane, ListOffsetsPartition(partition, timestamp=timestamp), **how)  # type: ignore[arg-type] # a test
    ms = answer.timestamp - WALL_MS if answer.timestamp >= 0 else answer.timestamp
    return answer.error_code, ms, answer.offset, answer.leader_epoch


@pytest.mark.parametrize("version", range(1, 12))
def test_the_ends_of_the_log_are_returned_in_every_version(plane: Plane, version: int) -> None:
    epoch = 0 if version >= 4 else -1
    assert found(plane, LATEST, version=version) == (ErrorCode.NONE, -1, 5, epoch)
    assert found(plane, EARLIEST, version=version) == (ErrorCode.NONE, -1, 0, epoch)


def test_the_earliest_offset_is_what_retention_left(plane: Plane) -> None:
    plane.log("a").delete_before(2)
    assert found(plane, EARLIEST) == (ErrorCode.NONE, -1, 2, 0)
    assert found(plane, EARLIEST_LOCAL) == (ErrorCode.NONE, -1, 2, 0)


def test_a_time_is_answered_with_the_first_record_that_is_not_older(plane: Plane) -> None:
    for ms, offset, at in ((0, 0, 0), (1, 1, 1_000), (1_000, 1, 1_000), (2_001, 4, 3_000)):
        assert found(plane, WALL_MS + ms) == (ErrorCode.NONE, at, offset, 0)
    assert found(plane, 0) == (ErrorCode.NONE, 0, 0, 0)


def test_a_time_after_all_records_is_answered_with_nothing(plane: Plane) -> None:
    assert found(plane, WALL_MS + 3_001) == NOTHING


def test_the_record_of_the_greatest_time_is_found(plane: Plane) -> None:
    assert found(plane, MAX_TIMESTAMP) == (ErrorCode.NONE, 3_000, 4, 0)


def test_an_empty_partition_has_ends_but_no_times(plane: Plane) -> None:
    assert found(plane, LATEST, partition=1) == (ErrorCode.NONE, -1, 0, 0)
    assert found(plane, EARLIEST, partition=1) == (ErrorCode.NONE, -1, 0, 0)
    assert found(plane, MAX_TIMESTAMP, partition=1) == NOTHING
    assert found(plane, WALL_MS, partition=1) == NOTHING


def test_queries_of_tiered_storage_find_nothing(plane: Plane) -> None:
    assert found(plane, LATEST_TIERED) == NOTHING
    assert found(plane, EARLIEST_PENDING_UPLOAD) == NOTHING


@pytest.mark.parametrize(
    ("timestamp", "first_version"),
    [(MAX_TIMESTAMP, 7), (EARLIEST_LOCAL, 8), (LATEST_TIERED, 9), (EARLIEST_PENDING_UPLOAD, 11)],
)
def test_each_question_has_its_version(plane: Plane, timestamp: int, first_version: int) -> None:
    assert found(plane, timestamp, version=first_version)[0] is ErrorCode.NONE
    assert found(plane, timestamp, version=first_version - 1) == (
        ErrorCode.UNSUPPORTED_VERSION,
        -1,
        -1,
        -1,
    )


def test_an_unknown_special_timestamp_is_unsupported(plane: Plane) -> None:
    assert found(plane, -7)[0] is ErrorCode.UNSUPPORTED_VERSION


def test_a_partition_that_is_asked_for_twice_is_an_invalid_request(plane: Plane) -> None:
    (answer,) = ask(plane, ListOffsetsPartition(0, -1, LATEST), ListOffsetsPartition(0, -1, 0))
    assert answer == ListOffsetsPartitionResponse(0, ErrorCode.INVALID_REQUEST)


def test_a_partition_that_is_not_there_is_unknown(plane: Plane) -> None:
    assert found(plane, LATEST, partition=7)[0] is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    (answer,) = ask(plane, ListOffsetsPartition(0, timestamp=LATEST), name="b")
    assert answer.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_another_leader_epoch_is_an_error(plane: Plane) -> None:
    plane.log("a").leader_epoch = 3
    for epoch, error_code in (
        (2, ErrorCode.FENCED_LEADER_EPOCH),
        (3, ErrorCode.NONE),
        (4, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ):
        (answer,) = ask(plane, ListOffsetsPartition(0, epoch, LATEST))
        assert answer.error_code is error_code


def test_the_epoch_is_that_of_the_record_not_of_the_leader(plane: Plane) -> None:
    plane.log("a").leader_epoch = 3
    plane.produce("a", at_times(WALL_MS + 9_000))
    assert found(plane, EARLIEST)[3] == 0
    assert found(plane, WALL_MS + 1_000)[3] == 0
    assert found(plane, MAX_TIMESTAMP)[3] == 3
    assert found(plane, LATEST)[3] == 3


def test_a_consumer_sees_the_high_watermark_and_a_debugger_the_end(plane: Plane) -> None:
    log = MemoryLog(TopicPartition(OFFSETS_TOPIC, 0), plane.topic_id(OFFSETS_TOPIC), journaled=True)
    for ms in (0, 1_000):
        log.append(at_times(WALL_MS + ms), 0)
    log.high_watermark = 1
    plane.data.attach(log)
    for replica_id, end in ((CONSUMER, 1), (DEBUGGER, 2)):
        asked = ListOffsetsPartition(0, timestamp=LATEST)
        (answer,) = ask(plane, asked, name=OFFSETS_TOPIC, replica_id=replica_id)
        assert answer.offset == end
    asked = ListOffsetsPartition(0, timestamp=WALL_MS + 1)
    (answer,) = ask(plane, asked, name=OFFSETS_TOPIC)
    assert (answer.error_code, answer.offset) == (ErrorCode.NONE, -1)


def test_a_disk_that_cannot_be_read_is_a_storage_error(plane: Plane) -> None:
    def fail(timestamp_ms: int) -> tuple[int, int] | None:
        raise Corrupt("a-0", timestamp_ms, "a test")

    plane.log("a").offset_for_timestamp = fail  # type: ignore[method-assign] # a fault
    assert found(plane, WALL_MS)[0] is ErrorCode.KAFKA_STORAGE_ERROR


# OffsetForLeaderEpoch


def end_of(
    plane: Plane, leader_epoch: int, current: int = -1, partition: int = 0, version: int = 4
) -> EpochEndOffset:
    asked = OffsetForLeaderPartition(partition, current, leader_epoch)
    request = OffsetForLeaderEpochRequest(topics=(OffsetForLeaderTopic(TopicName("a"), (asked,)),))
    answer = plane.ask(request, version, OffsetForLeaderEpochResponse)
    return answer.topics[0].partitions[0]


@pytest.mark.parametrize("version", [2, 3, 4])
def test_the_current_epoch_ends_where_the_log_does(plane: Plane, version: int) -> None:
    assert end_of(plane, 0, version=version) == EpochEndOffset(ErrorCode.NONE, 0, 0, 5)
    assert end_of(plane, 0, partition=1) == EpochEndOffset(ErrorCode.NONE, 1, 0, 0)


def test_of_an_epoch_that_is_yet_to_come_or_was_never_nothing_is_known(plane: Plane) -> None:
    assert end_of(plane, 1) == EpochEndOffset(ErrorCode.NONE, 0, -1, -1)
    assert end_of(plane, -1) == EpochEndOffset(ErrorCode.NONE, 0, -1, -1)


def test_a_former_epoch_ends_where_the_next_one_began(plane: Plane) -> None:
    log = plane.log("a")
    log.leader_epoch = 2
    plane.produce("a", at_times(WALL_MS))
    log.leader_epoch = 5  # nothing was written in it yet
    plane.restart()
    assert end_of(plane, 0).end_offset == 5
    assert end_of(plane, 1) == EpochEndOffset(ErrorCode.NONE, 0, 0, 5)
    assert end_of(plane, 2) == EpochEndOffset(ErrorCode.NONE, 0, 2, 6)
    assert end_of(plane, 4) == EpochEndOffset(ErrorCode.NONE, 0, 2, 6)
    assert end_of(plane, 5) == EpochEndOffset(ErrorCode.NONE, 0, 5, 6)


def test_an_epoch_before_all_that_the_log_still_holds_ends_where_that_begins(
    plane: Plane,
) -> None:
    log = plane.log("a")
    log.leader_epoch = 2
    plane.produce("a", at_times(WALL_MS))
    log.delete_before(5)
    assert end_of(plane, 0) == EpochEndOffset(ErrorCode.NONE, 0, 0, 5)


def test_the_clients_own_epoch_is_checked_first(plane: Plane) -> None:
    plane.log("a").leader_epoch = 3
    assert end_of(plane, 3, current=2).error_code is ErrorCode.FENCED_LEADER_EPOCH
    assert end_of(plane, 3, current=4).error_code is ErrorCode.UNKNOWN_LEADER_EPOCH
    assert end_of(plane, 0, partition=9).error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("level", [2, -1])
def test_an_unknown_isolation_level_is_an_error(plane: Plane, level: int) -> None:
    topic = ListOffsetsTopic(TopicName("a"), [ListOffsetsPartition(0, timestamp=LATEST)])
    request = ListOffsetsRequest(CONSUMER, level, (topic,))
    answer = plane.ask(request, 11, ListOffsetsResponse)
    assert answer.topics[0].partitions[0].error_code is ErrorCode.UNKNOWN_SERVER_ERROR
