"""How may a time be written in an option?"""

import click
import pytest

from cli import clock
from cli.clock import Moment

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
    assert Moment().convert(said, None, None) == at_ms


@pytest.mark.parametrize("said", ["", "yesterday", "2h3m", "-5", "24:00", "2:10", "2026-13-01"])
def test_what_is_no_time_is_refused(said: str) -> None:
    with pytest.raises(click.BadParameter, match="is no time"):
        Moment().convert(said, None, None)
