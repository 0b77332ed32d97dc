"""Idempotent producers: a batch that comes twice is stored once, and one out of turn is refused."""

import errno

import pytest

from protocol.messages.produce import PartitionProduceResponse
from protocol.names import ErrorCode, ProducerId
from tests.topics.batches import batch
from tests.topics.plane import WALL_MS, Plane
from topics.events import ProducerIdsReserved
from topics.settings import TopicSettings

LAST_SEQUENCE = 2**31 - 1
DAY_MS = 86_400_000


class Sender:
    """An idempotent producer of the topic `a`, which lets a test choose its numbers."""

    def __init__(self, plane: Plane, producer_id: int = 7) -> None:
        self.plane = plane
        self.producer_id = producer_id

    def send(
        self, sequence: int, count: int = 1, epoch: int = 0, partition: int = 0
    ) -> PartitionProduceResponse:
        records = batch(
            *([b"v"] * count),
            timestamp=self.plane.now.wall_ms,
            producer_id=self.producer_id,
            producer_epoch=epoch,
            sequence=sequence,
        )
        return self.plane.produce("a", records, partition=partition)

    def given(self, *sequences: int) -> None:
        for sequence in sequences:
            assert self.send(sequence).error_code is ErrorCode.NONE


@pytest.fixture
def sender(plane: Plane) -> Sender:
    plane.given("a", 2)
    return Sender(plane)


def new_id(plane: Plane) -> ProducerId:
    (producer_id,) = plane.take_producer_id()
    assert producer_id is not None
    return producer_id


# Ids


def test_ids_begin_at_0_and_go_up_by_one(plane: Plane) -> None:
    assert [new_id(plane) for _ in range(3)] == [0, 1, 2]


def test_no_id_is_given_out_twice_not_even_after_kill_9(plane: Plane) -> None:
    seen = [new_id(plane) for _ in range(1_001)]
    plane.restart()
    seen += [new_id(plane) for _ in range(2)]
    assert len(set(seen)) == len(seen)
    assert seen[-2:] == [2_000, 2_001]  # what was left of the second block is skipped


def test_a_block_is_on_the_disk_before_its_first_id_is_given_out(plane: Plane) -> None:
    plane.catalog.fail_next = OSError(28, "No space left on device")
    assert plane.take_producer_id() == [None]
    assert new_id(plane) == 0
    assert plane.events_of(ProducerIdsReserved) == [
        ProducerIdsReserved(ProducerId(0), ProducerId(999))
    ]


# Sequence numbers


def test_batches_in_turn_are_appended(sender: Sender) -> None:
    assert [sender.send(n, 2).base_offset for n in (0, 2, 4)] == [0, 2, 4]


def test_a_batch_that_comes_again_is_answered_with_the_offsets_it_got(sender: Sender) -> None:
    sender.given(0)
    first = sender.send(1, 3)
    sender.given(4)
    again = sender.send(1, 3)
    assert (again.error_code, again.base_offset) == (ErrorCode.NONE, first.base_offset)
    assert again.log_append_time_ms == WALL_MS
    assert sender.plane.fetch("a").high_watermark == 5


def test_five_batches_are_remembered_and_not_six(sender: Sender) -> None:
    sender.given(0, 1, 2, 3, 4, 5)
    assert [sender.send(n).base_offset for n in (1, 2, 3, 4, 5)] == [1, 2, 3, 4, 5]
    assert sender.send(0).error_code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert sender.plane.fetch("a").high_watermark == 6


def test_a_gap_is_refused(sender: Sender) -> None:
    sender.given(0)
    result = sender.send(2)
    assert result.error_code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert (result.base_offset, result.log_start_offset) == (-1, 0)
    sender.given(1)


def test_a_batch_that_overlaps_what_was_sent_is_refused(sender: Sender) -> None:
    sender.send(0, 3)
    assert sender.send(0, 2).error_code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert sender.send(2, 3).error_code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_producer_that_is_not_known_may_begin_anywhere(sender: Sender) -> None:
    sender.given(5, 6)


def test_producers_and_partitions_are_counted_apart(sender: Sender) -> None:
    sender.given(0, 1)
    assert sender.send(0, partition=1).error_code is ErrorCode.NONE
    assert Sender(sender.plane, producer_id=8).send(0).base_offset == 2


def test_after_the_last_number_comes_0(sender: Sender) -> None:
    sender.given(LAST_SEQUENCE, 0)


def test_a_batch_may_reach_over_the_last_number(sender: Sender) -> None:
    first = sender.send(LAST_SEQUENCE - 1, 4)  # the last two numbers, 0 and 1
    sender.given(2)
    assert sender.send(LAST_SEQUENCE - 1, 4).base_offset == first.base_offset
    assert sender.send(4).error_code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


# Epochs


def test_a_new_epoch_begins_with_0(sender: Sender) -> None:
    sender.given(0, 1)
    assert sender.send(2, epoch=1).error_code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert sender.send(0, epoch=1).error_code is ErrorCode.NONE
    assert sender.send(1, epoch=1).error_code is ErrorCode.NONE


def test_a_former_epoch_is_fenced(sender: Sender) -> None:
    sender.given(0)
    sender.send(0, epoch=1)
    result = sender.send(1, epoch=0)
    assert result.error_code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert sender.plane.fetch("a").high_watermark == 2


