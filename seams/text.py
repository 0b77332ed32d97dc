"""Text of times and lists: the one form in which a duration, an instant and a cut list are written.

Every page, command, log line and verdict uses these three, so that they can be compared.
JSON keeps its numbers (`*_ms`, `*_seconds`) beside them.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def instant(at_ms: int) -> str:
    """A wall-clock time in ms since 1970, as ISO 8601 in UTC: 2026-11-22T18:05:00.120Z.

    Years that no calendar has (before 1, after 9999) are written as the number, with its unit.
    """
    try:
        at = _EPOCH + timedelta(milliseconds=at_ms)
    except OverflowError:
        return f"{at_ms} ms"
    return at.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def duration(ms: float) -> str:
    """In the two units that people use: 5 ms, 1.5 s, 45 s, 5 min 3 s, 3 h 20 min, 4 d 3 h."""
    if ms < 0:
        return f"-{duration(-ms)}"
    if round(ms) < 1_000:
        return f"{ms:.0f} ms"
    if ms < 9_950:
        return f"{ms / 1000:.1f} s"
    seconds = round(ms / 1000)
    if seconds < 120:
        return f"{seconds} s"
    if seconds < 7_200:
        return _two_units(seconds, 60, "min", "s")
    minutes = seconds // 60
    if minutes < 2_880:
        return _two_units(minutes, 60, "h", "min")
    return _two_units(minutes // 60, 24, "d", "h")


def _two_units(count: int, size: int, large: str, small: str) -> str:
    rest = count % size
    return f"{count // size} {large}" + (f" {rest} {small}" if rest else "")


def first_of(names: Sequence[str], shown_max: int, total: int | None = None) -> str:
    """The first names, and how many there are besides: `a, b and 3 more`.

    `total` is the number of all of them, where `names` holds only those to be shown.
    """
    shown = ", ".join(names[:shown_max])
    more = (len(names) if total is None else total) - min(len(names), shown_max)
    return f"{shown} and {more} more" if more > 0 else shown
