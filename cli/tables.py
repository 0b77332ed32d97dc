"""How are numbers and tables written for people? In columns, with `-` for what is not there."""

from collections.abc import Iterable, Sequence

import click

from protocol.printable import printable

NONE = "-"


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


def cell(fact: object) -> str:
    return NONE if fact is None or fact == "" else str(fact)


def per_second(rate: object) -> str:
    if not isinstance(rate, int | float):
        return NONE
    return f"{rate:.1f}/s" if rate < 1000 else f"{rate:,.0f}/s"


def duration(seconds: object) -> str:
    """Two units at most: 0.4s, 12s, 3m20s, 2h05m, 4d3h."""
    if not isinstance(seconds, int | float):
        return NONE
    if seconds < 10:
        return f"{seconds:.1f}s" if seconds else "0s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    if whole < 86_400:
        return f"{whole // 3600}h{whole % 3600 // 60:02}m"
    return f"{whole // 86_400}d{whole % 86_400 // 3600}h"
