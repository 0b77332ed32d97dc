"""Charts of the report: matplotlib's SVG, small enough to embed in a page.

Text stays text: the page can be searched, and no font is embedded. Figures are made without
pyplot's global state; the same figures give the same bytes. Names chosen by users (groups, clients)
are shown literally: never parsed as mathematics, and truncated if they are long.
"""

import io
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter, MaxNLocator

PALETTE: Final = (
    "#3b6fb6", "#d9822b", "#3f9b5f", "#b5484f", "#7b61a8",
    "#8a6d4b", "#c46ba3", "#6b7780", "#a8a032", "#33a0ae",
)  # fmt: skip
COLOURS: Final = {"OK": "#5aa469", "WARN": "#e0a030", "ERR": "#c0474f"}
LABEL: Final = 40
"""Longer names are cut."""

_STYLE: Final = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "timezone": "UTC",
}
_WITHOUT_METADATA: Final = dict.fromkeys(("Creator", "Date", "Format", "Type"))
_UNUSED_ID: Final = re.compile(r' id="[A-Za-z0-9.]+_\d+"')
_ALONE_DAYS: Final = 1 / 12
_WIDTH: Final = 9.5  # inches; the page scales it


class Line(NamedTuple):
    """A line over time: (ms since the epoch, value)."""

    name: str
    points: Sequence[tuple[int, float]]


def shortened(name: str) -> str:
    """A name as a chart can show it."""
    shown = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in name)
    return shown if len(shown) <= LABEL else shown[: LABEL - 1] + "…"


def lines_over_time(
    lines: Sequence[Line], unit: str, marks: Sequence[tuple[int, float]] = ()
) -> str:
    """One line each; `marks` are points that stand out."""

    def draw(axes: Axes) -> None:
        for number, line in enumerate(lines):
            axes.plot(
                [_moment(at) for at, _ in line.points],
                [value for _, value in line.points],
                color=PALETTE[number % len(PALETTE)],
                linestyle="-" if number < len(PALETTE) else "--",
                linewidth=1.3,
                marker="." if len(line.points) < 3 else None,
                label=shortened(line.name),
            )
        if marks:
            axes.plot(
                [_moment(at) for at, _ in marks],
                [value for _, value in marks],
                linestyle="",
                marker="v",
                color=COLOURS["ERR"],
                label="storm",
            )
        locator = AutoDateLocator()
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
        axes.set_xlabel("UTC")
        axes.yaxis.set_major_formatter(_figures())
        axes.set_ylim(0, max(1.0, axes.get_ylim()[1]))
        low, high = axes.get_xlim()
        if len({at for line in lines for at, _ in line.points}) == 1:
            # A single instant would get an axis of four years.
            axes.set_xlim((low + high - _ALONE_DAYS) / 2, (low + high + _ALONE_DAYS) / 2)
        axes.set_ylabel(unit)
        _legend(axes)

    return _svg(draw, height=3.2)


def stacked_bars(
    bars: Sequence[tuple[str, Mapping[str, float]]],
    parts: Sequence[str],
    unit: str,
    colours: Mapping[str, str] | None = None,
) -> str:
    """A horizontal bar for each name, made of the parts, the first name on top."""
    colours = colours or {}

    def draw(axes: Axes) -> None:
        places = list(range(len(bars)))
        left = [0.0] * len(bars)
        for number, part in enumerate(parts):
            widths = [values.get(part, 0.0) for _, values in bars]
            colour = colours.get(part, PALETTE[number % len(PALETTE)])
            axes.barh(places, widths, left=left, color=colour, label=shortened(part))
            left = [before + width for before, width in zip(left, widths, strict=True)]
        axes.set_yticks(places, [shortened(name) for name, _ in bars])
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.margins(x=0)
        # What is counted is whole.
        axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))
        axes.xaxis.set_major_formatter(_figures())
        axes.set_xlabel(unit)
        _legend(axes)

    return _svg(draw, height=1.3 + 0.24 * len(bars))


def _figures() -> FuncFormatter:
    """25k, 3M; but 0.5, which an engineer would call 500m."""
    large = EngFormatter(sep="")
    return FuncFormatter(lambda value, _: f"{value:g}" if abs(value) < 1_000 else large(value))


def _legend(axes: Axes) -> None:
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)


def _moment(at_ms: int) -> float:
    """As the library counts time: days since 1970."""
    return at_ms / 86_400_000


def _svg(draw: Callable[[Axes], None], height: float) -> str:
    with mpl.rc_context({**_STYLE, "svg.hashsalt": "rollcall"}), warnings.catch_warnings():
        # A name in a script that the measuring font lacks is still shown: by the reader's fonts.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure = Figure(figsize=(_WIDTH, height))
        draw(figure.add_subplot())
        written = io.StringIO()
        figure.savefig(written, format="svg", bbox_inches="tight", metadata=_WITHOUT_METADATA)
    return _embeddable(written.getvalue())


def _embeddable(svg: str) -> str:
    """Without a prologue, and with no name that another chart of the page may have."""
    return _UNUSED_ID.sub("", svg[svg.index("<svg") :])
