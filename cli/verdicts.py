"""`rollcall verdicts`: which problems does a group have, with evidence and remedy?

Queries the admin port of a running daemon (console/verdicts_api.py). Exit code 0: no verdict;
1: some; 2: wrong usage, no daemon answers, or no such group.
"""

import json
import textwrap
from collections.abc import Mapping
from types import NoneType

import click

from cli.admin import admin_option, ask_admin
from cli.tables import say
from protocol.printable import printable
from seams.text import instant

_WIDTH = 100


@click.command(
    name="verdicts",
    epilog="\b\nExamples:\n"
    "  rollcall verdicts\n"
    "  rollcall verdicts billing || echo billing has a problem\n"
    "  rollcall verdicts --json | jq '.verdicts[].remedy'\n"
    "\n"
    "Exit code 0: no verdict; 1: some; 2: no daemon answers, or no such group. "
    "docs/verdicts.md has the rules and their limits.",
)
@click.argument("group", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
@admin_option
def show_verdicts(*, group: str | None, as_json: bool, admin: str) -> int:
    """Show current problems of a group, with a remedy. Without GROUP: of all groups."""
    query = {} if group is None else {"group": group}
    answer = ask_admin(admin, "/api/verdicts", query, {"at_ms": (int, NoneType), "verdicts": list})
    verdicts = answer["verdicts"]
    assert isinstance(verdicts, list)
    if as_json:
        click.echo(json.dumps(answer, indent=2))
    elif not verdicts:
        say(["No verdicts." if group is None else f"No verdicts on {group}."])
    else:
        click.echo("\n\n".join(_text(verdict) for verdict in verdicts))
    return 1 if verdicts else 0


def _text(verdict: Mapping[str, object]) -> str:
    whose = printable(str(verdict["group"] or verdict["subject"]))
    head = f"{whose}: {verdict['verdict']} (since {instant(_ms(verdict['since_ms']))})"
    return "\n".join(
        [head, _indented(str(verdict["summary"])), _indented(f"Remedy: {verdict['remedy']}")]
    )


def _indented(words: str) -> str:
    return textwrap.fill(printable(words), _WIDTH, initial_indent="  ", subsequent_indent="    ")


def _ms(at: object) -> int:
    return at if isinstance(at, int) else 0
