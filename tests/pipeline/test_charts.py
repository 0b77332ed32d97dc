"""Charts: axes are readable, positions are percentages, names are text and lead to their groups."""

import re

import pytest

from pipeline.report.charts import (
    ChartMark,
    LaneSpan,
    Line,
    TimeAxis,
    TimelineLane,
    lines_over_time,
    timeline,
)

NOON_MS = 1_780_000_000_000 // 86_400_000 * 86_400_000 + 43_200_000
HOUR = 3_600_000


def texts(svg: str) -> list[str]:
    return re.findall(r"<text[^>]*>(?:<title>[^<]*</title>)?([^<]*)</text>", svg)


@pytest.mark.parametrize(
    ("width_ms", "labels"),
    [
        (1_000, ["May 28 12:00:00", "12:00:01"]),
        (2 * HOUR, ["May 28 12:00", "12:30", "13:00", "13:30", "14:00"]),
        (20 * HOUR, ["May 28 12:00", "18:00", "May 29 00:00", "06:00"]),
        (4 * 24 * HOUR, ["May 29", "May 30", "May 31", "Jun 1"]),
    ],
)
def test_ticks_are_at_whole_times_of_the_day(width_ms: int, labels: list[str]) -> None:
    axis = TimeAxis(NOON_MS, NOON_MS + width_ms)

    assert [label for _, label in axis.ticks()] == labels


def test_ticks_of_any_span_are_few() -> None:
    for digits in range(1, 14):
        found = list(TimeAxis(NOON_MS, NOON_MS + 10**digits).ticks())
        assert len(found) <= 6


def test_a_line_has_the_axis_of_its_values() -> None:
    axis = TimeAxis(NOON_MS, NOON_MS + HOUR)

    def shown(*values: float) -> list[str]:
        points = [(NOON_MS + n, value) for n, value in enumerate(values)]
        return texts(lines_over_time([Line("a", points)], axis, "records"))

    assert {"records", "5,000", "2,500"} <= set(shown(0.0, 4_321.0))
    assert {"1", "0.5"} <= set(shown(0.0, 0.0))
    assert {"0.5", "0.25"} <= set(shown(0.0, 0.3))


def test_a_line_of_one_point_is_a_dot_and_marks_are_links() -> None:
    axis = TimeAxis(NOON_MS, NOON_MS + HOUR)
    mark = ChartMark(NOON_MS + HOUR // 2, 9.0, "a storm", "#anomalies")

    svg = lines_over_time([Line("one", [(NOON_MS, 5.0)], "#g-1")], axis, "commits", [mark])

    assert '<circle class="dot c0" cx="0.00%"' in svg
    assert '<a href="#anomalies"><circle class="mark" cx="50.00%"' in svg
    assert '<a href="#g-1">one</a>' in svg


def test_a_lane_has_its_spans_where_they_were() -> None:
    axis = TimeAxis(NOON_MS, NOON_MS + HOUR)
    spans = [
        LaneSpan(NOON_MS + HOUR // 4, NOON_MS + HOUR // 2, "ERR", "it was ERR"),
        LaneSpan(NOON_MS - HOUR, NOON_MS + 9 * HOUR, "OK", "beyond both ends"),
        LaneSpan(NOON_MS, NOON_MS, "c3", "an instant"),
    ]

    svg = timeline([TimelineLane('<b>"g"', "#g-1", spans, "3 behind")], axis)

    assert 'class="span ERR" x="25.000%" y="18" width="25.000%"' in svg
    assert 'class="span OK" x="0.000%" y="18" width="100.000%"' in svg
    assert 'class="span c3" x="0.000%" y="18" width="3"' in svg
    assert "<title>it was ERR</title>" in svg
    assert "<b>" not in svg
    assert "&lt;b&gt;&quot;g&quot;" in svg
    assert 'width="100%"' in svg