def test_batches_of_a_former_epoch_are_not_taken_for_those_of_the_new_one(sender: Sender) -> None:
    sender.given(0, 1)
    sender.send(0, epoch=1)
    assert sender.send(1, epoch=1).base_offset == 3


# What a restart keeps


def test_after_kill_9_producers_are_known_from_the_log(sender: Sender) -> None:
    sender.given(0, 1, 2)
    plane = sender.plane
    plane.restart()
    assert sender.send(1).base_offset == 1
    assert sender.send(4).error_code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    sender.given(3)


def test_after_a_clean_stop_producers_are_known_without_reading_the_log(sender: Sender) -> None:
    sender.given(0, 1, 2)
    plane = sender.plane
    plane.stop()
    stored = plane.log("a").stored
    read: list[int] = []
    plane.log("a").batches = read.append  # type: ignore[method-assign, assignment] # a spy

    plane.restart()

    assert sender.send(2).base_offset == 2
    sender.given(3)
    assert read == []
    assert len(stored) == 4


def test_after_kill_9_only_the_batches_behind_the_snapshot_are_read(sender: Sender) -> None:
    plane = sender.plane
    sender.given(0, 1)
    plane.advance(60_000)
    sender.given(2, 3)
    log = plane.log("a")
    asked: list[int] = []
    batches = log.batches

    def spy(from_offset: int) -> object:
        asked.append(from_offset)
        return batches(from_offset)

    log.batches = spy  # type: ignore[method-assign, assignment] # a spy
    plane.restart()

    assert sender.send(0).base_offset == 0
    assert sender.send(3).base_offset == 3
    sender.given(4)
    assert asked == [2]


def test_a_snapshot_beyond_the_logs_end_is_not_believed(sender: Sender) -> None:
    plane = sender.plane
    sender.given(0, 1, 2)
    plane.stop()
    plane.log("a").stored.pop()  # a power failure took the last batch
    plane.restart()
    result = sender.send(2)
    assert (result.error_code, result.base_offset) == (ErrorCode.NONE, 2)
    assert plane.fetch("a").high_watermark == 3


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format":9}', b'{"format":1}'])
def test_a_snapshot_that_cannot_be_read_is_passed_over(sender: Sender, content: bytes) -> None:
    plane = sender.plane
    sender.given(0, 1)
    plane.producer_snapshot.content = content
    plane.restart()
    assert sender.send(1).base_offset == 1
    sender.given(2)


def test_a_topic_of_the_same_name_inherits_no_producers(sender: Sender) -> None:
    plane = sender.plane
    sender.given(0, 1, 2)
    plane.stop()
    plane.restart()
    topic = plane.data.registry.by_name(plane.given("other"))
    assert topic is not None
    old = plane.data.registry.by_name("a")  # type: ignore[arg-type] # a name
    assert old is not None
    plane.run(plane.data.registry.delete(old))
    plane.given("a", 2)
    plane.restart()
    sender.given(0)


def test_a_snapshot_keeps_what_was_not_asked_for_since_the_start(sender: Sender) -> None:
    plane = sender.plane
    sender.given(0, 1)
    plane.stop()
    plane.restart()
    plane.stop()  # nobody produced in between
    plane.restart()
    assert sender.send(0).base_offset == 0
    sender.given(2)


def test_batches_of_others_behind_the_snapshot_do_no_harm(sender: Sender) -> None:
    plane = sender.plane
    sender.given(0)
    plane.produce("a")
    plane.stop()
    plane.produce("a")
    plane.restart()
    assert sender.send(0).base_offset == 0
    assert sender.send(1).base_offset == 3


# Forgetting


def test_a_producer_that_was_silent_for_a_day_is_forgotten(sender: Sender) -> None:
    sender.given(0, 1)
    sender.plane.advance(DAY_MS - 1)
    assert sender.send(5).error_code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    sender.plane.advance(1 + 600_000)
    sender.given(5)


def test_who_was_silent_too_long_is_forgotten_at_a_restart_as_well() -> None:
    plane = Plane(TopicSettings(producer_id_expiration_ms=1_000))
    plane.given("a", 2)
    sender = Sender(plane)
    sender.given(0, 1)
    plane.restart()
    plane.advance(1_000)
    sender.given(5)


def test_a_snapshot_that_cannot_be_written_is_tried_again(sender: Sender) -> None:
    plane = sender.plane
    sender.given(0)
    plane.producer_snapshot.fail_next = OSError(28, "No space left on device")
    plane.advance(60_000)
    assert plane.producer_snapshot.content is None
    plane.advance(60_000)
    assert plane.producer_snapshot.content is not None


# Durability


def test_a_batch_that_comes_again_is_answered_when_it_is_as_durable_as_its_topic_wants(
    plane: Plane,
) -> None:
    """flush.messages=1 promises a flush before each answer; the first one met a shortage."""
    plane.given("a", flush_messages="1")
    sender = Sender(plane)
    log = plane.log("a")
    log.flush, flush = _short_of_descriptors, log.flush  # type: ignore[method-assign]
    assert sender.send(0).error_code is ErrorCode.KAFKA_STORAGE_ERROR
    assert sender.send(0).error_code is ErrorCode.KAFKA_STORAGE_ERROR
    log.flush = flush  # type: ignore[method-assign]
    again = sender.send(0)
    assert (again.error_code, again.base_offset) == (ErrorCode.NONE, 0)
    assert (log.flushes, log.log_end_offset) == (1, 1)


def _short_of_descriptors() -> None:
    raise OSError(errno.EMFILE, "too many open files")
