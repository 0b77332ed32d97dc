"""`rollcall group`: the groups of any Kafka cluster, in the words of kafka-consumer-groups.

Kafka's counterpart: `ConsumerGroupCommand`.
"""

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from cli.cluster_options import cluster_options, open_cluster, print_json
from cli.groups import Commands
from cli.tables import cell, say, shell_words, table
from protocol.java_text import LONG_MAX, LONG_MIN

if TYPE_CHECKING:
    from client.cluster import Cluster
    from client.groups import ClusterGroup, DescribedMember
    from client.log_offsets import Place
    from client.offset_reset import ResetPlan, ResetTarget

CSV_BYTES_MAX: Final = 64 << 20
"""Of a file of offsets: millions of rows. A larger one was named by mistake."""


class GroupCommands(Commands):
    opens_logs = False


@click.group(cls=GroupCommands)
def group() -> None:
    """List, describe, reset and delete groups of a running cluster, Rollcall or Kafka."""


@group.command(name="list")
@cluster_options
@click.option("--state", "states", metavar="STATE,...", help="Only groups in these states.")
@click.option("--type", "types", metavar="TYPE,...", help="Only classic, or only consumer groups.")
def list_group_command(
    *,
    bootstrap: str | None,
    command_config: Path | None,
    as_json: bool,
    states: str | None,
    types: str | None,
) -> None:
    """All groups: type, state and number of members."""
    from client.groups import read_group_listings

    with open_cluster(bootstrap, command_config) as cluster:
        found = read_group_listings(cluster)
    wanted_states, wanted_types = _words(states), _words(types)
    found = [
        each
        for each in found
        if (not wanted_states or each.state.lower() in wanted_states)
        and (not wanted_types or each.type.lower() in wanted_types)
    ]
    if as_json:
        print_json(
            [
                {"group": g.group, "type": g.type, "state": g.state, "members": g.members}
                for g in found
            ]
        )
        return
    rows = [(g.group, g.type, g.state, cell(g.members)) for g in found]
    click.echo(table(("GROUP", "TYPE", "STATE", "#MEMBERS"), rows))


def _words(text: str | None) -> set[str]:
    return {word.strip().lower() for word in (text or "").split(",")} - {""}


@group.command(name="describe")
@click.argument("name", metavar="GROUP")
@cluster_options
def describe_group_command(
    *, name: str, bootstrap: str | None, command_config: Path | None, as_json: bool
) -> None:
    """One group: state, members, and for each partition where it is."""
    from client.groups import group_offsets, read_group

    with open_cluster(bootstrap, command_config) as cluster:
        found = read_group(cluster, name)
        offsets = group_offsets(cluster, found)
    if as_json:
        rows = [
            {
                "topic": row.topic,
                "partition": row.partition,
                "current_offset": row.current_offset,
                "log_end_offset": row.log_end_offset,
                "lag": row.lag,
                "member_id": row.member_id,
                "client_id": row.client_id,
                "host": row.host,
            }
            for row in offsets
        ]
        print_json({**_head_json(found), "offsets": rows})
        return
    say(_head(found))
    header = ("TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID")
    click.echo()
    click.echo(
        table(
            (*header, "HOST", "CLIENT-ID"),
            [
                (
                    row.topic,
                    str(row.partition),
                    cell(row.current_offset),
                    cell(row.log_end_offset),
                    cell(row.lag),
                    cell(row.member_id),
                    cell(row.host),
                    cell(row.client_id),
                )
                for row in offsets
            ],
        )
    )


@group.command(name="members")
@click.argument("name", metavar="GROUP")
@cluster_options
def members_command(
    *, name: str, bootstrap: str | None, command_config: Path | None, as_json: bool
) -> None:
    """The members of one group, and what each owns."""
    from client.groups import read_group

    with open_cluster(bootstrap, command_config) as cluster:
        found = read_group(cluster, name)
    if as_json:
        print_json(_head_json(found))
        return
    say(_head(found))
    click.echo()
    header = ("CONSUMER-ID", "INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS", "ASSIGNMENT")
    rows = [
        (
            member.member_id,
            cell(member.instance_id),
            member.host,
            member.client_id,
            cell(None if member.assignment is None else len(list(member.places))),
            cell(_assignment(member)),
        )
        for member in found.members
    ]
    click.echo(table(header, rows))


def _head(found: "ClusterGroup") -> list[str]:
    members = len(found.members)
    parts = [
        f"Group {found.group}: {found.type}, {found.state}",
        f"{members} member{'' if members == 1 else 's'}",
        f"coordinator {found.coordinator}",
    ]
    if found.assignor:
        parts.append(f"assignor {found.assignor}")
    if found.epoch is not None:
        parts.append(f"group epoch {found.epoch}")
    return [", ".join(parts)]


