"""Log contract: the memory log of these tests keeps the same promises as the one on the disk."""

from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from storage.api import LogSettings, TopicLog, TopicPartition
from storage.batch.record_batch import read_header
from storage.disk import RealDisk
from storage.log.log_store import LogStore
from tests.topics.batches import at_times, batch, offsets_of
from tests.topics.memory_log import MemoryStore
from topics.leader_epochs import epoch_at

PARTITION = TopicPartition("a", 0)
TOPIC_ID = UUID(int=7)
NOW_MS = 1_700_000_000_000

MakeLog = Callable[[LogSettings], TopicLog]


@pytest.fixture(params=["memory", "disk"])
def make_log(request: pytest.FixtureRequest, tmp_path: Path) -> MakeLog:
    def make(settings: LogSettings) -> TopicLog:
        if request.param == "memory":
            return MemoryStore().create(PARTITION, TOPIC_ID, settings)
        store = LogStore(RealDisk(), str(tmp_path))
        store.open()
        return store.create(PARTITION, TOPIC_ID, settings)

    return make


@pytest.fixture
def log(make_log: MakeLog) -> TopicLog:
    """Batches at the offsets 0, 1-3 and 4."""
    log = make_log(LogSettings())
    for times in ([NOW_MS], [NOW_MS + 3, NOW_MS + 1, NOW_MS + 2], [NOW_MS + 9]):
        log.append(at_times(*times), NOW_MS)
    return log


def test_an_empty_log_begins_and_ends_at_0(make_log: MakeLog) -> None:
    log = make_log(LogSettings())
    assert (log.topic_partition, log.topic_id, log.leader_epoch) == (PARTITION, TOPIC_ID, 0)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (0, 0, 0)
    assert log.size_bytes == 0
    assert log.read(0, 100, up_to=0, at_least_one=True) == b""
    assert list(log.batches(0)) == []
    assert log.max_timestamp() is None
    assert log.offset_for_timestamp(0) is None


def test_batches_get_the_logs_offsets(log: TopicLog) -> None:
    assert log.append(batch() + batch(b"x", b"y"), NOW_MS) == 5
    assert (log.log_end_offset, log.high_watermark) == (8, 8)
    assert [read_header(stored).base_offset for stored in log.batches(0)] == [0, 1, 4, 5, 6]
    assert log.size_bytes == sum(map(len, log.batches(0)))


@pytest.mark.parametrize(
    ("offset", "up_to", "offsets"),
    [(0, 5, [0, 1, 4]), (2, 5, [1, 4]), (4, 5, [4]), (0, 4, [0, 1]), (0, 1, [0]), (5, 5, [])],
)
def test_reading_begins_with_the_batch_of_the_offset_and_ends_below_another(
    log: TopicLog, offset: int, up_to: int, offsets: list[int]
) -> None:
    found = log.read(offset, 10_000, up_to=up_to, at_least_one=True)
    assert offsets_of(found) == offsets


def test_reading_never_cuts_a_batch(log: TopicLog) -> None:
    size = len(next(iter(log.batches(0))))
    assert log.read(0, size - 1, up_to=5, at_least_one=False) == b""
    assert offsets_of(log.read(0, size - 1, up_to=5, at_least_one=True)) == [0]
    assert offsets_of(log.read(0, size, up_to=5, at_least_one=False)) == [0]
    assert offsets_of(log.read(0, size + 1, up_to=5, at_least_one=True)) == [0]


@pytest.mark.parametrize("offset", [-1, 6])
def test_reading_outside_of_the_log_is_an_index_error(log: TopicLog, offset: int) -> None:
    with pytest.raises(IndexError):
        log.read(offset, 100, up_to=5, at_least_one=True)


def test_records_are_found_by_their_time(log: TopicLog) -> None:
    assert log.offset_for_timestamp(NOW_MS) == (NOW_MS, 0)
    assert log.offset_for_timestamp(NOW_MS + 1) == (NOW_MS + 3, 1)
    assert log.offset_for_timestamp(NOW_MS + 4) == (NOW_MS + 9, 4)
    assert log.offset_for_timestamp(NOW_MS + 10) is None
    assert log.max_timestamp() == (NOW_MS + 9, 4)


def test_of_two_records_of_the_greatest_time_the_first_is_found(log: TopicLog) -> None:
    log.append(at_times(NOW_MS + 9), NOW_MS)
    assert log.max_timestamp() == (NOW_MS + 9, 4)


def test_the_start_of_the_log_moves_up_and_never_down(log: TopicLog) -> None:
    assert log.delete_before(2) == 2
    assert log.delete_before(1) == 2
    with pytest.raises(IndexError):
        log.read(1, 100, up_to=5, at_least_one=True)
    assert offsets_of(log.read(2, 10_000, up_to=5, at_least_one=True)) == [1, 4]
    assert log.offset_for_timestamp(0) == (NOW_MS + 1, 2)


def test_retention_by_age_leaves_an_empty_log_where_the_old_one_ended(make_log: MakeLog) -> None:
    log = make_log(LogSettings(retention_ms=1_000))
    for _ in range(3):
        log.append(at_times(NOW_MS), NOW_MS)
    assert log.enforce_retention(NOW_MS + 1_000) == 0
    assert log.enforce_retention(NOW_MS + 1_001) >= 1
    assert (log.log_start_offset, log.log_end_offset) == (3, 3)
    assert log.append(at_times(NOW_MS), NOW_MS) == 3


def test_every_record_knows_its_leader_epoch(log: TopicLog) -> None:
    assert [epoch_at(log, offset) for offset in range(5)] == [0] * 5


def test_flushing_and_closing_are_quiet(log: TopicLog) -> None:
    log.flush()
    log.close()
