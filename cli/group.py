"""`rollcall group`: the groups of any Kafka cluster, in the words of kafka-consumer-groups.

Kafka's counterpart: `ConsumerGroupCommand`.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.cluster_options import cluster_options, open_cluster, print_json
from cli.group_reset import reset_command
from cli.groups import Commands
from cli.tables import cell, say, table

if TYPE_CHECKING:
    from client.groups import ClusterGroup, DescribedMember


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


group.add_command(reset_command)
