"""Tables for people: aligned columns, with `-` for a value that is missing."""

import shlex
from collections.abc import Iterable, Sequence

import click

from protocol.printable import printable
from seams.text import duration

_NONE = "-"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their widest word, two spaces apart; what is not printable is escaped."""
    rows = [[printable(word) for word in row] for row in rows]
    widths = [max(len(row[at]) for row in (header, *rows)) for at in range(len(header))]
    return "\n".join(
        "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip()
        for row in (header, *rows)
    )


def say(lines: Iterable[str]) -> None:
    """Print lines for people: each stays one line, whatever the names in it hold."""
    click.echo("\n".join(map(printable, lines)))


def shell_words(command: Sequence[str], argument: str, options: Sequence[str] = ()) -> str:
    """A command line to copy into a shell. An argument such as `-x` stands behind `--`."""
    is_option = argument.startswith("-")
    words = [*options, "--", argument] if is_option else [argument, *options]
    return shlex.join([*command, *words])


def cell(fact: object) -> str:
    return _NONE if fact is None or fact == "" else str(fact)


def per_second(rate: object) -> str:
    if not isinstance(rate, int | float):
        return _NONE
    return f"{rate:.1f}/s" if rate < 1000 else f"{rate:,.0f}/s"


def duration_cell(seconds: object) -> str:
    """A duration as everywhere: 1.5 s, 3 min 20 s, 4 d 3 h."""
    return duration(seconds * 1_000) if isinstance(seconds, int | float) else _NONE
