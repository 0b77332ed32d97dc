"""Times on the command line: how an instant and a duration may be written in an option."""

import click
import pytest

from cli import clock
from cli.clock import InstantParam, SecondsParam, SecondsRange

NOON_MS = 1_795_262_400_000  # 2026-11-21T12:00Z


@pytest.mark.parametrize(
    ("said", "at_ms"),
    [
        ("2026-11-21T12:00", NOON_MS),
        ("2026-11-21T12:00Z", NOON_MS),
        ("2026-11-21T13:00+01:00", NOON_MS),
        ("2026-11-21", NOON_MS - 12 * 3_600_000),
        (str(NOON_MS), NOON_MS),
        ("0", 0),
        ("2h", NOON_MS - 7_200_000),
        ("90 s ago", NOON_MS - 90_000),
        ("250ms", NOON_MS - 250),
        ("12:00", NOON_MS),
        ("02:10", NOON_MS - (9 * 60 + 50) * 60_000),
        ("12:00:01", NOON_MS - 86_400_000 + 1_000),  # yesterday
    ],
)
def test_a_time_is_a_date_a_number_or_how_long_ago(
    monkeypatch: pytest.MonkeyPatch, said: str, at_ms: int
) -> None:
    monkeypatch.setattr(clock, "now_ms", lambda: NOON_MS)
    assert InstantParam().convert(said, None, None) == at_ms


@pytest.mark.parametrize("said", ["", "yesterday", "2h3m", "-5", "24:00", "2:10", "2026-13-01"])
def test_what_is_no_time_is_refused(said: str) -> None:
    with pytest.raises(click.BadParameter, match="is no time"):
        InstantParam().convert(said, None, None)


@pytest.mark.parametrize(
    ("said", "seconds"),
    [("30s", 30), ("5m", 300), ("1h", 3_600), ("2 d", 172_800), ("2147483647s", 2**31 - 1)],
)
def test_a_duration_is_a_number_with_its_unit(said: str, seconds: int) -> None:
    assert SecondsParam().convert(said, None, None) == seconds


@pytest.mark.parametrize("said", ["", "30", "0s", "-5s", "5ms", "1h30m", "2147483648s", "s"])
def test_what_is_no_duration_is_refused(said: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a duration"):
        SecondsParam().convert(said, None, None)


@pytest.mark.parametrize("said", ["nan", "inf", "0.1", "3601", "x"])
def test_seconds_out_of_their_range_are_refused(said: str) -> None:
    with pytest.raises(click.BadParameter):
        SecondsRange(0.2, 3_600).convert(said, None, None)


def test_seconds_may_have_a_fraction() -> None:
    assert SecondsRange(0.2, 3_600).convert("0.5", None, None) == 0.5
