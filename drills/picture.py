"""Picture: lanes of the members over time, as SVG without any library.

One panel for each client library. A lane of a member has a row for each partition that it owned,
in the colour of the partition; the lane of the daemon shows when it answered. Over all lanes: the
faults, and when the group had recovered from each.
"""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from drills.events import OF_DAEMON, DrillEvent, Kind
from drills.ownership import Owned, track_ownership
from drills.runner import DrillRun

WIDTH: Final = 1_000
LEFT: Final = 110
RIGHT: Final = 20
ROW: Final = 8
LANE_GAP: Final = 10
TITLE: Final = 34
AXIS: Final = 30
LEGEND_HEIGHT: Final = 24
LABELS_MAX: Final = 12
_COLOURS: Final = (
    *("#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#edc948", "#76b7b2", "#9c755f", "#ff9da7"),
)
_FAULT: Final = "#d62728"
_RECOVERED: Final = "#2ca02c"
_SILENT: Final = "#8888888c"
_LEGEND: Final = (
    "Bars: partitions that a member owns, a colour each. Grey: stalled, cut off, or the disk at "
    "fault. Red line: fault. Green line: recovered. \u25b6 started \u25a0 closing \u2716 killed"
)
_STYLE: Final = (
    "<style>text{font:11px sans-serif;fill:#222}.t{font-weight:bold;font-size:13px}"
    ".b{fill:#fff}@media (prefers-color-scheme:dark){text{fill:#ddd}.b{fill:#1b1b1b}}</style>"
)


