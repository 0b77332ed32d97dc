"""`rollcall group reset`: move committed offsets, after a plan, with a command that undoes it.

Kafka's counterpart: `ConsumerGroupCommand --reset-offsets`.
"""

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from cli.cluster_options import cluster_options, open_cluster, print_json
from cli.tables import cell, shell_words, table
from protocol.java_text import LONG_MAX, LONG_MIN

if TYPE_CHECKING:
    from client.cluster import Cluster
    from client.log_offsets import Place
    from client.offset_reset import ResetPlan, ResetTarget

CSV_BYTES_MAX: Final = 64 << 20
"""Of a file of offsets: millions of rows. A larger one was named by mistake."""


_LONG = click.IntRange(LONG_MIN, LONG_MAX)


@click.command(name="reset")
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