def _head_json(found: "ClusterGroup") -> dict[str, object]:
    members = [
        {
            "member_id": member.member_id,
            "instance_id": member.instance_id,
            "client_id": member.client_id,
            "host": member.host,
            "assignment": None
            if member.assignment is None
            else [
                {"topic": topic, "partitions": list(partitions)}
                for topic, partitions in sorted(member.assignment.items())
            ],
        }
        for member in found.members
    ]
    return {
        "group": found.group,
        "type": found.type,
        "state": found.state,
        "coordinator": found.coordinator,
        "assignor": found.assignor or None,
        "epoch": found.epoch,
        "members": members,
    }


def _assignment(member: "DescribedMember") -> str:
    """As kafka-consumer-groups --verbose: orders(0,1)."""
    return ", ".join(
        f"{topic}({','.join(map(str, partitions))})"
        for topic, partitions in sorted((member.assignment or {}).items())
    )


_LONG = click.IntRange(LONG_MIN, LONG_MAX)


@group.command(name="reset")
@click.argument("name", metavar="GROUP")
@cluster_options
@click.option(
    "--topic",
    "topics",
    metavar="T[:P,P...]",
    multiple=True,
    help="All partitions of a topic, or these of it. May be repeated.",
)
@click.option("--all-topics", is_flag=True, help="All partitions that the group has committed.")
@click.option("--to-earliest", is_flag=True, help="To the start of the log.")
@click.option("--to-latest", is_flag=True, help="To the end of the log.")
@click.option("--to-current", is_flag=True, help="To the committed offset; to the end without one.")
@click.option("--to-offset", type=click.IntRange(0, LONG_MAX), metavar="N", help="To offset N.")
@click.option("--shift-by", type=_LONG, metavar="N", help="N forward; back if N is negative.")
@click.option(
    "--to-datetime",
    metavar="TIME",
    help="To the first record of this time or later: YYYY-MM-DDTHH:MM:SS.sss, UTC without a zone.",
)
@click.option("--by-duration", metavar="DURATION", help="As much before now: PnDTnHnMnS.")
@click.option(
    "--from-file",
    metavar="FILE",
    help="Rows topic,partition,offset; `-` is the standard input. An offset `-` removes it.",
)
@click.option("--execute", is_flag=True, help="Do it. Without this only the plan is shown.")
@click.option("--dry-run", is_flag=True, help="Only show the plan, which is the default.")
def reset_command(
    *,
    name: str,
    bootstrap: str | None,
    command_config: Path | None,
    as_json: bool,
    topics: tuple[str, ...],
    all_topics: bool,
    to_earliest: bool,
    to_latest: bool,
    to_current: bool,
    to_offset: int | None,
    shift_by: int | None,
    to_datetime: str | None,
    by_duration: str | None,
    from_file: str | None,
    execute: bool,
    dry_run: bool,
) -> None:
    """Move the committed offsets of a group that has no members.

    Shows the old and the new offsets, and changes nothing without --execute. A group with members
    is refused with exit code 1.
    """
    from client.offset_reset import ResetTarget

    if execute and dry_run:
        raise click.UsageError("--execute and --dry-run cannot be combined")
    given: dict[ResetTarget, object] = {
        ResetTarget.EARLIEST: to_earliest or None,
        ResetTarget.LATEST: to_latest or None,
        ResetTarget.CURRENT: to_current or None,
        ResetTarget.OFFSET: to_offset,
        ResetTarget.SHIFT: shift_by,
        ResetTarget.FILE: from_file,
    }
    chosen = [target for target, value in given.items() if value is not None]
    chosen += [ResetTarget.TIME for value in (to_datetime, by_duration) if value is not None]
    if len(chosen) != 1:
        names = "--to-earliest, --to-latest, --to-current, --to-offset, --shift-by, --to-datetime, "
        raise click.UsageError(f"give one of {names}--by-duration, --from-file")
    (target,) = chosen
    if topics and all_topics:
        raise click.UsageError("--topic and --all-topics cannot be combined")
    if not topics and not all_topics and target is not ResetTarget.FILE:
        raise click.UsageError("give the partitions: --topic T, --topic T:0,1 or --all-topics")
    value = _value(
        name,
        to_offset if to_offset is not None else shift_by,
        to_datetime,
        by_duration,
        from_file,
    )
    with open_cluster(bootstrap, command_config) as cluster:
        plan = _plan(cluster, name, topics, target, value, all_topics=all_topics)
        if execute:
            from client.offset_reset import reset_offsets

            reset_offsets(cluster, plan)
    address = _address_words(bootstrap, command_config)
    if as_json:
        print_json(_plan_json(plan, address, executed=execute))
    else:
        _show_plan(plan, address, executed=execute)


