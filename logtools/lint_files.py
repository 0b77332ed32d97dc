"""Do the small files agree with the logs: checkpoints, epochs, ids, what a crash left behind?

`lint_segment.py` has walked through the logs before and knows where each one begins and ends.
Kafka's counterparts: OffsetCheckpointFile, LeaderEpochCheckpointFile, PartitionMetadataFile,
ProducerStateManager's snapshots, TransactionIndex.
"""

import json
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from struct import Struct
from typing import Final

from logtools.findings import Finding, Findings
from logtools.lint_segment import PartitionLint
from logtools.read_only import ReadOnlyDisk
from storage import producer_state
from storage.api import Corrupt, TopicPartition
from storage.checkpoints import (
    LEADER_EPOCHS,
    LOG_STARTS,
    NO_TOPIC_ID,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    read_epochs,
    read_offsets,
    read_topic_id,
)
from storage.cleaner_selection import CHECKPOINT as CLEANER_OFFSETS
from storage.snapshot import SUFFIX as GROUPS_SUFFIX
from storage.snapshot import Snapshot, Unsound

HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
TOPICS_FILE: Final = "rollcall-topics.json"

_LEFTOVERS: Final = {
    ".deleted": "a segment that was cleaned or expired; it goes in a while, or at the next start",
    ".cleaned": "a cleaning that was interrupted; the next start removes it",
    ".swap": "a cleaning that was interrupted while it took effect; the next start completes it",
    ".tmp": "a small file that was being written; what it was to replace still counts",
    "-delete": "a deleted partition; the next start removes it",
}
_LEFTOVER_FOLDERS: Final = {
    "-stray": "a partition that Kafka found to belong to nobody",
    "-future": "a partition that was being moved to this disk",
}

_ABORTED: Final = Struct(">hqqqq")

Known = dict[TopicPartition, PartitionLint]


def lint_folder(lint: PartitionLint, folder: Path) -> Findings:
    """The small files of one partition."""
    names = sorted(path.name for path in folder.iterdir())
    yield from leftovers(folder, names)
    yield from _epochs(lint, folder)
    for name in names:
        if name.endswith(".snapshot"):
            yield from _producer_snapshot(folder / name)
        elif name.endswith(".txnindex"):
            yield from _aborted_transactions(folder / name)
        elif name.endswith(GROUPS_SUFFIX):
            yield from _groups_snapshot(lint, folder / name)
        stem, _, suffix = name.partition(".")
        if suffix in ("index", "timeindex") and f"{stem}.log" not in names:
            yield Finding(str(folder / name), None, "leftover", "an index without its segment")


def leftovers(folder: Path, names: Iterable[str]) -> Findings:
    """What a crash, or something that runs just now, leaves lying about, and a start puts right."""
    for name in names:
        for suffix, meaning in _LEFTOVERS.items():
            if name.endswith(suffix):
                yield Finding(str(folder / name), None, "leftover", meaning, is_note=True)


def leftover_folders(data_dir: Path) -> Findings:
    """Of a Kafka's, which somebody has to look at."""
    for path in sorted(data_dir.iterdir()):
        for suffix, meaning in _LEFTOVER_FOLDERS.items():
            if path.is_dir() and path.name.endswith(suffix):
                yield Finding(str(path), None, "leftover", meaning)


def _epochs(lint: PartitionLint, folder: Path) -> Findings:
    path = str(folder / LEADER_EPOCHS)
    try:
        epochs = read_epochs(ReadOnlyDisk(), path)
    except Corrupt as damage:
        yield Finding(path, None, "epochs", damage.reason)
        return
    for before, (epoch, start) in pairwise(epochs):
        if epoch <= before[0] or start < before[1]:
            problem = f"epoch {epoch} from offset {start} after epoch {before[0]} from {before[1]}"
            yield Finding(path, None, "epochs", problem)
    if epochs and epochs[-1][1] > lint.next_offset:
        problem = f"epoch {epochs[-1][0]} begins at {epochs[-1][1]}, the log ends with "
        yield Finding(path, None, "epochs", f"{problem}{lint.next_offset - 1}")


