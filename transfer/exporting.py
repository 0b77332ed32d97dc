"""Export: its steps in order. Read, drop what the target cannot hold, write.

`rollcall offsets export` makes an Export of its options and prints the Report.
"""

import sys
from pathlib import Path
from typing import Final

from msgspec import Struct

from client.properties import ClientProperties
from config.keys import Config
from transfer.append import apply_plan
from transfer.contents import Contents
from transfer.errors import Unusable
from transfer.kafka_dir import KafkaDir
from transfer.plan import Rule, TargetNotEmpty, Terms, for_kafka, make_plan
from transfer.report import Report
from transfer.rollcall_dir import read_logs
from transfer.selection import Selection
from transfer.source_stats import SourceStats
from transfer.sources import read_cluster, read_data_dir
from transfer.text_files import to_csv, to_json
from transfer.wire import Refused
from transfer.write_aside import write_aside

STDOUT: Final = "-"


class Export(Struct, frozen=True, kw_only=True):
    """What the user asked for; one of the three destinations."""

    config: Config
    bootstrap: str | None = None  # instead of the data directory
    client: ClientProperties | None = None  # TLS and SASL of that cluster
    kafka_dir: str | None = None
    csv_file: str | None = None
    json_file: str | None = None
    with_group: bool = True
    value_version: int = 4
    rule: Rule = Rule.REFUSE
    selection: Selection
    dry_run: bool = False
    now_ms: int

    @property
    def destination(self) -> str:
        return self.kafka_dir or self.csv_file or self.json_file or STDOUT


def run_export(order: Export) -> Report:
    """Raises Unusable, DataDirRefused, Corrupt, OSError."""
    refused: list[Refused] = []
    if order.bootstrap is None:
        source = read_data_dir(order.config)
    else:
        source, refused = read_cluster(order.bootstrap, order.client, order.selection)
    contents = source.contents
    report = Report(
        "rollcall offsets export", source.tally, order.destination, dry_run=order.dry_run
    )
    report.refused += refused
    report.groups_left_out = contents.keep_only(order.selection.of(contents.groups))
    if order.kafka_dir is not None:
        report.notes += [(str(group_id), note) for group_id, note in for_kafka(contents)]
    report.describe(contents)
    contents.check_writable()
    if order.kafka_dir is not None:
        _write_for_kafka(order.kafka_dir, contents, order, report)
    else:
        _write_text(contents, order)
    return report


def _write_for_kafka(path: str, contents: Contents, order: Export, report: Report) -> None:
    terms = Terms(order.rule, order.now_ms, order.value_version)
    with KafkaDir(path) as kafka:
        if kafka.note:
            report.remarks.append(f"{path}: {kafka.note}")
        there = Contents()
        read_logs(kafka.logs, there, SourceStats(path, "kafka"))
        terms.topic_ids.update(kafka.topic_ids())
        try:
            report.plan = make_plan(contents, there, terms)
        except TargetNotEmpty as refused:
            report.reason = str(refused)
            return
        if order.dry_run:
            return
        if report.plan.records:
            kafka.begin()
        report.appended = apply_plan(kafka, report.plan, order.now_ms)
        if report.plan.records:
            kafka.finish()


def _write_text(contents: Contents, order: Export) -> None:
    if order.csv_file is not None:
        if not order.with_group and len(contents.groups) > 1:
            raise Unusable(
                f"a CSV with three columns holds one group, not {len(contents.groups)}: choose one "
                "with --group"
            )
        text = to_csv(contents, with_group=order.with_group)
    else:
        text = to_json(contents)
    if order.dry_run:
        return
    if order.destination == STDOUT:
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode())  # whatever the terminal's encoding is
        sys.stdout.buffer.flush()
    else:
        write_aside(Path(order.destination), text.encode())
