"""`rollcall log dump`: the records of log segments as JSON.

Reads the options; logtools/dump.py does the rest. Objects go to stdout, damage to stderr.
"""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from cli.clock import InstantParam
from cli.exits import PROBLEMS
from cli.log_options import (
    log_topic_option,
    logs_at,
    partition_option,
    paths_argument,
    reading,
)
from protocol import java_text

if TYPE_CHECKING:
    from logtools.walk import DamagedBytes


def _type_names() -> list[str]:
    from logtools.group_records import RECORD_TYPES
    from logtools.record_view import CONTROL_RECORD, PLAIN_RECORD, UNKNOWN_RECORD

    return [
        *(schema.name for schema in RECORD_TYPES.values()),
        UNKNOWN_RECORD,
        CONTROL_RECORD,
        PLAIN_RECORD,
    ]


def _known_types(
    _c: click.Context, parameter: click.Parameter, types: tuple[str, ...]
) -> frozenset[str]:
    """Names or numbers of record types, in lower case."""
    names = _type_names() if types else []
    for text in types:
        if java_text.parse_integer(text, 0) is None and text.lower() not in map(str.lower, names):
            raise click.BadParameter(
                f"{text!r} is not a record type: use a number, or one of {', '.join(names)}",
                param=parameter,
            )
    return frozenset(map(str.lower, types))


def _complete_type(_c: click.Context, _p: click.Parameter, incomplete: str) -> list[CompletionItem]:
    start = incomplete.lower()
    return [CompletionItem(name) for name in _type_names() if name.lower().startswith(start)]


@click.command(
    name="dump",
    epilog="\b\nExamples:\n"
    "  rollcall log dump rollcall-data --group billing\n"
    "  rollcall log dump rollcall-data --type GroupMetadata --since 1h\n"
    "  rollcall log dump rollcall-data --topic orders:3 | jq -r .value.data.offset\n"
    "  rollcall log dump /var/kafka/__consumer_offsets-12 --batches --no-records\n"
    "\n"
    "Exit code 1 means that some bytes could not be read; stderr says which.",
)
@paths_argument
@click.option("--group", "groups", metavar="ID", multiple=True, help="Only this group's records.")
@click.option(
    "--topic",
    "topics",
    metavar="TOPIC[:N]",
    multiple=True,
    help="Only commits for this topic, or for one partition of it.",
)
@click.option(
    "--type",
    "kinds",
    metavar="TYPE",
    callback=_known_types,
    shell_complete=_complete_type,
    multiple=True,
    help="Only records of this type: OffsetCommit, GroupMetadata, ..., Unknown, or a number.",
)
@click.option("--from-offset", type=click.IntRange(min=0), default=0, help="Start at this offset.")
@click.option(
    "--since",
    metavar="TIME",
    type=InstantParam(),
    help="Not before: 2026-11-21T12:00 (UTC), ms, or 2h (ago).",
)
@click.option("--until", metavar="TIME", type=InstantParam(), help="Not after, written as --since.")
@partition_option
@log_topic_option
@click.option("--batches", is_flag=True, help="Add an object for each batch, before its records.")
@click.option(
    "--records/--no-records", default=True, help="Print the records, or only the batches."
)
def log_dump(
    *,
    paths: tuple[Path, ...],
    groups: tuple[str, ...],
    topics: tuple[str, ...],
    kinds: frozenset[str],
    from_offset: int,
    since: int | None,
    until: int | None,
    partitions: tuple[int, ...],
    log_topics: tuple[str, ...],
    batches: bool,
    records: bool,
) -> int:
    """Print the records of log segments as JSON lines.

    PATH is a data directory, a partition's folder or a segment's file, of Rollcall or of a real
    Kafka. Nothing is changed; the daemon may be running. Records of __consumer_offsets
    have the fields that kafka-dump-log prints; a tombstone's value is null, and bytes that cannot
    be decoded are printed in base64.
    """
    from logtools.dump import Wanted, dump

    wanted = Wanted(
        frozenset(groups),
        frozenset(_topic_partition(text) for text in topics),
        kinds,
        from_offset,
        since,
        until,
        with_batches=batches,
        with_records=records,
    )
    damaged = 0

    def on_damage(path: Path, damage: "DamagedBytes") -> None:
        nonlocal damaged
        damaged += 1
        sys.stdout.flush()
        what = f"{damage.size} bytes cannot be read: {damage.reason}"
        click.echo(f"rollcall: {path} at byte {damage.position}: {what}", err=True)

    encode = json.JSONEncoder(separators=(",", ":")).encode
    places = [logs_at(path, log_topics, partitions) for path in paths]
    with reading():
        for place in places:
            for line in dump(place, wanted, on_damage):
                sys.stdout.write(encode(line) + "\n")
        sys.stdout.flush()
    return PROBLEMS if damaged else 0


def _topic_partition(text: str) -> tuple[str, int | None]:
    topic, colon, partition = text.rpartition(":")
    if not colon:
        return text, None
    number = java_text.parse_integer(partition, 0, java_text.INT_MAX)
    if number is None:
        raise click.UsageError(f"--topic {text}: {partition!r} is not a partition")
    return topic, number
