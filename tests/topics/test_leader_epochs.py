"""Leader epochs: while retention moves the start of a log, no consumer is reset by that."""

import pytest

from protocol.messages.fetch import FetchPartition
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from protocol.names import ErrorCode, TopicName
from storage.api import LogSettings, TopicPartition
from storage.log.partition_log import PartitionLog
from storage.log.segment import EVERYTHING
from tests.storage.rig import NOW_MS, TOPIC_ID, batch, new_disk
from tests.topics.plane import Plane
from topics.leader_epochs import end_of_epoch, epoch_at
from topics.log_read import _diverging

PATH = "/data/orders-0"
KEY = TopicPartition("orders", 0)
SETTINGS = LogSettings(segment_bytes=300, index_interval_bytes=64)


class Shrinking(PartitionLog):
    """Its start moves between the moment when a reader asks for it and the read."""

    __slots__ = ("deletes_before",)

    def read(self, offset: int, max_bytes: int, *, up_to: int, at_least_one: bool) -> bytes:
        before, self.deletes_before = getattr(self, "deletes_before", 0), 0
        self.delete_before(before)
        return super().read(offset, max_bytes, up_to=up_to, at_least_one=at_least_one)


@pytest.fixture
def log() -> Shrinking:
    """Epoch 0 wrote offsets 0 to 5, epoch 1 those to 11."""
    disk = new_disk()
    made = PartitionLog(disk, PATH, KEY, SETTINGS)
    made.create(TOPIC_ID)
    for epoch in range(2):
        for number in range(6):
            made.append(batch(f"{epoch}-{number}", timestamp_ms=NOW_MS + epoch), NOW_MS)
        if not epoch:
            made.begin_leader_epoch()
    made.close()
    log = Shrinking(disk, PATH, KEY, SETTINGS)
    log.open(EVERYTHING)
    return log


@pytest.mark.parametrize("start", [0, 3, 6])
def test_the_end_of_an_epoch_is_found_though_the_start_moves(log: Shrinking, start: int) -> None:
    log.deletes_before = start
    assert end_of_epoch(log, 0) == (0, 6)


@pytest.mark.parametrize("start", [0, 3, 6, 9])
def test_a_consumer_within_the_log_is_not_sent_away(log: Shrinking, start: int) -> None:
    log.deletes_before = start
    asked = FetchPartition(partition=0, fetch_offset=10, last_fetched_epoch=0)
    found = _diverging(log, asked)
    assert found is not None
    assert (found.epoch, found.end_offset) == (0, max(6, start))


def test_the_epoch_of_a_record_that_is_gone_is_asked_of_the_next(log: Shrinking) -> None:
    log.deletes_before = 6
    with pytest.raises(IndexError):
        epoch_at(log, 2)


@pytest.mark.parametrize(("timestamp", "offset"), [(-2, 6), (NOW_MS, 6), (-3, 6)])
def test_offset_lookups_are_repeated_if_the_start_moved(
    plane: Plane, log: Shrinking, timestamp: int, offset: int
) -> None:
    plane.given("orders")
    partition = plane.data.registry.partition("orders", 0)
    assert partition is not None
    partition.log = log
    log.deletes_before = 6
    asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(TopicName("orders"), [asked])])
    answer = plane.ask(request, 7, ListOffsetsResponse).topics[0].partitions[0]
    assert (answer.error_code, answer.offset, answer.leader_epoch) == (ErrorCode.NONE, offset, 1)
