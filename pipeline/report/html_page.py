"""HTML page: the report as one file that loads nothing from a network.

All values from a log (names, addresses, metadata) are escaped text, never markup; in addition the
page forbids itself scripts and requests. Figures are rounded for people; the files of --csv and
--json have them exactly. The page fits a phone and follows the reader's choice of dark or light.
"""

import html
import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from msgspec import Struct, field

from seams.text import duration, instant

_INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
_NONE: Final = "\N{EN DASH}"
_CELL: Final = 400
"""Characters of a cell; more are cut."""

_STYLE: Final = (
    """
:root { color-scheme: light dark; --bg: #fff; --fg: #1c2126; --soft: #5d6770; --line: #dfe3e7;
  --card: #f6f8f9; --link: #1f5fae; --ok: #46a06a; --warn: #d8951f; --err: #c9414b;
  --c0: #2f6db5; --c1: #d1772a; --c2: #3a9660; --c3: #b23f49; --c4: #7a5aa6; --c5: #8a6a45;
  --c6: #c0619c; --c7: #5f6d78; --c8: #99901f; --c9: #2492a0; }
@media (prefers-color-scheme: dark) { :root { --bg: #14181c; --fg: #e3e7ea; --soft: #98a3ad;
  --line: #303840; --card: #1c2228; --link: #7db4f0; --ok: #4fae76; --warn: #e0a63c;
  --err: #e8636c; --c0: #6aa5e8; --c1: #eb9a55; --c2: #5fbd86; --c3: #e0737c; --c4: #a78bd4;
  --c5: #bd9a72; --c6: #e08fc2; --c7: #93a2ae; --c8: #c9c04f; --c9: #55c0cd; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--fg); background: var(--bg);
  max-width: 68rem; margin: 0 auto; padding: 1.2rem 1rem 4rem; }
a { color: var(--link); text-decoration: none; } a:hover { text-decoration: underline; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: .2rem 0; }
h2 { font-size: 1.25rem; margin: 2.4rem 0 .4rem; }
h3 { font-size: 1.05rem; margin: 1.6rem 0 .3rem; overflow-wrap: anywhere; }
h4 { font-size: .95rem; margin: 1rem 0 .2rem; }
p { margin: .3rem 0; } p.note { color: var(--soft); font-size: 13.5px; margin: .2rem 0 .6rem; }
nav { margin: .8rem 0; display: flex; flex-wrap: wrap; gap: .2rem 1rem; }
section.group { border-top: 1px solid var(--line); margin-top: 1.6rem; }
.chip { border-radius: 4px; padding: .05rem .45rem; color: #fff; font-size: .85em;
  font-weight: 600; }
.chip.OK { background: var(--ok); } .chip.WARN { background: var(--warn); }
.chip.ERR { background: var(--err); }
ul { margin: .3rem 0; padding-left: 1.2rem; } li { margin: .25rem 0; overflow-wrap: break-word; }
li small { color: var(--soft); font-size: 13px; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .6rem;
  margin: 1rem 0; }
.figures div { background: var(--card); border: 1px solid var(--line); border-radius: 6px;
  padding: .4rem .8rem; font-size: 13.5px; color: var(--soft); }
.figures b { display: block; font-size: 1.35rem; color: var(--fg); }
figure { margin: .6rem 0; } svg { display: block; overflow: visible; }
svg text { font-size: 12px; fill: var(--fg); } svg text.note { fill: var(--soft); font-size: 11px; }
svg a text { fill: var(--link); } svg .grid { stroke: var(--line); stroke-width: 1; }
svg .lane { fill: var(--card); } svg .span { stroke-width: 2; }
svg .line { fill: none; stroke-width: 1.8; vector-effect: non-scaling-stroke; }
svg .mark { fill: var(--err); stroke: var(--bg); }
svg .OK { fill: var(--ok); } svg .WARN { fill: var(--warn); } svg .ERR { fill: var(--err); }
.legend { font-size: 13px; } .legend span { display: inline-block; margin-right: 1rem;
  overflow-wrap: anywhere; }
.legend b { display: inline-block; width: .8em; height: .8em; border-radius: 2px;
  margin-right: .35em; }
table { border-collapse: collapse; font-size: 13px; margin: .6rem 0; width: 100%; }
th { text-align: left; border-bottom: 2px solid var(--line); vertical-align: bottom;
  color: var(--soft); font-weight: 600; }
td { border-bottom: 1px solid var(--line); vertical-align: top; word-break: normal;
  overflow-wrap: normal; min-width: 4rem; }
th, td { padding: .25rem .5rem; } td.n, th.n { text-align: right; white-space: nowrap; }
td.when, .when { white-space: nowrap; }
@media (max-width: 34rem) { svg text.beside { display: none; } }
td.OK { color: var(--ok); } td.WARN { color: var(--warn); } td.ERR { color: var(--err); }
td.ERR, td.WARN { font-weight: 600; } div.wide { overflow-x: auto; }
details { margin: .4rem 0; } summary { cursor: pointer; color: var(--link); }
@media print { nav { display: none; } h2, h3 { break-after: avoid; } }
"""
    + "".join(
        f"svg .c{n} {{ stroke: var(--c{n}); }} .legend .c{n} {{ background: var(--c{n}); }}\n"
        f"svg .span.c{n}, svg .dot.c{n} {{ fill: var(--c{n}); }}\n"
        for n in range(10)
    )
    + "".join(
        f".legend .{name} {{ background: var(--{name.lower()}); }}\n"
        for name in ("OK", "WARN", "ERR")
    )
)