class _Scale:
    """Seconds to pixels."""

    def __init__(self, began_s: float, ended_s: float) -> None:
        self.began_s = began_s
        self.length_s = max(ended_s - began_s, 0.001)

    def x(self, at_s: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (at_s - self.began_s) / self.length_s


def draw_picture(runs: Sequence[DrillRun], partitions: int) -> str:
    """The SVG document."""
    panels: list[str] = []
    top = 0
    for run in runs:
        drawn, height = _panel(run, partitions, top)
        panels += drawn
        top += height
    panels.append(_text(10, top + 12, _LEGEND))
    top += LEGEND_HEIGHT
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" width="{WIDTH}">'
    background = f'<rect class="b" width="{WIDTH}" height="{top}"/>'
    return "\n".join([head, _STYLE, background, *panels, "</svg>"]) + "\n"


def _panel(run: DrillRun, partitions: int, top: int) -> tuple[list[str], int]:
    scale = _Scale(run.began_s, run.events[-1].at_s)
    result = "passed" if run.passed else "FAILED"
    seconds = run.measures.time_to_recover_s
    took = "" if seconds is None else f", recovered in {seconds:.2f} s"
    drawn = [_text(10, top + 20, f"{run.library}: {result}{took}", "t")]
    y = top + TITLE
    lane_top = y
    drawn += _daemon_lane(run, scale, y)
    y += 2 * ROW + LANE_GAP
    track = track_ownership(run.events, {})
    for member in run.members:
        owned = [interval for interval in track.intervals if interval.member == member]
        height = max(partitions, 2) * ROW
        drawn += _member_lane(member, owned, run.events, scale, y, height)
        y += height + LANE_GAP
    drawn += _marks(run, scale, lane_top - 4, y - LANE_GAP)
    drawn += _axis(scale, y)
    return drawn, y + AXIS - top


def _daemon_lane(run: DrillRun, scale: _Scale, y: int) -> list[str]:
    drawn = [_text(10, y + 12, "daemon")]
    up_s: float | None = None
    has_own = False
    for event in run.events:
        if event.source != OF_DAEMON:
            continue
        has_own = True
        if event.kind is Kind.READY:
            up_s = event.at_s
        elif event.kind is Kind.KILLED and up_s is not None:
            drawn.append(_bar(scale, up_s, event.at_s, y, 2 * ROW, "#7a9e7e", "daemon answers"))
            up_s = None
    if up_s is not None or not has_own:
        begin_s = run.began_s if up_s is None else up_s
        drawn.append(
            _bar(scale, begin_s, run.events[-1].at_s, y, 2 * ROW, "#7a9e7e", "daemon answers")
        )
    drawn += _silences(OF_DAEMON, run.events, scale, y, 2 * ROW)
    return drawn


def _member_lane(
    member: str,
    owned: Iterable[Owned],
    events: Sequence[DrillEvent],
    scale: _Scale,
    y: int,
    height: int,
) -> list[str]:
    drawn = [_text(10, y + height / 2 + 4, member)]
    for interval in owned:
        colour = _COLOURS[interval.partition % len(_COLOURS)]
        title = f"{member} owns partition {interval.partition}"
        row_y = y + interval.partition * ROW
        drawn.append(_bar(scale, interval.from_s, interval.to_s, row_y, ROW - 1, colour, title))
    drawn += _silences(member, events, scale, y, height)
    for event in events:
        if event.source == member and event.kind in (Kind.STARTED, Kind.KILLED, Kind.CLOSING):
            mark = {"started": "▶", "killed": "✖", "closing": "■"}[str(event.kind)]
            place = scale.x(event.at_s) - 4
            drawn.append(_text(place, y + height / 2 + 4, mark, title=str(event.kind)))
    return drawn


def _silences(
    source: str, events: Sequence[DrillEvent], scale: _Scale, y: int, height: int
) -> list[str]:
    """Where it was stalled or cut off, or its disk was at fault."""
    begins = {Kind.STALLED: Kind.RESUMED, Kind.CUT: Kind.HEALED, Kind.DISK_FAULT: Kind.DISK_SOUND}
    drawn: list[str] = []
    open_at: dict[Kind, float] = {}
    for event in events:
        if event.source != source:
            continue
        if event.kind in begins:
            open_at[event.kind] = event.at_s
        for begin, end in begins.items():
            if event.kind is end and begin in open_at:
                title = f"{source}: {begin}"
                from_s = open_at.pop(begin)
                drawn.append(_bar(scale, from_s, event.at_s, y, height, _SILENT, title))
    for begin, from_s in open_at.items():
        title = f"{source}: {begin}"
        drawn.append(_bar(scale, from_s, events[-1].at_s, y, height, _SILENT, title))
    return drawn


def _marks(run: DrillRun, scale: _Scale, top: int, bottom: int) -> list[str]:
    drawn: list[str] = []
    for recovery in run.measures.recoveries[:LABELS_MAX]:
        x = scale.x(recovery.at_s)
        drawn += [
            _line(x, top, bottom, _FAULT, recovery.fault),
            _text(x + 3, top + 2, recovery.fault, title=recovery.fault),
        ]
        if recovery.seconds is not None:
            done = scale.x(recovery.at_s + recovery.seconds)
            title = f"recovered from: {recovery.fault}"
            drawn.append(_line(done, top, bottom, _RECOVERED, title))
    return drawn


def _axis(scale: _Scale, y: int) -> list[str]:
    step = next(s for s in (0.5, 1, 2, 5, 10, 20, 60, 300, 3_600) if scale.length_s / s <= 20)
    drawn = []
    for number in range(int(scale.length_s / step) + 1):
        x = scale.x(scale.began_s + number * step)
        drawn.append(f'<path d="M{x:.1f} {y - LANE_GAP}v5" stroke="#888"/>')
        drawn.append(_text(x - 6, y + 8, f"{number * step:g} s"))
    return drawn


def _bar(
    scale: _Scale, from_s: float, to_s: float, y: float, height: float, colour: str, title: str
) -> str:
    x = scale.x(from_s)
    width = max(scale.x(to_s) - x, 0.8)
    words = f"{title}, {from_s - scale.began_s:.2f} to {to_s - scale.began_s:.2f} s"
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height}" fill="{colour}">'
        f"<title>{escape(words)}</title></rect>"
    )


def _line(x: float, top: float, bottom: float, colour: str, title: str) -> str:
    return (
        f'<path d="M{x:.1f} {top}V{bottom}" stroke="{colour}" stroke-width="1.5" '
        f'stroke-dasharray="4 2"><title>{escape(title)}</title></path>'
    )


def _text(x: float, y: float, words: str, css: str = "", title: str = "") -> str:
    css = f' class="{css}"' if css else ""
    hint = f"<title>{escape(title)}</title>" if title else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{css}>{hint}{escape(words)}</text>'
