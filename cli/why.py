"""`rollcall why` and `rollcall history`: why did a group rebalance, and what happened to it?

Both ask the admin port of a running daemon (console/history_api.py), which has the words too, so
that the console tells the same story.
"""

import json
from collections.abc import Iterator, Mapping

import click

from cli.admin import Expected, admin_option, ask_admin
from cli.tables import cell, say, table

_REBALANCES: Expected = {"group": str, "rebalances": list, "stories": list, "verdicts": list}
_STORIES = 5
_WORDS_MAX = 160


@click.command(
    name="why",
    epilog="\b\nExamples:\n"
    "  rollcall why billing\n"
    "  rollcall why billing --generation 42\n"
    "  rollcall why billing --json | jq '.[0].cause'\n",
)
@click.argument("group")
@click.option("--generation", type=click.IntRange(0), help="Only what led to this generation.")
@click.option(
    "--limit", type=click.IntRange(1, 1_000), help="Rebalances that are told. [5; JSON: 20]"
)
@click.option("--json", "as_json", is_flag=True, help="As JSON, newest first, for programs.")
@admin_option
def why(
    *, group: str, generation: int | None, limit: int | None, as_json: bool, admin: str
) -> None:
    """Tell why a group rebalanced: who began it, who was waited for, and what it cost.

    Of a group that waits at this moment: for whom, until when, and what would end it.
    """
    query: dict[str, str | int] = {"group": group, "limit": limit or (20 if as_json else _STORIES)}
    if generation is not None:
        query["generation"] = generation
    answer = ask_admin(admin, "/api/rebalances", query, _REBALANCES)
    if as_json:
        click.echo(json.dumps(answer["rebalances"], indent=2))
    else:
        say(_story(group, generation, answer))


def _story(group: str, generation: int | None, answer: Mapping[str, object]) -> Iterator[str]:
    state, members = answer["state"], answer["members"]
    if state is None:
        yield f"Group {group} is gone; this is remembered of it."
    else:
        count = "1 member" if members == 1 else f"{members} members"
        yield f"Group {group}: {state}, generation {answer['generation']}, {count}"
    waiting = answer["waiting_story"]
    if isinstance(waiting, list) and waiting:
        yield ""
        yield from map(str, waiting)
    verdicts = answer["verdicts"]
    if isinstance(verdicts, list) and verdicts:
        yield ""
        yield from map(str, verdicts)
        yield f"The remedy: rollcall verdicts {group}"
    stories = answer["stories"]
    assert isinstance(stories, list)
    for story in stories:
        yield ""
        yield from map(str, story)
    if not stories:
        yield ""
        wanted = "" if generation is None else f" that led to generation {generation}"
        yield f"No rebalance{wanted} is remembered."


@click.command(
    name="history",
    epilog="\b\nExamples:\n"
    "  rollcall history billing\n"
    "  rollcall history billing --offsets        # who moved my offsets?\n"
    "  rollcall history billing --json --limit 1000\n",
)
@click.argument("group")
@click.option("--offsets", is_flag=True, help="Only what moved offsets, but members' commits.")
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, help="Events."
)
@click.option("--json", "as_json", is_flag=True, help="As JSON, newest first, for programs.")
@admin_option
def history(*, group: str, offsets: bool, limit: int, as_json: bool, admin: str) -> None:
    """List what happened to a group, the newest last: members, generations, offsets."""
    query: dict[str, str | int] = {"group": group, "limit": limit}
    if offsets:
        query["offsets"] = "true"
    answer = ask_admin(admin, "/api/history", query, {"group": str, "events": list})
    events = answer["events"]
    assert isinstance(events, list)
    if as_json:
        click.echo(json.dumps(events, indent=2))
    elif not events:
        click.echo("Nothing is remembered.")
    elif offsets:
        click.echo(_offsets(events))
    else:
        say(map(_line, reversed(events)))


def _line(event: Mapping[str, object]) -> str:
    """When, what, and its facts, as far as they fit."""
    facts = " ".join(
        f"{key}={_short(fact)}"
        for key, fact in event.items()
        if key not in ("at", "at_ms", "type", "offset", "group_id") and fact not in (None, "", [])
    )
    if len(facts) > _WORDS_MAX:
        facts = facts[:_WORDS_MAX] + "..."
    return f"{event['at']}  {event['type']}  {facts}"


def _short(fact: object) -> str:
    if isinstance(fact, dict) and "member_id" in fact:
        return str(fact["group_instance_id"] or fact["member_id"])
    if isinstance(fact, dict) and "cause" in fact:
        return f"{fact['cause']} {fact['generation_before']}->{fact['generation_after']}"
    return json.dumps(fact) if isinstance(fact, dict | list) else str(fact)


def _offsets(events: list[dict[str, object]]) -> str:
    """A row for each partition, the newest last."""
    rows = []
    for event in reversed(events):
        asker = event.get("asker")
        client, host = ("", "")
        if isinstance(asker, dict):
            client, host = str(asker["client_id"]), str(asker["host"])
        by = cell(event.get("by", event["type"]))
        if event.get("commits"):
            by += f" ({event['commits']} times)"
        changes = event.get("changes")
        for change in changes if isinstance(changes, list) else ():
            place = (str(change["topic"]), str(change["partition"]))
            moved = (cell(change["old"]), cell(change["new"]))
            rows.append((str(event["at"]), by, *place, *moved, cell(client), cell(host)))
    return table(("AT", "BY", "TOPIC", "PARTITION", "OLD", "NEW", "CLIENT-ID", "HOST"), rows)
