"""Text of times and lists: one form for durations, instants and lists that are cut."""

import pytest

from seams.text import duration, first_of, instant


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0 ms"),
        (0.4, "0 ms"),
        (999.4, "999 ms"),
        (999.6, "1.0 s"),
        (1_500, "1.5 s"),
        (9_949, "9.9 s"),
        (9_950, "10 s"),
        (119_499, "119 s"),
        (119_500, "2 min"),
        (303_000, "5 min 3 s"),
        (7_199_000, "119 min 59 s"),
        (7_200_000, "2 h"),
        (12_000_000, "3 h 20 min"),
        (172_800_000, "2 d"),
        (356_400_000, "4 d 3 h"),
        (-1_500, "-1.5 s"),
    ],
)
def test_a_duration_has_the_two_units_that_matter(ms: float, text: str) -> None:
    assert duration(ms) == text


@pytest.mark.parametrize(
    ("at_ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_795_370_700_120, "2026-11-22T18:05:00.120Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (1 << 62, f"{1 << 62} ms"),
        (-(1 << 62), f"{-(1 << 62)} ms"),
    ],
)
def test_an_instant_is_iso_8601_in_utc(at_ms: int, text: str) -> None:
    assert instant(at_ms) == text


def test_a_list_says_how_many_it_does_not_show() -> None:
    assert first_of([], 2) == ""
    assert first_of(["a", "b"], 2) == "a, b"
    assert first_of(["a", "b", "c"], 2) == "a, b and 1 more"
    assert first_of(["a"], 2, total=5) == "a and 4 more"
