"""`rollcall log lint`: are these log files intact?

Reads the options; logtools/lint.py looks.
"""

import json
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import click

from cli.exits import PROBLEMS
from cli.log_options import (
    log_topic_option,
    logs_at,
    note_running_daemon,
    partition_option,
    paths_argument,
    reading,
)
from cli.progress import is_terminal, progress_bar


@click.command(
    name="lint",
    epilog="\b\nExamples:\n"
    "  rollcall log lint rollcall-data\n"
    "  rollcall log lint --json /var/kafka/data/__consumer_offsets-12\n"
    "  rollcall log lint --log-topic __consumer_offsets --partition 12 rollcall-data\n"
    "\n"
    "Exit code 0: no damage; 1: damage was found; 2: wrong usage.",
)
@paths_argument
@partition_option
@log_topic_option
@click.option(
    "--offsets-partitions",
    metavar="N",
    type=click.IntRange(min=1),
    help="Number of partitions of __consumer_offsets.  [default: taken from the files, else 50]",
)
@click.option("--json", "as_json", is_flag=True, help="Findings as JSON lines, for programs.")
def log_lint(
    *,
    paths: tuple[Path, ...],
    partitions: tuple[int, ...],
    log_topics: tuple[str, ...],
    offsets_partitions: int | None,
    as_json: bool,
) -> int:
    """Check every invariant of log files.

    Batches (checksums, sizes, offsets, counts, times, leader epochs), both indexes against their
    log, checkpoints against the logs, the journal, snapshots, topic ids. Of __consumer_offsets
    also that each record can be read and each group is in the partition where it belongs. What a
    crash has left behind and the next start puts right is a note, and nothing wrong. Without
    --log-topic all topics of a data directory are checked.
    """
    from logtools.findings import LintCounts
    from logtools.lint import findings

    tally = LintCounts()
    found: Counter[str] = Counter()
    notes = 0
    places = [logs_at(path, log_topics or ("all",), partitions) for path in paths]
    size = bytes_below(paths) if is_terminal() else 0
    with reading(), progress_bar("Checking", lambda: tally.bytes / max(size, 1)) as bar:
        for place in places:
            note_running_daemon(place)
            for finding in findings(place, tally, offsets_partitions):
                if finding.is_note:
                    notes += 1
                else:
                    found[finding.check] += 1
                bar.echo(json.dumps(finding._asdict()) if as_json else str(finding))
    checked = (
        f"{tally.files} files, {tally.bytes} bytes, {tally.batches} batches, "
        f"{tally.records} records"
    )
    kinds = ", ".join(f"{count} {check}" for check, count in found.most_common())
    summary = f"{_counted(found.total(), 'finding')} ({kinds})" if found else "all is sound"
    if notes:
        summary += f"; {_counted(notes, 'note')}"
    click.echo(f"{checked}: {summary}", err=as_json)
    return PROBLEMS if found else 0


def bytes_below(paths: Iterable[Path]) -> int:
    """Of all files, about: they may change meanwhile."""
    total = 0
    for path in paths:
        for file in (path, *path.rglob("*")):
            with suppress(OSError):
                total += file.stat().st_size if file.is_file() else 0
    return total


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
