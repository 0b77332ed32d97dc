"""Lint of small files: checkpoints, epochs, ids and the files of a crash must match the logs.

`lint_segment.py` has walked through the logs before and knows where each one begins and ends.
Kafka's counterparts: OffsetCheckpointFile, LeaderEpochCheckpointFile, PartitionMetadataFile,
ProducerStateManager's snapshots, TransactionIndex.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from logtools.findings import Finding, Findings
from logtools.lint_segment import PartitionLint
from logtools.read_only import ReadOnlyDisk
from storage.api import Corrupt, TopicPartition
from storage.log import producer_state
from storage.log.checkpoints import (
    CLEAN_OFFSETS,
    HIGH_WATERMARKS,
    LEADER_EPOCHS,
    LOG_STARTS,
    NO_TOPIC_ID,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    read_epochs,
    read_offsets,
    read_topic_id,
)
from storage.open import TOPICS_FILE
from storage.snapshot import SNAPSHOT_SUFFIX as GROUPS_SUFFIX
from storage.snapshot import InvalidSnapshot, Snapshot

_LEFTOVERS: Final = {
    ".deleted": "a segment that was cleaned or expired; it goes in a while, or at the next start",
    ".cleaned": "a cleaning that was interrupted; the next start removes it",
    ".swap": "a cleaning that was interrupted while it took effect; the next start completes it",
    ".tmp": "a small file that was being written; what it was to replace still counts",
    "-delete": "a deleted partition; the next start removes it",
}
_LEFTOVER_FOLDERS: Final = {
    "-stray": "a partition that belonged to nobody: a start has set it aside",
    "-future": "a partition that was being moved to this disk",
}

_PARTITION_METADATA: Final = re.compile(rb"version: 0\ntopic_id: [A-Za-z0-9_-]{22}\n?")

Known = dict[TopicPartition, PartitionLint]


class Before(NamedTuple):
    """What small files said before the log was read: it may have grown since, if a broker runs."""

    findings: list[Finding]
    epochs: list[tuple[int, int]]
    snapshots: list[tuple[str, int]]  # (path, position)


def read_positions(folder: Path) -> Before:
    """Of one partition, what names offsets of its log."""
    before = Before([], [], [])
    try:
        before.epochs.extend(read_epochs(ReadOnlyDisk(), str(folder / LEADER_EPOCHS)))
    except Corrupt as damage:
        before.findings.append(Finding(damage.path, None, "epochs", damage.reason))
    for path in sorted(folder.glob(f"*{GROUPS_SUFFIX}")):
        # A start passes over one that is unsound and reads the log instead: slower, never wrong.
        try:
            about = Snapshot(str(path), path.read_bytes()).about
            before.snapshots.append((str(path), about.position))
        except InvalidSnapshot as fault:
            before.findings.append(Finding(str(path), None, "snapshot", str(fault)))
    return before


def lint_folder(lint: PartitionLint, folder: Path, before: Before) -> Findings:
    """The small files of one partition."""
    names = sorted(path.name for path in folder.iterdir())
    yield from leftovers(folder, names)
    yield from before.findings
    yield from _epochs(lint, folder, before.epochs)
    yield from _topic_id(folder)
    for path, position in before.snapshots:
        if position > lint.next_offset:
            problem = f"of offset {position}, the log ends before {lint.next_offset}"
            yield Finding(path, None, "snapshot", problem)
    for name in names:
        if name.endswith(".snapshot"):
            yield from _producer_snapshot(folder / name)
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


def _epochs(lint: PartitionLint, folder: Path, before: list[tuple[int, int]]) -> Findings:
    path = str(folder / LEADER_EPOCHS)
    if before and before[-1][1] > lint.next_offset:
        problem = f"epoch {before[-1][0]} begins at {before[-1][1]}, the log ends with "
        yield Finding(path, None, "epochs", f"{problem}{lint.next_offset - 1}")
    try:
        epochs = read_epochs(ReadOnlyDisk(), path)  # now it has all that the log has
    except Corrupt:
        return  # reported by another check
    for epoch, start in epochs:
        if epoch < 0 or start < 0:
            yield Finding(path, None, "epochs", f"epoch {epoch} from offset {start}")
    for earlier, (epoch, start) in pairwise(epochs):
        if epoch <= earlier[0] or start < earlier[1]:
            problem = f"epoch {epoch} from offset {start} after epoch {earlier[0]} from "
            yield Finding(path, None, "epochs", f"{problem}{earlier[1]}")
    if epochs:
        yield from _epochs_of_batches(path, dict(epochs), lint.epoch_starts)


def _epochs_of_batches(path: str, said: dict[int, int], seen: Mapping[int, int]) -> Findings:
    """Every epoch that a batch has is in the checkpoint, from that batch's offset or before."""
    for epoch, offset in seen.items():
        if epoch not in said:
            problem = f"offset {offset} was written in epoch {epoch}, which is not there"
            yield Finding(path, None, "epochs", problem)
        elif said[epoch] > offset:
            problem = f"epoch {epoch} from offset {said[epoch]}, but it wrote offset {offset}"
            yield Finding(path, None, "epochs", problem)


