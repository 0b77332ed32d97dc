"""Pipeline watermark: a log is kept from the cleaner until the pipeline has read it, up to a limit.

The look of the daemon's cleaner is that of test_cleaning.py; over real clients and a restart:
tests/pipeline/test_acknowledge.py.
"""

from collections.abc import Mapping

import pytest

from broker.background.pipeline_watermark import pipeline_marks
from broker.observe.cleaner_events import LogCleaned, PipelineOvertaken
from coordinator.coordinator import GroupCoordinator
from protocol.names import OFFSETS_TOPIC
from storage.api import TopicPartition
from storage.cleaner.selection import Unread
from tests.broker.background.test_log_cleaner import ONE, TWO, Desk

HOUR_MS = 3_600_000
LONG = Unread(0, keep_ms=10 * HOUR_MS, keep_bytes=-1)


class MarkedDesk(Desk):
    """With a mark for the log ONE, as the test says."""

    def __init__(self) -> None:
        super().__init__()
        self.marks: Mapping[TopicPartition, Unread] = {}
        self.cleaner._marks = lambda _: self.marks


async def test_nothing_that_the_pipeline_has_not_read_is_cleaned() -> None:
    desk = MarkedDesk()
    for value in (1, 2, 3):
        desk.write(ONE, value)  # a segment each
    desk.marks = {ONE: LONG}

    assert not await desk.run_once()
    assert desk.values(ONE) == ["1", "2", "3"]
    assert desk.cleaner.stats.kept_for_pipeline_bytes > 0

    desk.marks = {ONE: LONG._replace(begins_at=2)}
    assert await desk.run_once()
    assert desk.values(ONE) == ["2", "3"]  # of what was read, the newest
    assert not await desk.run_once()

    desk.marks = {ONE: LONG._replace(begins_at=3)}
    assert await desk.run_once()
    assert desk.values(ONE) == ["3"]
    assert desk.cleaner.stats.kept_for_pipeline_bytes == 0
    assert not desk.events_of(PipelineOvertaken)


async def test_half_a_segment_is_not_read() -> None:
    desk = MarkedDesk()
    desk.write(ONE, 1, 2)
    desk.marks = {ONE: LONG._replace(begins_at=1)}

    assert not await desk.run_once()
    assert desk.values(ONE) == ["1", "2"]


async def test_other_logs_are_cleaned_meanwhile() -> None:
    desk = MarkedDesk()
    desk.write(ONE, 1, 2, 3)
    desk.write(TWO, 1, 2)
    desk.marks = {ONE: LONG}

    assert await desk.run_once()
    assert [event.log for event in desk.events_of(LogCleaned)] == [TWO]


async def test_a_dead_pipeline_is_overtaken_by_time() -> None:
    desk = MarkedDesk()
    desk.write(ONE, 1)
    desk.write(ONE, 2)
    desk.marks = {ONE: Unread(0, keep_ms=HOUR_MS, keep_bytes=-1)}
    assert not await desk.run_once()

    desk.wait(HOUR_MS)
    assert await desk.run_once()

    assert desk.values(ONE) == ["2"]
    assert desk.events_of(PipelineOvertaken) == [PipelineOvertaken(ONE, 0, 2)]
    assert desk.cleaner.stats.pipeline_overtaken == 1


async def test_a_dead_pipeline_is_overtaken_by_bytes() -> None:
    desk = MarkedDesk()
    desk.write(ONE, 1)
    size = desk.logs[ONE].segments[0].size
    desk.write(ONE, 2)
    desk.write(ONE, 3)
    desk.marks = {ONE: Unread(0, keep_ms=-1, keep_bytes=3 * size)}
    assert not await desk.run_once()

    desk.marks = {ONE: Unread(0, keep_ms=-1, keep_bytes=size)}
    assert await desk.run_once()

    assert desk.values(ONE) == ["2", "3"]  # the last segment is within the bytes
    assert desk.events_of(PipelineOvertaken) == [PipelineOvertaken(ONE, 0, 2)]


class _Commit:
    def __init__(self, offset: int) -> None:
        self.committed_offset = offset


class _Group:
    def __init__(self, offsets: Mapping[str, Mapping[int, _Commit]]) -> None:
        self.offsets = offsets


class _Coordinator:
    """As much of a coordinator as the marks ask."""

    def __init__(self, group: _Group | None, *, is_loading: bool = False) -> None:
        self._group = group
        self._is_loading = is_loading

    def group(self, _: str) -> _Group | None:
        return self._group

    def knows(self, _: str) -> bool:
        return self._is_loading or self._group is not None


LOGS = [TopicPartition(OFFSETS_TOPIC, 0), TopicPartition(OFFSETS_TOPIC, 1), ONE]


@pytest.mark.parametrize(
    ("coordinator", "begins"),
    [
        pytest.param(_Coordinator(None), {}, id="no-pipeline"),
        pytest.param(_Coordinator(_Group({"orders": {0: _Commit(5)}})), {}, id="another-topic"),
        pytest.param(_Coordinator(None, is_loading=True), {0: 0, 1: 0}, id="not-loaded-yet"),
        pytest.param(
            _Coordinator(_Group({OFFSETS_TOPIC: {1: _Commit(70)}})),
            {0: 0, 1: 70},
            id="acknowledged",
        ),
    ],
)
def test_the_mark_is_what_the_group_has_committed(
    coordinator: GroupCoordinator, begins: Mapping[int, int]
) -> None:
    marks = pipeline_marks(coordinator, keep_ms=7, keep_bytes=8)(LOGS)

    assert marks == {
        TopicPartition(OFFSETS_TOPIC, partition): Unread(begin, 7, 8)
        for partition, begin in begins.items()
    }
