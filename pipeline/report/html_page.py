"""HTML page: the report as one file that loads nothing from a network.

All values from a log (names, addresses, metadata) are escaped text, never markup; in addition the
page forbids itself scripts and requests. Figures are rounded for people; the files of --csv and
--json have them exactly.
"""

import html
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct, field

from seams.text import duration, instant

_NONE: Final = "\N{EN DASH}"
_CELL: Final = 400
"""Characters of a cell; more are cut."""

_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff; max-width: 70rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .3rem; }
p.note { color: #666; margin: .2rem 0 .8rem; } nav a { margin-right: 1rem; }
table { border-collapse: collapse; font-size: 13px; margin: .6rem 0; width: 100%; }
th { text-align: left; border-bottom: 2px solid #bbb; white-space: nowrap; }
td { border-bottom: 1px solid #e4e4e4; overflow-wrap: anywhere; vertical-align: top; }
th, td { padding: .2rem .5rem; } td.n, th.n { text-align: right; white-space: nowrap; }
td.OK { color: #2c7a3f; } td.WARN { color: #a86a00; } td.ERR { color: #b02730; font-weight: 600; }
.figures { display: flex; flex-wrap: wrap; gap: 1rem; margin: 1rem 0; }
.figures div { border: 1px solid #ddd; border-radius: 6px; padding: .5rem .9rem; }
.figures b { display: block; font-size: 1.4rem; } figure { margin: .5rem 0; overflow-x: auto; }
svg { max-width: 100%; min-width: 40rem; height: auto; } div.wide { overflow-x: auto; }
@media print { nav { display: none; } h2 { break-after: avoid; } }
"""

_HEAD: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
"""


class Section(Struct):
    """A part of the page: a question, and what answers it, in order."""

    anchor: str
    title: str
    parts: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        self.parts.append(f'<p class="note">{html.escape(text)}</p>')

    def figures(self, figures: Iterable[tuple[str, object]]) -> None:
        """A few numbers that stand out, each with what it counts."""
        boxes = (f"<div><b>{_text(value)}</b>{html.escape(what)}</div>" for what, value in figures)
        self.parts.append(f'<div class="figures">{"".join(boxes)}</div>')

    def chart(self, svg: str, says: str) -> None:
        """A chart, with a text alternative."""
        label = html.escape(says)
        self.parts.append(f'<figure role="img" aria-label="{label}">{svg}</figure>')

    def table(self, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Numbers stand to the right; a verdict has its colour."""
        body = list(rows)
        numeric = [
            any(_is_number(row[at]) for row in body)
            and all(row[at] is None or _is_number(row[at]) for row in body)
            for at in range(len(heads))
        ]
        head = "".join(
            f'<th class="n">{html.escape(name)}</th>' if right else f"<th>{html.escape(name)}</th>"
            for name, right in zip(heads, numeric, strict=True)
        )
        lines = ("".join(map(_cell, row, numeric)) for row in body)
        inside = "".join(f"<tr>{line}</tr>" for line in lines)
        self.parts.append(
            f'<div class="wide"><table><thead><tr>{head}</tr></thead>'
            f"<tbody>{inside}</tbody></table></div>"
        )


def page(title: str, about: str, sections: Sequence[Section]) -> str:
    """The whole file."""
    links = "".join(
        f'<a href="#{section.anchor}">{html.escape(section.title)}</a>' for section in sections
    )
    parts = [
        f"{_HEAD}<title>{html.escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>",
        f'<h1>{html.escape(title)}</h1>\n<p class="note">{html.escape(about)}</p>',
        f"<nav>{links}</nav>",
    ]
    for section in sections:
        parts.append(f'<section id="{section.anchor}">\n<h2>{html.escape(section.title)}</h2>')
        parts += [*section.parts, "</section>"]
    return "\n".join([*parts, "</body>\n</html>\n"])


def _cell(value: object, right: bool) -> str:  # noqa: FBT001  as map hands it on
    verdict = value if value in ("OK", "WARN", "ERR") else None
    kind = "n" if right else verdict
    opening = f'<td class="{kind}">' if kind else "<td>"
    return f"{opening}{_text(value)}</td>"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: object) -> str:
    if value is None:
        return _NONE
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"
    if isinstance(value, int):
        return f"{value:,}"
    said = str(value)
    return html.escape(said if len(said) <= _CELL else said[: _CELL - 1] + "…")


def instant_text(at_ms: int | None) -> str | None:
    return None if at_ms is None else instant(at_ms)


def duration_text(seconds: float | None) -> str | None:
    return None if seconds is None else duration(seconds * 1_000)
