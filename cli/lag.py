"""`rollcall lag`: how far behind is a group, in records and in seconds, and will it catch up?

Queries the admin port of a running daemon (console/lag_api.py). With a group: a row for each
partition, with the columns of `kafka-consumer-groups --describe` and further ones. Without a group:
all groups, the worst first, those that never committed last. --json prints the daemon's answer.
"""

import json
from collections.abc import Mapping, Sequence
from types import NoneType

import click

from cli.admin import Expected, admin_option, ask_admin
from cli.tables import cell, duration_cell, per_second, table
from protocol.printable import printable

_PARTITION_COLUMNS = (
    *("TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "BEHIND", "CONSUMED"),
    *("PRODUCED", "CATCH-UP", "STATUS", "CONSUMER-ID", "HOST", "CLIENT-ID"),
)
_ALL: Expected = {"at_ms": (int, NoneType), "groups": list}
_GROUP: Expected = {"group": str, "state": str, "verdict": str, "partitions": list}
_GROUP_COLUMNS = (
    *("GROUP", "STATE", "MEMBERS", "PARTITIONS", "LAG", "MAX-LAG", "BEHIND", "STATUS"),
)


@click.command(
    name="lag",
    epilog="\b\nExamples:\n"
    "  rollcall lag\n"
    "  rollcall lag billing\n"
    "  rollcall lag billing --json | jq .lag\n"
    "\n"
    "BEHIND is the age of the oldest record not consumed (~: estimated). CATCH-UP is the time to "
    "catch up at current rates, `never` if the group falls behind. STATUS is that of the "
    "lag. docs/lag.md has the rules.",
)
@click.argument("group", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
@click.option(
    "--limit",
    type=click.IntRange(1, 100_000),
    default=1_000,
    show_default=True,
    help="Maximum number of groups to show.",
)
@admin_option
def show_lag(*, group: str | None, as_json: bool, limit: int, admin: str) -> None:
    """Show how far behind a group is. Without GROUP: all groups, the worst first."""
    query: dict[str, str | int] = {"limit": limit} if group is None else {"group": group}
    lag = ask_admin(admin, "/api/lag", query, _ALL if group is None else _GROUP)
    if as_json:
        click.echo(json.dumps(lag, indent=2))
    elif group is None:
        click.echo(_groups_text(lag))
    else:
        click.echo(_group_text(group, lag))


def _groups_text(lag: Mapping[str, object]) -> str:
    groups = _maps(lag.get("groups"))
    if not groups:
        if lag.get("at_ms") is None:
            return "There are no groups, and no lag was sampled yet: the daemon has just started."
        return "There are no groups."
    with_type = any(entry.get("protocol_type") not in (None, "consumer") for entry in groups)
    rows = [
        (
            cell(entry["group"]),
            *([cell(entry.get("protocol_type"))] * with_type),
            cell(entry["state"]),
            cell(entry["members"]),
            cell(entry["partitions"]),
            cell(entry["lag"]),
            cell(entry["lag_max"]),
            duration_cell(entry["seconds_max"]),
            cell(entry["verdict"]),
        )
        for entry in groups
    ]
    first, *others = _GROUP_COLUMNS
    shown = table((first, *(["TYPE"] * with_type), *others), rows)
    total = lag.get("groups_total")
    if isinstance(total, int) and total > len(groups):
        shown += f"\nand {total - len(groups)} more groups (--limit)"
    return shown


def _group_text(group: str, lag: Mapping[str, object]) -> str:
    partitions = _maps(lag.get("partitions"))
    head = f"Group {printable(group)}: {lag['state']}, status {lag['verdict']}"
    kind = lag.get("protocol_type")
    if not partitions and kind not in (None, "consumer"):
        kind = printable(str(kind))
        return f"Group {printable(group)}: {lag['state']}; a group of type {kind} has no offsets."
    if not partitions:
        return f"{head}; it has committed nothing and owns no partitions."
    head += f"; {_in_words(lag, partitions)}"
    lines = [head, "", table(_PARTITION_COLUMNS, [_row(entry) for entry in partitions])]
    notes = [
        f"{entry['topic']}-{entry['partition']} is assigned to several members: {_owners(entry)}"
        for entry in partitions
        if entry.get("other_members")
    ]
    notes += [
        f"{entry['topic']}-{entry['partition']}: {entry['note_words']}"
        for entry in partitions
        if entry["note_words"] and entry["note"] != "no_commit"
    ]
    return "\n".join([*lines, "", *map(printable, notes)]) if notes else "\n".join(lines)


def _owners(entry: Mapping[str, object]) -> str:
    owners = [*_maps([entry["member"]]), *_maps(entry["other_members"])]
    return ", ".join(str(owner["member_id"]) for owner in owners)


def _row(entry: Mapping[str, object]) -> tuple[str, ...]:
    member = entry["member"]
    owner = member if isinstance(member, dict) else {}
    behind = duration_cell(entry["seconds"])
    if entry["seconds"] is not None and not entry["seconds_exact"]:
        behind = f"~{behind}"
    return (
        cell(entry["topic"]),
        cell(entry["partition"]),
        cell(entry["committed_offset"]),
        cell(entry["log_end_offset"]),
        cell(entry["lag"]),
        behind,
        per_second(entry["consumed_per_second"]),
        per_second(entry["produced_per_second"]),
        _catching_up(entry),
        cell(entry["verdict"]),
        cell(owner.get("member_id")),
        cell(owner.get("client_host")),
        cell(owner.get("client_id")),
    )


def _catching_up(entry: Mapping[str, object]) -> str:
    return (
        "never"
        if entry.get("outlook") == "falls_behind"
        else duration_cell(entry["catch_up_seconds"])
    )


def _in_words(lag: Mapping[str, object], partitions: Sequence[Mapping[str, object]]) -> str:
    lost = sum(entry["note"] == "beyond_end" for entry in partitions)
    beyond = f"on {_partitions(lost)} it has committed beyond the end of the log"
    silent = [entry for entry in partitions if entry["note"] == "no_commit"]
    waiting = sum(map(_records, silent))
    unread = (
        f"on {_partitions(len(silent))} it has committed nothing yet, and {waiting} records wait"
    )
    missing = sum(entry["note"] == "no_partition" for entry in partitions)
    absent = f"{_partitions(missing)} with a commit {'does' if missing == 1 else 'do'} not exist"
    facts = [beyond] * bool(lost) + [unread] * bool(waiting) + [absent] * bool(missing)
    if lag["lag"] is None:
        return "; ".join(facts) or "it has committed nothing yet"
    if lag["lag"] == 0:
        return "; ".join(facts) or "it has read everything"
    behind = (
        f"{lag['lag']} records behind, the oldest of them {duration_cell(lag['seconds_max'])} old"
    )
    return "; ".join([behind, _catch_up_text(lag, len(partitions)), *facts])


def _catch_up_text(lag: Mapping[str, object], partitions: int) -> str:
    seconds = duration_cell(lag["catch_up_seconds"])
    words = {
        "keeps_up": "it keeps up",
        "catches_up": f"it catches up in {seconds}",
        "falls_behind": "at current rates it will never catch up",
        "nobody_reads": "it has no members",
    }.get(str(lag.get("outlook")), "the time to catch up is not known yet")
    falling = lag.get("partitions_falling_behind")
    if isinstance(falling, int) and 0 < falling < partitions:
        words += f" ({_partitions(falling)} of {partitions} fall{'s' * (falling == 1)} behind)"
    return words


def _records(entry: Mapping[str, object]) -> int:
    start, end = entry["log_start_offset"], entry["log_end_offset"]
    return end - start if isinstance(start, int) and isinstance(end, int) else 0


def _partitions(count: int) -> str:
    return "1 partition" if count == 1 else f"{count} partitions"


def _maps(listed: object) -> list[dict[str, object]]:
    return (
        [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    )
