"""`rollcall log clean`: compact the logs of a data directory on which no daemon runs.

Recovers the directory as a start does (so it also works after a kill), then
storage/cleaner/cleaner.py cleans each compacted log under the directory's lock.
"""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from cli.clock import now_ms
from cli.log_options import log_topic_option, partition_option
from cli.options import config_file_option
from cli.progress import progress_bar
from cli.read_options import read_options
from config.keys import Config
from seams.operator_error import OperationFailed, WrongInput

if TYPE_CHECKING:
    from storage.api import LogSettings, TopicPartition
    from storage.cleaner.cleaner import FolderCleaned


class _Wanted(NamedTuple):
    topics: tuple[str, ...]
    partitions: tuple[int, ...]

    def has(self, key: "TopicPartition") -> bool:
        return (not self.topics or "all" in self.topics or key.topic in self.topics) and (
            not self.partitions or key.partition in self.partitions
        )


@click.command(
    name="clean",
    epilog="\b\nExamples:\n"
    "  rollcall log clean --dry-run rollcall-data\n"
    "  rollcall log clean --roll --set rollcall.offsets.history.ms=0 rollcall-data\n"
    "\n"
    "Records younger than the compaction lag are kept: for __consumer_offsets that is "
    "rollcall.offsets.history.ms, a day by default. Tombstones are kept for delete.retention.ms. "
    "Exit code 1: a log could not be cleaned; 2: nothing was started.",
)
@click.argument("path", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@partition_option
@log_topic_option
@config_file_option()
@click.option(
    "--set", "pairs", metavar="NAME=VALUE", multiple=True, help="As for `rollcall serve`."
)
@click.option(
    "--roll",
    is_flag=True,
    help="Close the active segment first; an active segment is never cleaned. --dry-run does not "
    "count it.",
)
@click.option("--dry-run", is_flag=True, help="Report what would be freed, and change nothing.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
def log_clean(
    *,
    path: Path,
    partitions: tuple[int, ...],
    log_topics: tuple[str, ...],
    config_file: Path | None,
    pairs: tuple[str, ...],
    roll: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Compact logs while no daemon runs on them.

    DIR is a Rollcall data directory. The command takes its lock, and refuses if the lock is held.
    The newest record of each key is kept, at its offset, as by Kafka's log cleaner;
    min.cleanable.dirty.ratio is ignored. A crash leaves each log either unchanged or cleaned.
    """
    config = read_options(data_dir=str(path), config_file=config_file, pairs=pairs)
    total = _Total()
    try:
        logs = _compacted_logs(config, _Wanted(log_topics, partitions), dry_run=dry_run)
        with progress_bar("Cleaning", lambda: total.logs / max(len(logs), 1)) as bar:
            for key, done in _clean(config, logs, roll=roll, dry_run=dry_run):
                total.add(done)
                if as_json:
                    bar.echo(json.dumps(_facts(key, done)))
                elif done.bytes_after != done.bytes_before:
                    bar.echo(_line(key, done))
    except OSError as failed:  # of the data directory, also a missing file in it: exit code 1
        raise OperationFailed(str(failed)) from None
    if not as_json:
        click.echo(total.line(dry_run=dry_run))
    return 0


_Logs = list[tuple["TopicPartition", "LogSettings"]]


def _compacted_logs(config: Config, wanted: _Wanted, *, dry_run: bool) -> _Logs:
    """The logs to clean, with their settings; afterwards the directory is cleanly stopped."""
    from storage.log.log_store import CLEAN_SHUTDOWN
    from transfer.rollcall_dir import RollcallDir

    is_at_rest = Path(config.data_dir, CLEAN_SHUTDOWN).exists()
    if dry_run and not is_at_rest and Path(config.data_dir).exists():
        raise WrongInput(
            f"{config.data_dir} was not stopped cleanly, and --dry-run must not recover it: "
            "start and stop the daemon first, or omit --dry-run"
        )
    with RollcallDir(config, must_exist=True) as opened:
        settings = opened.compacted_logs()
    return [(key, chosen) for key, chosen in sorted(settings.items()) if wanted.has(key)]


def _clean(
    config: Config, logs: _Logs, *, roll: bool, dry_run: bool
) -> Iterator[tuple["TopicPartition", "FolderCleaned"]]:
    from storage.cleaner.cleaner import clean_folder
    from storage.disk import RealDisk
    from storage.log.partition_folders import folder_name
    from transfer.rollcall_dir import lock

    with closing(lock(config)):
        for key, settings in logs:
            folder = f"{config.data_dir}/{folder_name(key)}"
            done = clean_folder(
                RealDisk(),
                folder,
                settings,
                now_ms(),
                topic_partition=key,
                roll=roll,
                dry_run=dry_run,
            )
            yield key, done


class _Total:
    def __init__(self) -> None:
        self.logs = self.before = self.after = 0

    def add(self, done: "FolderCleaned") -> None:
        self.logs += 1
        self.before += done.bytes_before
        self.after += done.bytes_after

    def line(self, *, dry_run: bool) -> str:
        from logtools.stat_report import size_text

        freed = size_text(self.before - self.after)
        would = "would be freed" if dry_run else "freed"
        return f"{freed} {would} of {size_text(self.before)} in {self.logs} logs"


def _line(key: "TopicPartition", done: "FolderCleaned") -> str:
    from logtools.stat_report import size_text

    before, after = size_text(done.bytes_before), size_text(done.bytes_after)
    return f"{key.topic}-{key.partition}: {before} -> {after}, clean up to {done.end_offset}"


def _facts(key: "TopicPartition", done: "FolderCleaned") -> dict[str, object]:
    return {
        "topic": key.topic,
        "partition": key.partition,
        "bytesBefore": done.bytes_before,
        "bytesAfter": done.bytes_after,
        "firstDirtyOffset": done.first_dirty,
        "cleanUpToOffset": done.end_offset,
        "logEndOffset": done.log_end,
    }
