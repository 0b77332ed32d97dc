"""Lint: checks every invariant of the logs, the files beside them and the journal.

`findings` goes partition by partition, then to what a data directory has besides, and answers with
one `Finding` for each thing that is wrong. Nothing is changed. A file that names offsets of a log
is read before that log: a broker that runs may write to both.
"""

import json
from pathlib import Path

from logtools.findings import Findings, LintCounts
from logtools.layout import DataPlace
from logtools.lint_files import (
    Known,
    leftover_folders,
    leftovers,
    lint_checkpoints,
    lint_folder,
    lint_topic_ids,
    read_checkpoints,
    read_positions,
)
from logtools.lint_journal import lint_journal
from logtools.lint_segment import PartitionLint
from protocol.names import OFFSETS_TOPIC
from storage.api import TopicPartition
from storage.open import TOPICS_FILE

USUAL_OFFSETS_PARTITIONS = 50


def findings(
    place: DataPlace, tally: LintCounts, offsets_partitions: int | None = None
) -> Findings:
    """`offsets_partitions` is the offsets topic's number of partitions, where it is known."""
    partitions = offsets_partitions or _offsets_partitions(place)
    known: Known = {}
    checkpoints = read_checkpoints(place.path) if place.is_data_dir else None
    for partition in place.partitions:
        lint = PartitionLint(partition, tally, partitions)
        before = read_positions(partition.folder) if partition.folder is not None else None
        yield from lint.segments()
        if partition.folder is not None and before is not None:
            yield from lint_folder(lint, partition.folder, before)
        if partition.partition is not None:
            known[TopicPartition(partition.topic, partition.partition)] = lint
    if checkpoints is not None:
        names = sorted(path.name for path in place.path.iterdir())
        yield from leftovers(place.path, names)
        yield from leftover_folders(place.path)
        yield from lint_checkpoints(place.path, known, checkpoints)
        yield from lint_topic_ids(place.path, known)
        yield from lint_journal(place.path, known, tally)


def _offsets_partitions(place: DataPlace) -> int | None:
    """As the catalog says, else Kafka's default, unless a folder contradicts it."""
    data_dir = place.path if place.is_data_dir else place.path.parent
    said = _catalog_partitions(data_dir / TOPICS_FILE)
    if said is not None:
        return said
    numbers = [
        part.partition
        for part in place.partitions
        if part.topic == OFFSETS_TOPIC and part.partition is not None
    ]
    if any(number >= USUAL_OFFSETS_PARTITIONS for number in numbers):
        return None
    if place.is_data_dir and numbers and set(numbers) == set(range(len(numbers))):
        return len(numbers)
    return USUAL_OFFSETS_PARTITIONS


def _catalog_partitions(path: Path) -> int | None:
    try:
        for topic in json.loads(path.read_bytes())["topics"]:
            if topic["name"] == OFFSETS_TOPIC:
                return int(topic["partitions"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return None
