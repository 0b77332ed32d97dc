"""Charts of the report: SVG that fits any width, follows the reader's colours and has links.

Positions along the time axis are percentages, so a chart fills a phone and a desktop alike while
its text keeps its size; colours are classes of the page's style sheet, so they follow dark and
light. A drawing library gives neither (ADR 0058). Names that users chose are escaped text, cut if
they are long, and shown whole as the tooltip.
"""

import html
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from seams.text import duration, instant

COLOURS: Final = 10
"""Classes `c0`, `c1`, ... of the style sheet: for lines and causes."""

_SHARE_MIN: Final = 0.3  # percent
_LONG_NAME: Final = 30
LABEL: Final = 60
"""Longer names are cut."""

_SECOND_MS: Final = 1_000
_MINUTE_MS: Final = 60 * _SECOND_MS
_HOUR_MS: Final = 60 * _MINUTE_MS
_DAY_MS: Final = 24 * _HOUR_MS
_STEPS_MS: Final = (
    *(n * _SECOND_MS for n in (1, 5, 15, 30)),
    *(n * _MINUTE_MS for n in (1, 2, 5, 10, 15, 30)),
    *(n * _HOUR_MS for n in (1, 2, 3, 6, 12)),
    *(n * _DAY_MS for n in (1, 2, 7, 14, 30, 90)),
)
_YEAR_MS: Final = 365 * _DAY_MS
_TICKS_MAX: Final = 5
_LETTER_PERCENT: Final = 2.0
"""Width of a label's letter on a phone."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LANE: Final = 40  # pixels: the name above the bar
_AXIS: Final = 22
_PLOT: Final = 170


class TimeAxis(NamedTuple):
    """From the one instant to the other, ms since the epoch."""

    low_ms: int
    high_ms: int

    def percent(self, at_ms: float) -> float:
        width = max(self.high_ms - self.low_ms, 1)
        return min(max((at_ms - self.low_ms) * 100 / width, 0.0), 100.0)

    def ticks(self) -> Iterator[tuple[int, str]]:
        """At whole minutes, hours or days: (instant, label)."""
        width = max(self.high_ms - self.low_ms, 1)
        years = -(-width // (_YEAR_MS * _TICKS_MAX))
        step = next((s for s in _STEPS_MS if width / s <= _TICKS_MAX), years * _YEAR_MS)
        day = None
        for at in range(-(-self.low_ms // step) * step, self.high_ms + 1, step):
            try:
                moment = _EPOCH + timedelta(milliseconds=at)
            except OverflowError:
                continue
            date = f"{moment:%b} {moment.day}"
            if step >= _DAY_MS:
                yield at, date if step < _YEAR_MS else f"{moment:%Y}"
            else:
                clock = f"{moment:%H:%M:%S}" if step < _MINUTE_MS else f"{moment:%H:%M}"
                yield at, clock if date == day else f"{date} {clock}"
            day = date


class LaneSpan(NamedTuple):
    """A part of a lane, with the class of its colour and what it says if it is pointed at."""

    from_ms: int
    to_ms: int
    colour: str
    title: str


class TimelineLane(NamedTuple):
    """A row of a timeline: its name leads to `href`; `note` is at the right."""

    name: str
    href: str
    spans: Sequence[LaneSpan]
    note: str = ""


class Line(NamedTuple):
    """A line over time: (ms since the epoch, value). `href`: where its name leads."""

    name: str
    points: Sequence[tuple[int, float]]
    href: str = ""


class ChartMark(NamedTuple):
    """A point that stands out."""

    at_ms: int
    value: float
    title: str
    href: str = ""


def shortened(name: str) -> str:
    """A name as a chart can show it."""
    shown = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in name)
    return shown if len(shown) <= LABEL else shown[: LABEL - 1] + "…"


def timeline(lanes: Sequence[TimelineLane], axis: TimeAxis) -> str:
    """A lane below the other over one time axis."""
    height = len(lanes) * _LANE
    parts = [*_grid(axis, height)]
    for number, lane in enumerate(lanes):
        top = number * _LANE
        name = (
            f'<text x="0" y="{top + 13}" class="name">{_title(lane.name)}{_text(lane.name)}</text>'
        )
        parts.append(_linked(lane.href, name))
        if lane.note:
            # On a phone there is no room for it beside a long name.
            kind = "note beside" if len(lane.name) > _LONG_NAME else "note"
            note = f'<text x="100%" y="{top + 13}" class="{kind}" text-anchor="end">'
            parts.append(f"{note}{html.escape(lane.note)}</text>")
        parts.append(f'<rect class="lane" x="0" y="{top + 18}" width="100%" height="16"/>')
        parts += (_span(span, axis, top + 18, 16) for span in lane.spans)
    return _svg(parts, height + _AXIS)


def _span(span: LaneSpan, axis: TimeAxis, top: int, height: int) -> str:
    left = axis.percent(span.from_ms)
    share = axis.percent(span.to_ms) - left
    width = f"{share:.3f}%" if share > _SHARE_MIN else "3"  # of no width nothing is drawn
    return (
        f'<rect class="span {span.colour}" x="{left:.3f}%" y="{top}" width="{width}" '
        f'height="{height}">{_title(span.title)}</rect>'
    )


def lines_over_time(
    lines: Sequence[Line], axis: TimeAxis, unit: str, marks: Sequence[ChartMark] = ()
) -> str:
    """One line each, from zero up, with a legend; a line of one point is a dot."""
    values = [value for line in lines for _, value in line.points]
    top_value = _round_up(max([*values, *(mark.value for mark in marks), 0.0]))
    scale = _PLOT / top_value

    def y(value: float) -> float:
        return _PLOT - value * scale + 14

    parts = [f'<text x="0" y="10" class="note">{html.escape(unit)}</text>']
    for share in (1.0, 0.5):
        at = y(top_value * share)
        parts.append(f'<line class="grid" x1="0" x2="100%" y1="{at:.1f}" y2="{at:.1f}"/>')
        shown = f"{top_value * share:,g}"
        parts.append(f'<text x="0" y="{at + 12:.1f}" class="note">{shown}</text>')
    parts += _grid(axis, _PLOT + 14)
    plotted = []
    for number, line in enumerate(lines):
        colour = f"c{number % COLOURS}"
        points = [(axis.percent(at), y(value)) for at, value in line.points]
        if len(points) == 1:
            ((x, height),) = points
            parts.append(f'<circle class="dot {colour}" cx="{x:.2f}%" cy="{height:.1f}" r="4"/>')
        else:
            path = " ".join(f"{x * 10:.1f},{height:.1f}" for x, height in points)
            plotted.append(
                f'<polyline class="line {colour}" points="{path}">{_title(line.name)}</polyline>'
            )
    parts.append(
        f'<svg x="0" y="0" width="100%" height="{_PLOT + 14}" viewBox="0 0 1000 {_PLOT + 14}" '
        f'preserveAspectRatio="none">{"".join(plotted)}</svg>'
    )
    for mark in marks:
        dot = (
            f'<circle class="mark" cx="{axis.percent(mark.at_ms):.2f}%" '
            f'cy="{y(mark.value):.1f}" r="5">{_title(mark.title)}</circle>'
        )
        parts.append(_linked(mark.href, dot))
    return _svg(parts, _PLOT + 14 + _AXIS) + legend(
        [(line.name, f"c{number % COLOURS}", line.href) for number, line in enumerate(lines)]
    )


def legend(entries: Sequence[tuple[str, str, str]]) -> str:
    """(name, class of its colour, where it leads)"""
    shown = []
    for name, colour, href in entries:
        label = f"<a href={_quoted(href)}>{_text(name)}</a>" if href else _text(name)
        shown.append(f'<span><b class="{colour}"></b>{label}</span>')
    return f'<p class="legend">{"".join(shown)}</p>'


def span_title(name: str, from_ms: int, to_ms: int) -> str:
    return f"{name}: {instant(from_ms)}, for {duration(to_ms - from_ms)}"


def _grid(axis: TimeAxis, height: int) -> Iterator[str]:
    free = 0.0  # from where on there is room for a label
    for at, label in axis.ticks():
        x = axis.percent(at)
        yield f'<line class="grid" x1="{x:.2f}%" x2="{x:.2f}%" y1="0" y2="{height}"/>'
        if x < free:
            continue
        free = x + _LETTER_PERCENT * len(label)
        anchor = "start" if x < 8 else "end" if x > 92 else "middle"
        yield (
            f'<text x="{x:.2f}%" y="{height + 15}" class="note" text-anchor="{anchor}">'
            f"{html.escape(label)}</text>"
        )


def _round_up(value: float) -> float:
    """To one, two or five, and zeros."""
    if value <= 0:
        return 1.0
    power = 1.0
    while power * 10 <= value:
        power *= 10
    while power > value:
        power /= 10
    return next(power * n for n in (1, 2, 5, 10) if power * n >= value)


def _linked(href: str, inside: str) -> str:
    return f"<a href={_quoted(href)}>{inside}</a>" if href else inside


def _quoted(text: str) -> str:
    return f'"{html.escape(text)}"'


def _text(name: str) -> str:
    return html.escape(shortened(name))


def _title(text: str) -> str:
    return f"<title>{html.escape(text)}</title>"


def _svg(parts: Sequence[str], height: int) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="100%" height="{height}">'
        f"{''.join(parts)}</svg>"
    )
