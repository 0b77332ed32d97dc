"""`rollcall log stat`: what uses the space in the log files, and what would cleaning free?

Reads the options; logtools/stat.py counts and logtools/stat_report.py shows.
"""

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.clock import now_ms
from cli.log_options import log_topic_option, logs_at, partition_option, reading
from cli.progress import progress_bar
from cli.tables import say

if TYPE_CHECKING:
    from logtools.layout import DataPlace
    from storage.api import LogSettings


@click.command(
    name="stat",
    epilog="\b\nExamples:\n"
    "  rollcall log stat rollcall-data\n"
    "  rollcall log stat --top 3 --partition 12 /var/kafka/data\n"
    "  rollcall log stat --json rollcall-data | jq .top.groups\n"
    "\n"
    "`frees now` applies the cleaner's rules: whole segments except the active one, in logs whose "
    "dirty part exceeds --min-cleanable-dirty-ratio. `at most` is what would be freed if "
    "everything were cleaned and all tombstones had expired.",
)
@click.argument("path", metavar="PATH", type=click.Path(path_type=Path))
@partition_option
@log_topic_option
@click.option("--top", metavar="N", type=click.IntRange(1, 1_000), default=10, show_default=True,
              help="Number of groups, members, topics and partitions to list.")  # fmt: skip
@click.option("--min-cleanable-dirty-ratio", type=click.FloatRange(0, 1),
              help="The cleaner's setting, for `frees now`.  [default: 0.5]")  # fmt: skip
@click.option("--min-compaction-lag-ms", type=click.IntRange(min=0),
              help="As above.  [default: a day for Rollcall's own data, else 0]")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
def log_stat(
    *,
    path: Path,
    partitions: tuple[int, ...],
    log_topics: tuple[str, ...],
    top: int,
    min_cleanable_dirty_ratio: float | None,
    min_compaction_lag_ms: int | None,
    as_json: bool,
) -> None:
    """Report what uses the space in log files, and what cleaning would free.

    Per partition: segments, bytes, records, live records (the newest of their key) and tombstones.
    In total: record types, times, commit rate, and the groups, members, topics and partitions with
    the most commits. A commit is attributed to the member that owned the partition in the group's
    newest generation. Memory grows only with the keys of the largest partition.
    """
    from logtools.stat import statistics
    from logtools.stat_report import as_json as to_json
    from logtools.stat_report import statistics_table
    from logtools.upkeep import upkeep_of

    place = logs_at(path, log_topics, partitions)
    part = [0.0]
    with reading(), progress_bar("Counting", lambda: part[0]):
        counted = statistics(
            place,
            now_ms(),
            keep=top,
            settings=_settings(place, min_cleanable_dirty_ratio, min_compaction_lag_ms),
            upkeep=upkeep_of(place),
            progressed=partial(part.__setitem__, 0),
        )
    if as_json:
        click.echo(json.dumps(to_json(counted), indent=2))
        return
    say(statistics_table(counted))


def _settings(place: "DataPlace", ratio: float | None, lag_ms: int | None) -> "LogSettings":
    """The cleaner's settings: a daemon's defaults for its own data, else Kafka's."""
    from msgspec.structs import replace

    from logtools.upkeep import has_journal
    from storage.api import LogSettings

    settings = LogSettings()
    if has_journal(place):
        from config.keys import Config
        from config.storage_settings import offsets_log_settings

        settings = offsets_log_settings(Config())
    if ratio is not None:
        settings = replace(settings, min_cleanable_dirty_ratio=ratio)
    if lag_ms is not None:
        settings = replace(settings, min_compaction_lag_ms=lag_ms)
    return settings
