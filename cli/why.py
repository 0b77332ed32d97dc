"""`rollcall why` and `rollcall history`: why did a group rebalance, and what happened to it?

Both query the admin port of a running daemon (console/history_api.py). It supplies the texts of
rebalances and events, so that the commands and the console show the same ones.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

import click

from cli.admin import Expected, admin_option, ask_admin
from cli.clock import InstantParam
from cli.tables import cell, say, shell_words, table

_REBALANCES: Expected = {"rebalances": list, "stories": list}
_EVENTS: Expected = {"events": list}
_STORIES = 5
_STORIES_OF_ALL = 20

CommandFunction = TypeVar("CommandFunction", bound=Callable[..., object])


def _span_options(command: CommandFunction) -> CommandFunction:
    for name, which in (("until", "End"), ("since", "Start")):
        command = click.option(
            f"--{name}",
            metavar="TIME",
            type=InstantParam(),
            help=f"{which} of the time range: 02:10 or 2026-11-21T02:10 (UTC), or 2h (ago).",
        )(command)
    return command


@click.command(
    name="why",
    epilog="\b\nExamples:\n"
    "  rollcall why billing\n"
    "  rollcall why billing --generation 42\n"
    "  rollcall why --since 02:05 --until 02:15    # what happened at 02:10, in any group?\n"
    "  rollcall why billing --json | jq '.[0].cause'\n",
)
@click.argument("group", required=False)
@click.option("--generation", type=click.IntRange(0), help="Only what led to this generation.")
@_span_options
@click.option(
    "--limit",
    type=click.IntRange(1, 1_000),
    help="Maximum number of rebalances to show. [5; for all groups or JSON: 20]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, newest first, for programs.")
@admin_option
def why(
    *,
    group: str | None,
    generation: int | None,
    since: int | None,
    until: int | None,
    limit: int | None,
    as_json: bool,
    admin: str,
) -> None:
    """Show why a group rebalanced: who triggered it, which members were waited for, and its cost.

    For a group that is waiting now: for which members, until when, and what ends the wait. Without
    GROUP: the rebalances of all groups, newest first.
    """
    if group is None and generation is not None:
        raise click.UsageError("--generation needs a GROUP")
    default = _STORIES if group is not None and not as_json else _STORIES_OF_ALL
    query = _query(group, limit or default, since, until)
    if generation is not None:
        query["generation"] = generation
    answer = ask_admin(admin, "/api/rebalances", query, _REBALANCES)
    if as_json:
        click.echo(json.dumps(answer["rebalances"], indent=2))
    elif group is None:
        say(_stories(answer))
    else:
        say(_story(group, generation, answer))


def _query(
    group: str | None, limit: int, since: int | None, until: int | None
) -> dict[str, str | int]:
    query: dict[str, str | int] = {"limit": limit}
    query |= {"all": "true"} if group is None else {"group": group}
    if since is not None:
        query["since"] = since
    if until is not None:
        query["until"] = until
    if since is not None and until is not None and since > until:
        raise click.UsageError("--since is after --until")
    return query


def _stories(answer: Mapping[str, object]) -> Iterator[str]:
    """The lines for all groups."""
    stories, rebalances = answer["stories"], answer["rebalances"]
    assert isinstance(stories, list)
    assert isinstance(rebalances, list)
    if not stories:
        yield "The history has no rebalance of any group in this time."
    for number, (story, rebalance) in enumerate(zip(stories, rebalances, strict=True)):
        if number:
            yield ""
        yield f"Group {rebalance['group']}"
        yield from map(str, story)
    yield from _more(answer)


def _more(answer: Mapping[str, object]) -> Iterator[str]:
    if answer.get("more"):
        yield ""
        yield "Older rebalances exist (--limit, --until)."


def _story(group: str, generation: int | None, answer: Mapping[str, object]) -> Iterator[str]:
    state, members = answer["state"], answer["members"]
    if state is None:
        yield f"Group {group} does not exist any more. This is its history."
    else:
        count = "1 member" if members == 1 else f"{members} members"
        kind = answer.get("protocol_type")
        of_type = f", type {kind}" if kind and kind != "consumer" else ""
        number = "group epoch" if answer.get("group_type") == "consumer" else "generation"
        yield f"Group {group}: {state}, {number} {answer['generation']}, {count}{of_type}"
    waiting = answer["waiting_story"]
    if isinstance(waiting, list) and waiting:
        yield ""
        yield from map(str, waiting)
    verdicts = answer["verdicts"]
    if isinstance(verdicts, list) and verdicts:
        yield ""
        yield from map(str, verdicts)
        yield f"The remedy: {shell_words(['rollcall', 'verdicts'], group)}"
    stories = answer["stories"]
    assert isinstance(stories, list)
    for story in stories:
        yield ""
        yield from map(str, story)
    if not stories:
        yield ""
        wanted = "" if generation is None else f" that led to generation {generation}"
        yield f"The history has no rebalance{wanted}."


@click.command(
    name="history",
    epilog="\b\nExamples:\n"
    "  rollcall history billing\n"
    "  rollcall history billing --offsets          # who moved my offsets?\n"
    "  rollcall history --since 02:05 --until 02:15    # what happened at 02:10, in any group?\n"
    "  rollcall history billing --json --limit 1000\n",
)
@click.argument("group", required=False)
@click.option(
    "--offsets", is_flag=True, help="Only events that moved offsets, excluding members' commits."
)
@_span_options
@click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    default=100,
    show_default=True,
    help="Maximum number of events to show.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, newest first, for programs.")
@admin_option
def history(
    *,
    group: str | None,
    offsets: bool,
    since: int | None,
    until: int | None,
    limit: int,
    as_json: bool,
    admin: str,
) -> None:
    """List the events of a group, newest last: members, generations, offsets.

    Without GROUP: the events of all groups.
    """
    query = _query(group, limit, since, until)
    if offsets:
        query["offsets"] = "true"
    answer = ask_admin(admin, "/api/history", query, _EVENTS)
    events = answer["events"]
    assert isinstance(events, list)
    if as_json:
        click.echo(json.dumps(events, indent=2))
        return
    if not events:
        click.echo("The history has no such events.")
    elif offsets:
        click.echo(_offsets(events, with_group=group is None))
    else:
        say(_line(event, with_group=group is None) for event in reversed(events))
    if answer.get("more"):
        click.echo(f"These are the last {len(events)} events. Older ones exist (--limit, --until).")


def _line(event: Mapping[str, object], *, with_group: bool) -> str:
    """One event: time, type and text."""
    group = f"{event['group_id']}  " if with_group else ""
    return f"{event['at']}  {group}{event['type']}: {event['text']}"


def _offsets(events: list[dict[str, object]], *, with_group: bool) -> str:
    """One row per partition, newest last."""
    rows = []
    for event in reversed(events):
        client_info = event.get("asker")
        client, host = ("", "")
        if isinstance(client_info, dict):
            client, host = str(client_info["client_id"]), str(client_info["host"]).lstrip("/")
        by = cell(event.get("by", event["type"]))
        if event.get("commits"):
            by += f" ({event['commits']} times)"
        changes = event.get("changes")
        for change in changes if isinstance(changes, list) else ():
            place = (str(change["topic"]), str(change["partition"]))
            moved = (cell(change["old"]), cell(change["new"]))
            group = (cell(event["group_id"]),) if with_group else ()
            rows.append((str(event["at"]), *group, by, *place, *moved, cell(client), cell(host)))
    columns = ("AT", *(["GROUP"] * with_group), "BY", "TOPIC", "PARTITION", "OLD", "NEW")
    return table((*columns, "CLIENT-ID", "HOST"), rows)
