"""`rollcall offsets import`: import groups and offsets from a Kafka's files, CSV or JSON.

Reads the options; transfer/importing.py does the work. Exit code 0: done; 1: refused because of
what was found; 2: usage, or the source is not there or cannot be read.
"""

import platform
from functools import partial
from pathlib import Path

import click

from cli.clock import now_ms
from cli.offsets_options import (
    check_usage,
    client_of,
    data_dir_in_use,
    show,
    transfer_options,
)
from cli.progress import progress_bar
from cli.read_options import read_options


@click.command(
    name="import",
    epilog="\b\nExamples:\n"
    "  rollcall offsets import --from /var/lib/kafka/data --dry-run\n"
    "  rollcall offsets import --from /var/lib/kafka/data --data-dir /var/lib/rollcall\n"
    "  rollcall offsets import --from offsets.csv --bootstrap 127.0.0.1:9092\n"
    "\n"
    "All or nothing: a crash during the import leaves the data directory unchanged. The daemon "
    "must not run on it; it loads the groups at its next start.",
)
@click.option(
    "--from",
    "sources",
    metavar="PATH",
    type=click.Path(path_type=Path),
    multiple=True,
    required=True,
    help="A log directory of a stopped Kafka or a copy of it (repeat it for all directories of a "
    "broker or a cluster), a Rollcall data directory, a .csv or a .json file.",
)
@click.option("--for-group", metavar="GROUP", help="The group of a CSV file with three columns.")
@click.option("--skip-damaged", is_flag=True, help="Import what can be read, and list the rest.")
@click.option(
    "--keep-topic-ids",
    is_flag=True,
    help="Keep ids of topics that the target does not have. Use it only if the same topics will "
    "exist again: clients that ask by topic id do not see an offset with another id.",
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
    command_config: Path | None,
    config_file: Path | None,
    pairs: tuple[str, ...],
    wanted: tuple[str, ...],
    excluded: tuple[str, ...],
    dry_run: bool,
    merge: bool,
    overwrite: bool,
) -> int:
    """Import groups and their offsets into a data directory, or into a running cluster."""
    check_usage(bootstrap, command_config, data_dir, merge=merge, overwrite=overwrite)
    config = read_options(data_dir=data_dir, config_file=config_file, pairs=pairs)
    part = [0.0]
    with data_dir_in_use(), progress_bar("Importing", lambda: part[0]):
        # Here, and not above: no other command should wait for these imports.
        from transfer.importing import Import, run_import
        from transfer.plan import Rule
        from transfer.selection import Selection

        report = run_import(
            Import(
                sources=sources,
                config=config,
                bootstrap=bootstrap,
                client=client_of(command_config),
                rule=Rule.MERGE if merge else Rule.OVERWRITE if overwrite else Rule.REFUSE,
                selection=Selection(wanted, excluded),
                for_group=for_group,
                skip_damaged=skip_damaged,
                keep_topic_ids=keep_topic_ids,
                dry_run=dry_run,
                now_ms=now_ms(),
                host=platform.node(),
                progressed=partial(part.__setitem__, 0),
            )
        )
    show(report, machine=as_json)
    return report.exit_code
