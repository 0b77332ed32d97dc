"""Offset reset: times, durations and files, as kafka-consumer-groups reads them."""

import pytest

from client.offset_reset import BadReset, Move, ResetPlan, parse_csv, undo_csv
from client.offset_reset import parse_datetime as datetime_ms
from client.offset_reset import parse_duration as duration_ms


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1970-01-01T00:00:01", 1_000),
        ("1970-01-01T00:00:01.5", 1_500),
        ("1970-01-01T00:00:01.234Z", 1_234),
        ("1970-01-01T01:00:00+01:00", 0),
        ("2026-11-28T00:00:00.000", 1_795_824_000_000),
        ("1969-12-31T23:59:59.999", 0),
    ],
)
def test_a_time_without_a_zone_is_utc(text: str, ms: int) -> None:
    assert datetime_ms(text) == ms


@pytest.mark.parametrize("text", ["", "today", "2026-11-28", "2026-13-01T00:00:00", "1", "٢"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(BadReset):
        datetime_ms(text)


@pytest.mark.parametrize(
    ("text", "ms"),
    [("P1D", 86_400_000), ("PT1H30M", 5_400_000), ("P0DT0.5S", 500), ("P1DT2H3M4S", 93_784_000)],
)
def test_a_duration_is_javas(text: str, ms: int) -> None:
    assert duration_ms(text) == ms


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "1D", "P1DT", "-PT1H", "P1Y", "PT1H1", f"P{'9' * 400}D"]
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(BadReset):
        duration_ms(text)


def test_a_file_has_three_or_four_columns() -> None:
    text = 'orders,0,5\n\ng,"a,b",1,-\nother,orders,1,9\n'
    assert parse_csv(text, "g") == {("orders", 0): 5, ("a,b", 1): None}


@pytest.mark.parametrize("text", ["", "orders,0", "orders,x,1", "orders,0,-1", "other,orders,0,1"])
def test_a_file_without_offsets_for_the_group_is_refused(text: str) -> None:
    with pytest.raises(BadReset):
        parse_csv(text, "g")


def test_what_undoes_a_reset_can_be_read_again() -> None:
    plan = ResetPlan("g", [Move("orders", 0, 5, 0), Move("orders", 1, None, 0)], [])
    assert parse_csv(undo_csv(plan), "g") == {("orders", 0): 5, ("orders", 1): None}
