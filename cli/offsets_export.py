"""`rollcall offsets export`: export groups and offsets to a stopped Kafka, CSV or JSON.

Reads the options; transfer/exporting.py does the work. Exit code 0: done; 1: refused because of
what was found; 2: usage.
"""

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
from cli.read_options import read_options

_STDOUT = "-"


@click.command(
    name="export",
    epilog="\b\nExamples:\n"
    "  rollcall offsets export --csv offsets.csv --bootstrap 127.0.0.1:9092\n"
    "  rollcall offsets export --json - --data-dir /var/lib/rollcall --group 'orders-*'\n"
    "  rollcall offsets export --for-kafka /var/lib/kafka/data --data-dir /var/lib/rollcall\n"
    "\n"
    "The Kafka must be stopped and must already have its offsets topic; see docs/migration.md.",
)
@click.option(
    "--for-kafka",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="The log directory of a stopped Kafka; it loads the groups at its next start.",
)
@click.option(
    "--csv", "csv_file", metavar="FILE", help="CSV in the format of kafka-consumer-groups."
)
@click.option("--json", "json_file", metavar="FILE", help="JSON with metadata, epochs and times.")
@click.option(
    "--columns",
    type=click.Choice(["3", "4"]),
    help="Columns of the CSV: 3 (without the group) or 4.  [default: 4]",
)
@click.option(
    "--value-version",
    type=click.Choice(["3", "4"]),
    default="4",
    show_default=True,
    help="Record version of the offsets for --for-kafka: Kafka reads 3 since 2.1, 4 since 3.5.",
)
@click.option("--report", type=click.Choice(["text", "json"]), default="text", show_default=True)
@transfer_options
def offsets_export(
    *,
    for_kafka: str | None,
    csv_file: str | None,
    json_file: str | None,
    columns: str | None,
    value_version: str,
    report: str,
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
    """Export groups and their offsets from a data directory, or from a running cluster.

    The target is a Kafka's log directory, a CSV or a JSON file; "-" is the standard output.
    """
    check_usage(bootstrap, command_config, data_dir, merge=merge, overwrite=overwrite)
    places = [place for place in (for_kafka, csv_file, json_file) if place is not None]
    if len(places) != 1:
        raise click.UsageError("one of --for-kafka, --csv and --json is required")
    if columns is not None and csv_file is None:
        raise click.UsageError("--columns is for --csv")
    config = read_options(data_dir=data_dir, config_file=config_file, pairs=pairs)
    with data_dir_in_use():
        # Here, and not above: no other command should wait for these imports.
        from transfer.exporting import Export, run_export
        from transfer.plan import Rule
        from transfer.selection import Selection

        done = run_export(
            Export(
                config=config,
                bootstrap=bootstrap,
                client=client_of(command_config),
                kafka_dir=for_kafka,
                csv_file=csv_file,
                json_file=json_file,
                with_group=columns != "3",
                value_version=int(value_version),
                rule=Rule.MERGE if merge else Rule.OVERWRITE if overwrite else Rule.REFUSE,
                selection=Selection(wanted, excluded),
                dry_run=dry_run,
                now_ms=now_ms(),
            )
        )
    show(done, machine=report == "json", to_stderr=places[0] == _STDOUT)
    return done.exit_code
