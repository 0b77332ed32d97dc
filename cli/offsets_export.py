"""`rollcall offsets export`: take groups and offsets out, into a stopped Kafka, as CSV or as JSON.

Exit code 0: done; 1: refused because of what was found; 2: usage.
"""

import sys
from pathlib import Path

import click

from cli.offsets_options import (
    check_place,
    config_of,
    in_one_line,
    now_ms,
    rule_of,
    selection_of,
    show,
    transfer_options,
)
from transfer.append import apply_plan
from transfer.contents import Contents
from transfer.kafka_dir import KafkaDir
from transfer.plan import TargetNotEmpty, Terms, for_kafka, make_plan
from transfer.report import Report
from transfer.rollcall_dir import read_logs
from transfer.sources import read_cluster, read_data_dir
from transfer.tally import Tally
from transfer.text_files import to_csv, to_json
from transfer.wire import Refused

STDOUT = "-"


@click.command(
    name="export",
    epilog="\b\nExamples:\n"
    "  rollcall offsets export --csv offsets.csv --bootstrap 127.0.0.1:9092\n"
    "  rollcall offsets export --json - --data-dir /var/lib/rollcall --group 'orders-*'\n"
    "  rollcall offsets export --for-kafka /var/lib/kafka/data --data-dir /var/lib/rollcall\n"
    "\n"
    "The Kafka must be stopped and must have its offsets topic; see docs/migration.md.",
)
@click.option(
    "--for-kafka",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="The log directory of a stopped Kafka: its next start finds the groups.",
)
@click.option("--csv", "csv_file", metavar="FILE", help="As kafka-consumer-groups reads it.")
@click.option("--json", "json_file", metavar="FILE", help="With metadata, epochs and times.")
@click.option(
    "--columns",
    type=click.Choice(["3", "4"]),
    help="Of the CSV: 3 (without the group) or 4.  [default: 4]",
)
@click.option(
    "--value-version",
    type=click.Choice(["3", "4"]),
    default="4",
    show_default=True,
    help="Of the offsets written for a Kafka: 3 is understood since 2.1, 4 since 3.5.",
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
    config_file: Path | None,
    pairs: tuple[str, ...],
    wanted: tuple[str, ...],
    excluded: tuple[str, ...],
    dry_run: bool,
    merge: bool,
    overwrite: bool,
) -> int:
    """Export groups and their offsets from a data directory, or from a cluster that runs.

    To a Kafka's log directory, a CSV or a JSON file; "-" is the standard output.
    """
    check_place(bootstrap, data_dir)
    rule = rule_of(merge=merge, overwrite=overwrite)
    places = [place for place in (for_kafka, csv_file, json_file) if place is not None]
    if len(places) != 1:
        raise click.UsageError("one of --for-kafka, --csv and --json is needed")
    if columns is not None and csv_file is None:
        raise click.UsageError("--columns is for --csv")
    selection = selection_of(wanted, excluded)
    config = config_of(data_dir, config_file, pairs)
    with in_one_line():
        refused: list[Refused] = []
        if bootstrap is None:
            source = read_data_dir(config)
        else:
            source, refused = read_cluster(bootstrap, selection)
        contents = source.contents
        told = Report("rollcall offsets export", source.tally, places[0], dry_run=dry_run)
        told.refused = refused
        told.groups_left_out = contents.keep_only(selection.of(contents.groups))
        if for_kafka is not None:
            terms = Terms(rule, now_ms(), int(value_version))
            _write_for_kafka(for_kafka, contents, terms, told)
        else:
            told.describe(contents)
            _write_text(csv_file, json_file, contents, told, columns=columns)
    show(told, machine=report == "json", to_stderr=places[0] == STDOUT)
    return told.exit_code


def _write_for_kafka(path: str, contents: Contents, terms: Terms, report: Report) -> None:
    report.notes += for_kafka_notes(contents)
    report.describe(contents)
    with KafkaDir(path) as kafka:
        there = Contents()
        read_logs(kafka.logs, there, Tally(path, "kafka"))
        terms.topic_ids.update(kafka.topic_ids())
        try:
            report.plan = make_plan(contents, there, terms)
        except TargetNotEmpty as refused:
            report.reason = str(refused)
            return
        if not report.dry_run:
            kafka.begin()
            report.appended = apply_plan(kafka, report.plan, terms.now_ms)
            kafka.finish()


def for_kafka_notes(contents: Contents) -> list[tuple[str, str]]:
    return [(str(group_id), note) for group_id, note in for_kafka(contents)]


def _write_text(
    csv_file: str | None,
    json_file: str | None,
    contents: Contents,
    report: Report,
    *,
    columns: str | None,
) -> None:
    if csv_file is not None:
        with_group = columns != "3"
        if not with_group and len(contents.groups) > 1:
            raise click.UsageError(
                f"three columns hold one group, these are {len(contents.groups)}: choose one with "
                "--group"
            )
        text, place = to_csv(contents, with_group=with_group), csv_file
    else:
        text, place = to_json(contents), json_file or STDOUT
    if report.dry_run:
        return
    if place == STDOUT:
        sys.stdout.write(text)
    else:
        Path(place).write_text(text, "utf-8")