def lint_checkpoints(data_dir: Path, known: Known) -> Findings:
    """The offsets that the data directory keeps for every partition, against the logs."""
    rules: dict[str, Callable[[PartitionLint, int], str | None]] = {
        RECOVERY_POINTS: _beyond_the_end,
        HIGH_WATERMARKS: _beyond_the_end,
        LOG_STARTS: _beyond_the_end,
        CLEANER_OFFSETS: _no_cleaner_offset,
    }
    for name, rule in rules.items():
        path = str(data_dir / name)
        if (data_dir / name).exists() and not (data_dir / name).stat().st_size:
            continue  # as Kafka makes them, until it has something to say
        try:
            offsets = read_offsets(ReadOnlyDisk(), path)
        except Corrupt as damage:
            yield Finding(path, None, "checkpoint", damage.reason)
            continue
        for key, offset in offsets.items():
            lint = known.get(key)
            problem = rule(lint, offset) if lint is not None else None
            if problem is not None:
                where = f"{key.topic}-{key.partition}"
                yield Finding(path, None, "checkpoint", f"{where}: {offset} {problem}")


def _beyond_the_end(lint: PartitionLint, offset: int) -> str | None:
    # Segments are only made when there is something to write: then the log may be at any offset.
    if offset > lint.next_offset and lint.place.segments:
        return f"is beyond the log's end, {lint.next_offset}"
    return None


def _no_cleaner_offset(lint: PartitionLint, offset: int) -> str | None:
    if not lint.bases:
        return None
    if offset < lint.bases[0]:
        return f"is below the log's start, {lint.bases[0]}"
    if offset > lint.bases[-1]:
        return f"is in the active segment, which begins at {lint.bases[-1]} and is never cleaned"
    return None


def lint_topic_ids(data_dir: Path, known: Known) -> Findings:
    """All partitions of a topic have its id, which is the catalog's where there is one."""
    catalog = _catalog(data_dir)
    if isinstance(catalog, Finding):
        yield catalog
        catalog = {}
    first: dict[str, tuple[str, str]] = {
        topic: (identity, TOPICS_FILE) for topic, identity in catalog.items()
    }
    for key, lint in known.items():
        folder = lint.place.folder
        if folder is None:
            continue
        path = str(folder / PARTITION_METADATA)
        try:
            topic_id = read_topic_id(ReadOnlyDisk(), path)
        except Corrupt as damage:
            yield Finding(path, None, "topic-id", damage.reason)
            continue
        if topic_id == NO_TOPIC_ID:
            yield Finding(path, None, "topic-id", "missing, or torn by a crash")
            continue
        expected, where = first.setdefault(key.topic, (str(topic_id), folder.name))
        if str(topic_id) != expected:
            problem = f"{topic_id}, but in {where} it is {expected}"
            yield Finding(path, None, "topic-id", problem)


def _catalog(data_dir: Path) -> dict[str, str] | Finding:
    """Topic -> id, of Rollcall's own catalog; empty for a real Kafka's data."""
    path = data_dir / TOPICS_FILE
    if not path.exists():
        return {}
    try:
        topics = json.loads(path.read_bytes())["topics"]
        return {str(topic["name"]): str(topic["id"]) for topic in topics}
    except (ValueError, KeyError, TypeError) as fault:
        return Finding(str(path), None, "catalog", f"{type(fault).__name__}: {fault}")


def _producer_snapshot(path: Path) -> Findings:
    fault = producer_state.fault_in(path.read_bytes())
    if fault is not None:
        yield Finding(str(path), fault[0], "snapshot", fault[1])


def _groups_snapshot(lint: PartitionLint, path: Path) -> Findings:
    """A start passes over one that is unsound and reads the log instead: slower, never wrong."""
    try:
        about = Snapshot(str(path), path.read_bytes()).about
    except Unsound as fault:
        yield Finding(str(path), None, "snapshot", str(fault))
        return
    if about.position > lint.next_offset:
        problem = f"of offset {about.position}, the log ends before {lint.next_offset}"
        yield Finding(str(path), None, "snapshot", problem)


def _aborted_transactions(path: Path) -> Findings:
    content = path.read_bytes()
    if len(content) % _ABORTED.size:
        problem = f"{len(content)} bytes are no whole number of entries of {_ABORTED.size}"
        yield Finding(str(path), None, "txnindex", problem)
        return
    previous = -1
    for number, (_, _, first, last, _) in enumerate(_ABORTED.iter_unpack(content)):
        if first > last or last <= previous:
            problem = f"offsets {first} to {last} after {previous}"
            yield Finding(str(path), number * _ABORTED.size, "txnindex", problem)
        previous = last