def _value(
    name: str,
    number: int | None,
    to_datetime: str | None,
    by_duration: str | None,
    from_file: str | None,
) -> "int | Mapping[Place, int | None]":
    from client.offset_reset import parse_csv, parse_datetime, parse_duration

    if to_datetime is not None:
        return parse_datetime(to_datetime)
    if by_duration is not None:
        return max(round(datetime.now(UTC).timestamp() * 1000) - parse_duration(by_duration), 0)
    if from_file is not None:
        return parse_csv(_text_of(from_file), name)
    return number or 0


def _text_of(location: str) -> str:
    from seams.operator_error import WrongInput

    if location == "-":
        content = sys.stdin.buffer.read(CSV_BYTES_MAX + 1)
    else:
        with Path(location).open("rb") as file:
            content = file.read(CSV_BYTES_MAX + 1)
    if len(content) > CSV_BYTES_MAX:
        raise WrongInput(f"{location}: larger than {CSV_BYTES_MAX} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise WrongInput(f"{location} is not UTF-8") from None


def _plan(
    cluster: "Cluster",
    name: str,
    topics: Sequence[str],
    target: "ResetTarget",
    value: "int | Mapping[Place, int | None]",
    *,
    all_topics: bool,
) -> "ResetPlan":
    from client.groups import committed_offsets
    from client.offset_reset import BadReset, check_inactive, places_of, plan_reset

    check_inactive(cluster, name)
    if all_topics:
        places = sorted(committed_offsets(cluster, name))
        if not places:
            raise BadReset(f"the group {name!r} has no committed offsets: name topics with --topic")
    else:
        places = places_of(cluster, topics)
    if not isinstance(value, int):
        places = sorted(value.keys() & set(places)) if places else sorted(value)
    return plan_reset(cluster, name, places, target, value)


def _address_words(bootstrap: str | None, command_config: Path | None) -> list[str]:
    words: list[str] = []
    if bootstrap:
        words += ["--bootstrap", bootstrap]
    if command_config is not None:
        words += ["--command-config", str(command_config)]
    return words


def _undo_command(plan: "ResetPlan", address: Sequence[str]) -> str:
    options = [*address, "--from-file", "-", "--execute"]
    return shell_words(["rollcall", "group", "reset"], plan.group, options)


def _plan_json(plan: "ResetPlan", address: Sequence[str], *, executed: bool) -> dict[str, object]:
    from client.offset_reset import undo_csv

    return {
        "group": plan.group,
        "executed": executed,
        "offsets": [
            {
                "topic": move.topic,
                "partition": move.partition,
                "old_offset": move.old_offset,
                "new_offset": move.new_offset,
            }
            for move in plan.moves
        ],
        "warnings": list(plan.warnings),
        "undo": {"command": _undo_command(plan, address), "stdin": undo_csv(plan)},
    }


def _show_plan(plan: "ResetPlan", address: Sequence[str], *, executed: bool) -> None:
    from client.offset_reset import undo_csv

    for warning in plan.warnings:
        click.echo(f"rollcall: warning: {warning}", err=True)
    header = ("GROUP", "TOPIC", "PARTITION", "OLD-OFFSET", "NEW-OFFSET")
    rows = [
        (plan.group, m.topic, str(m.partition), cell(m.old_offset), cell(m.new_offset))
        for m in plan.moves
    ]
    click.echo(table(header, rows))
    click.echo()
    if not executed:
        click.echo("This was a dry run: nothing was changed. Add --execute to do it.")
        return
    click.echo("Done. To undo it:")
    click.echo(f"  {_undo_command(plan, address)} <<'END'")
    click.echo(undo_csv(plan) + "END")


@group.command(name="delete")
@click.argument("names", metavar="GROUP...", nargs=-1, required=True)
@cluster_options
def delete_group_command(
    *, names: tuple[str, ...], bootstrap: str | None, command_config: Path | None, as_json: bool
) -> None:
    """Delete groups without members, with their offsets.

    A group with members is refused with exit code 1.
    """
    from client.groups import delete_group

    deleted: list[str] = []
    with open_cluster(bootstrap, command_config) as cluster:
        try:
            for name in names:
                delete_group(cluster, name)
                deleted.append(name)
        finally:
            if as_json:
                print_json({"deleted": deleted})
            elif deleted:
                say(f"Deleted group {name}." for name in deleted)