def _topic_id(folder: Path) -> Findings:
    """Kafka reads two lines, and nothing else."""
    path = folder / PARTITION_METADATA
    if not path.exists():
        return
    if _PARTITION_METADATA.fullmatch(path.read_bytes()) is None:
        problem = "it is not `version: 0` and `topic_id: ` with an id of 22 characters"
        yield Finding(str(path), None, "topic-id", problem)


_BELOW_THE_START: Final = "is below the log's start"
"""No fault with cleanup.policy=compact,delete: Kafka's cleaner does not even log it."""


class Checkpoints(NamedTuple):
    """The offset checkpoints of a data directory, read before its logs."""

    findings: list[Finding]
    offsets: dict[str, dict[TopicPartition, int]]  # by file


def read_checkpoints(data_dir: Path) -> Checkpoints:
    """A log that is written to meanwhile only grows beyond them."""
    read = Checkpoints([], {})
    for name in _CHECKPOINT_RULES:
        path = data_dir / name
        if path.exists() and not path.stat().st_size:
            continue  # as Kafka makes them, until it has something to say
        try:
            read.offsets[name] = read_offsets(ReadOnlyDisk(), str(path))
        except Corrupt as damage:
            read.findings.append(Finding(str(path), None, "checkpoint", damage.reason))
    return read


def lint_checkpoints(data_dir: Path, known: Known, read: Checkpoints) -> Findings:
    """The offsets that the data directory keeps for every partition, against the logs."""
    yield from read.findings
    for name, offsets in read.offsets.items():
        for key, offset in offsets.items():
            lint = known.get(key)
            problem = _CHECKPOINT_RULES[name](lint, offset) if lint is not None else None
            if problem is not None:
                where = f"{key.topic}-{key.partition}"
                path = str(data_dir / name)
                is_note = problem.startswith(_BELOW_THE_START)
                said = f"{where}: {offset} {problem}"
                yield Finding(path, None, "checkpoint", said, is_note=is_note)


def _beyond_the_end(lint: PartitionLint, offset: int) -> str | None:
    # Segments are only made when there is something to write: then the log may be at any offset.
    if offset > lint.next_offset and lint.place.segments:
        return f"is beyond the log's end, {lint.next_offset}"
    return None


def _no_cleaner_offset(lint: PartitionLint, offset: int) -> str | None:
    if not lint.bases:
        return None
    if offset < lint.bases[0]:
        return f"{_BELOW_THE_START}, {lint.bases[0]}: retention moved it, the cleaner begins there"
    if offset > lint.bases[-1]:
        return f"is in the active segment, which begins at {lint.bases[-1]} and is never cleaned"
    return None


_CHECKPOINT_RULES: Final[Mapping[str, Callable[[PartitionLint, int], str | None]]] = {
    RECOVERY_POINTS: _beyond_the_end,
    HIGH_WATERMARKS: _beyond_the_end,
    LOG_STARTS: _beyond_the_end,
    CLEAN_OFFSETS: _no_cleaner_offset,
}


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
        except UnicodeDecodeError:
            continue  # reported by another check
        if topic_id == NO_TOPIC_ID:
            if not (folder / PARTITION_METADATA).exists():
                yield Finding(path, None, "topic-id", "missing")
            continue  # torn by a crash, or damaged: reported already
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
    except (ValueError, KeyError, TypeError, RecursionError) as fault:
        return Finding(str(path), None, "catalog", f"{type(fault).__name__}: {fault}")


def _producer_snapshot(path: Path) -> Findings:
    fault = producer_state.fault_in(path.read_bytes())
    if fault is not None:
        yield Finding(str(path), fault[0], "snapshot", fault[1])
