"""`rollcall offsets import`: take groups and offsets over from a Kafka's files, CSV or JSON.

Reads the options; transfer/importing.py does the work. Exit code 0: done; 1: refused because of
what was found; 2: usage, or the source is not there or cannot be read.
"""

import platform
from pathlib import Path

import click

from cli.clock import now_ms
from cli.offsets_options import (
    check_usage,
    config_of,
    in_one_line,
    show,
    transfer_options,
)


@click.command(
    name="import",
    epilog="\b\nExamples:\n"
    "  rollcall offsets import --from /var/lib/kafka/data --dry-run\n"
    "  rollcall offsets import --from /var/lib/kafka/data --data-dir /var/lib/rollcall\n"
    "  rollcall offsets import --from offsets.csv --bootstrap 127.0.0.1:9092\n"
    "\n"
    "All or nothing: after a crash in the middle the data directory is as it was. The daemon must "
    "not run on it; its next start finds the groups.",
)
@click.option(
    "--from",
    "sources",
    metavar="PATH",
    type=click.Path(path_type=Path),
    multiple=True,
    required=True,
    help="A log directory of a stopped Kafka or a copy of it (may be repeated: all that a broker "
    "or a cluster has), a data directory of Rollcall, a .csv or a .json file.",
)
@click.option("--for-group", metavar="GROUP", help="Whose offsets a CSV file of three columns has.")
@click.option("--skip-damaged", is_flag=True, help="Import what can be read, and list what cannot.")
@click.option(
    "--keep-topic-ids",
    is_flag=True,
    help="Also of topics that the target does not have: right only if the same topics will be "
    "there again, for an offset of another id is not shown to clients that ask by id.",
)
@click.option("--json", "as_json", is_flag=True, help="The report as JSON.")
@transfer_options
def offsets_import(
    *,
    sources: tuple[Path, ...],
    for_group: str | None,
    skip_damaged: bool,
    keep_topic_ids: bool,
    as_json: bool,
    data_dir: str | None,
    bootstrap: str | None,
    config_file: Path | None,
    pairs: tuple[str, ...],
    wanted: tuple[str, ...],
    excluded: tuple[str, ...],
    dry_run: bool,
    merge: bool,
    overwrite: bool,
) -> int:
    """Import groups and their offsets into a data directory, or into a cluster that runs."""
    check_usage(bootstrap, data_dir, merge=merge, overwrite=overwrite)
    config = config_of(data_dir, config_file, pairs)
    with in_one_line():
        # Here, and not above: no other command should wait for these imports.
        from transfer.importing import Import, run_import
        from transfer.plan import Rule
        from transfer.selection import Selection

        report = run_import(
            Import(
                sources=sources,
                config=config,
                bootstrap=bootstrap,
                rule=Rule.MERGE if merge else Rule.OVERWRITE if overwrite else Rule.REFUSE,
                selection=Selection(wanted, excluded),
                for_group=for_group,
                skip_damaged=skip_damaged,
                keep_topic_ids=keep_topic_ids,
                dry_run=dry_run,
                now_ms=now_ms(),
                host=platform.node(),
            )
        )
    show(report, machine=as_json)
    return report.exit_code