_HEAD: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
"""


class Link(NamedTuple):
    """Text that leads to a place of the page."""

    text: str
    anchor: str


class Section(Struct):
    """A part of the page: a question, and what answers it, in order. `level` of its heading."""

    anchor: str
    title: str
    level: int = 2
    chip: str = ""  # a status beside the title
    parts: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        self.parts.append(f'<p class="note">{html.escape(text)}</p>')

    def heading(self, text: str, level: int = 4) -> None:
        self.parts.append(f"<h{level}>{html.escape(text)}</h{level}>")

    def figures(self, figures: Iterable[tuple[str, object]]) -> None:
        """A few numbers that stand out, each with what it counts."""
        boxes = (f"<div><b>{_text(value)}</b>{html.escape(what)}</div>" for what, value in figures)
        self.parts.append(f'<div class="figures">{"".join(boxes)}</div>')

    def chart(self, svg: str, says: str) -> None:
        """A chart, with a text alternative."""
        self.parts.append(f'<figure aria-label="{html.escape(says)}">{svg}</figure>')

    def sentences(self, items: Iterable[Sequence["str | Link"]]) -> None:
        """A list; each item is text and links, joined; its last part is in small print."""
        lines = []
        for item in items:
            *parts, small = item
            said = "".join(map(_inline, parts))
            lines.append(f"<li>{said} <small>{_dated(_inline(small))}</small></li>")
        self.parts.append(f"<ul>{''.join(lines)}</ul>")

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

    def fold(self, summary: str, inside: "Section") -> None:
        """Shown when it is asked for."""
        content = "".join(inside.parts)
        self.parts.append(f"<details><summary>{html.escape(summary)}</summary>{content}</details>")


def page(title: str, headline: str, about: Sequence[str], sections: Sequence[Section]) -> str:
    """The whole file. `headline` is what to know if nothing else is read."""
    links = "".join(
        f'<a href="#{section.anchor}">{html.escape(section.title)}</a>'
        for section in sections
        if section.level == 2
    )
    parts = [
        f"{_HEAD}<title>{html.escape(title)}: {html.escape(headline)}</title>",
        f"<style>{_STYLE}</style>\n</head>\n<body>",
        f'<p class="note">{html.escape(title)}</p>\n<h1>{html.escape(headline)}</h1>',
        *(f"<p>{_dated(html.escape(line))}</p>" for line in about),
        f"<nav>{links}</nav>",
    ]
    for section in sections:
        chip = f' <span class="chip {section.chip}">{section.chip}</span>' if section.chip else ""
        kind = ' class="group"' if section.level > 2 else ""
        title_text = html.escape(section.title)
        parts.append(
            f'<section id="{section.anchor}"{kind}>\n'
            f"<h{section.level}>{title_text}{chip}</h{section.level}>"
        )
        parts += [*section.parts, "</section>"]
    return "\n".join([*parts, "</body>\n</html>\n"])


def _dated(markup: str) -> str:
    """With instants that do not break into two lines."""
    return _INSTANT.sub(r'<span class="when">\g<0></span>', markup)


def _inline(part: str | Link) -> str:
    if isinstance(part, Link):
        return f'<a href="#{html.escape(part.anchor)}">{html.escape(part.text)}</a>'
    return html.escape(part)


def _cell(value: object, right: bool) -> str:  # noqa: FBT001  as map hands it on
    verdict = value if value in ("OK", "WARN", "ERR") else None
    kind = "n" if right else verdict or ("when" if isinstance(value, Instant) else None)
    opening = f'<td class="{kind}">' if kind else "<td>"
    if isinstance(value, Link):
        shown = _inline(value)
    else:
        shown = _text(value) if isinstance(value, Instant) else _breakable(_text(value))
    return f"{opening}{shown}</td>"


class Instant(str):
    """The text of a time: never broken into two lines."""

    __slots__ = ()


def _breakable(text: str) -> str:
    """Names break after their separators, and not inside words."""
    if len(text) < 16 or " " in text or "&" in text:
        return text
    for separator in "-._/:":
        text = text.replace(separator, f"{separator}<wbr>")
    return text


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: object) -> str:
    if value is None or value == "":
        return _NONE
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"
    if isinstance(value, int):
        return f"{value:,}"
    said = str(value)
    return html.escape(said if len(said) <= _CELL else said[: _CELL - 1] + "…")


def instant_text(at_ms: int | None) -> Instant | None:
    return None if at_ms is None else Instant(instant(at_ms))


def duration_text(seconds: float | None) -> str | None:
    return None if seconds is None else duration(seconds * 1_000)
