"""`rollcall pipeline as-of`: which offsets did a group have at an instant?

Connects two packages that do not import each other: pipeline/ finds the offsets, transfer/ writes
them for `rollcall offsets import` and `kafka-consumer-groups --reset-offsets --from-file`.
"""

from typing import TYPE_CHECKING, TextIO

import click

from cli.clock import InstantParam
from cli.pipeline_options import cluster_option, pairs, progress, spark_job, spark_options
from cli.tables import table
from seams.text import instant

if TYPE_CHECKING:
    from pipeline.command import OffsetThen


@click.command(
    "as-of",
    epilog="\b\nExamples:\n"
    "  rollcall pipeline as-of --from /data/lake --at 2026-11-20T10:00Z\n"
    "  rollcall pipeline as-of --from /data/lake --at 2026-11-20T10:00Z --group billing "
    "--csv billing.csv\n"
    "  kafka-consumer-groups --bootstrap-server HOST:PORT --group billing --reset-offsets "
    "--from-file billing.csv --execute\n"
    "  rollcall offsets import --from billing.csv --for-group billing --overwrite "
    "--bootstrap HOST:PORT",
)
@click.option(
    "--from",
    "source",
    required=True,
    metavar="WHERE",
    help="A data directory (Rollcall's or Kafka's), kafka://HOST:PORT, or a lake.",
)
@click.option("--at", "at_ms", type=InstantParam(), required=True, help="The instant.")
@click.option("--group", metavar="GROUP", help="Only this group.")
@click.option(
    "--csv",
    "csv_file",
    type=click.File("w", encoding="utf-8", lazy=True, atomic=True),
    help="Write group,topic,partition,offset to this file, in the format of kafka-consumer-groups: "
    "with --group the group column is left out. - is the standard output.",
)
@click.option("--json", "as_json", is_flag=True, help="As JSON, with metadata and times.")
@click.option("--option", "options", multiple=True, metavar="KEY=VALUE", help="As for `run`.")
@cluster_option
@spark_options
def as_of(
    *,
    source: str,
    at_ms: int,
    group: str | None,
    csv_file: TextIO | None,
    as_json: bool,
    options: tuple[str, ...],
    engine: str,
    master: str | None,
    remote: str | None,
    settings: tuple[str, ...],
    cluster: str | None,
) -> None:
    """Print the effective offsets of groups at an instant."""
    given, to_connector = pairs(settings, "--set"), pairs(options, "--option")
    with spark_job():
        from coordinator.group import CommittedOffset
        from pipeline.command import AsOfOrder, carry_out_as_of
        from pipeline.engine_choice import Engine
        from protocol.names import GroupId
        from transfer.contents import Contents
        from transfer.text_files import to_csv, to_json

        order = AsOfOrder(
            source, at_ms, group, master, remote, given, to_connector, Engine(engine), cluster
        )
        found = carry_out_as_of(order, progress())
    contents = Contents()
    for then in found:
        commit = CommittedOffset(
            then.committed_offset, then.leader_epoch, then.metadata, then.committed_at_ms
        )
        offsets = contents.group(GroupId(then.group)).offsets
        offsets[then.topic, then.partition] = (commit, then.committed_at_ms)
    if csv_file is not None:
        csv_file.write(to_csv(contents, with_group=group is None))
    if as_json or csv_file is None:
        # JSON is UTF-8, whatever the terminal's encoding is.
        click.echo(to_json(contents).encode() if as_json else _table(found), nl=not as_json)


def _table(found: "list[OffsetThen]") -> str:
    rows = [
        [
            offset.group,
            offset.topic,
            str(offset.partition),
            str(offset.committed_offset),
            instant(offset.committed_at_ms),
        ]
        for offset in found
    ]
    return table(["GROUP", "TOPIC", "PARTITION", "OFFSET", "COMMITTED"], rows)
