"""Times on the command line: the clock of a command, and the options that take a time.

Instants are milliseconds since the epoch, as in Kafka's records.
"""

import re
from datetime import UTC, datetime, time, timedelta
from math import isnan
from typing import Final

import click

from protocol import java_text

_AGO: Final = re.compile(r"([0-9]{1,12})\s*(ms|s|m|h|d)(?:\s+ago)?")
_INTERVAL: Final = re.compile(r"([0-9]{1,12})\s*(s|m|h|d)")
_CLOCK: Final = re.compile(r"[0-9]{2}:[0-9]{2}(:[0-9]{2})?")
_UNIT_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

SECONDS_MAX: Final = 2**31 - 1
"""Seconds of a duration: 68 years, what a Java int holds."""


def now_ms() -> int:
    """The wall clock."""
    return round(datetime.now(UTC).timestamp() * 1_000)


class InstantParam(click.ParamType[int]):
    """ISO 8601 (UTC by default), ms since the epoch, how long ago, or a time of day (UTC).

    A time of day is the latest one that has passed.
    """

    name = "time"

    def convert(
        self, value: str | int, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        if isinstance(value, int):
            return value
        instant_ms = java_text.parse_integer(value, 0)
        if instant_ms is not None:
            return instant_ms
        ago = _AGO.fullmatch(value.strip())
        if ago is not None:
            return now_ms() - int(ago[1]) * _UNIT_MS[ago[2]]
        today_ms = _time_of_day(value.strip())
        if today_ms is not None:
            return today_ms
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            self.fail(
                f"{value!r} is no time: write 2026-11-21T12:00 or 12:00 (UTC), ms since 1970, "
                "or 2h (ago)",
                param,
                ctx,
            )
        if found.tzinfo is None:
            found = found.replace(tzinfo=UTC)
        return round(found.timestamp() * 1_000)


class SecondsParam(click.ParamType[int]):
    """A duration of at least a second, as whole seconds: 30s, 5m, 1h, 1d."""

    name = "duration"

    def convert(
        self, value: str | int, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        if isinstance(value, int):
            return value
        found = _INTERVAL.fullmatch(value.strip())
        seconds = 0 if found is None else int(found[1]) * _UNIT_MS[found[2]] // 1_000
        if not 1 <= seconds <= SECONDS_MAX:
            self.fail(f"{value!r} is not a duration such as 30s, 5m or 1h", param, ctx)
        return seconds


class SecondsRange(click.FloatRange):
    """Seconds within limits. `nan` is within none, although it compares as less than neither."""

    def convert(
        self, value: float, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        seconds: float = super().convert(value, param, ctx)
        if isnan(seconds):
            self.fail(f"{value!r} is not a number of seconds", param, ctx)
        return seconds


def _time_of_day(text: str) -> int | None:
    if _CLOCK.fullmatch(text) is None:
        return None
    try:
        at = time.fromisoformat(text)
    except ValueError:
        return None
    now = datetime.fromtimestamp(now_ms() / 1_000, UTC)
    found = datetime.combine(now.date(), at, UTC)
    if found > now:
        found -= timedelta(days=1)
    return round(found.timestamp() * 1_000)
