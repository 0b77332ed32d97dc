"""Log layout: whether a path is a data directory, a partition's folder or one segment's file.

The tools read any path of an operator: Rollcall's data, a real Kafka's, a copied folder, a single
file. Nothing here writes or takes a lock. `walk.py` reads the files that are found here.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from seams.operator_error import WrongInput
from storage.log.partition_folders import parse_folder_name
from storage.log.segment import LOG_SUFFIX

_SEGMENT_FILE: Final = re.compile(r"(?P<base>[0-9]{1,20})\.log(?P<leftover>\.[a-z]+)?")


class NoSuchLog(WrongInput):
    """There is no log at this path; the message says so in one line."""


class SegmentFile(NamedTuple):
    """One .log file. `leftover` is ".deleted", ".cleaned" or ".swap" where it has such an end."""

    path: Path
    base_offset: int
    leftover: str = ""

    @property
    def stem(self) -> str:
        """The path up to ".log": what the names of its indexes begin with."""
        return str(self.path).partition(LOG_SUFFIX)[0]


class PartitionPlace(Struct, frozen=True):
    """The segments of one partition, in order; `folder` is None for a file that stands alone."""

    topic: str
    partition: int | None
    folder: Path | None
    segments: tuple[SegmentFile, ...]

    def __str__(self) -> str:
        return self.topic if self.partition is None else f"{self.topic}-{self.partition}"


class DataPlace(Struct, frozen=True):
    """Everything at one path. `is_data_dir`: it may have checkpoints and a journal besides."""

    path: Path
    partitions: tuple[PartitionPlace, ...]
    is_data_dir: bool = False

    @property
    def topics(self) -> set[str]:
        return {place.topic for place in self.partitions}

    def only(self, topics: Iterable[str], partitions: Iterable[int]) -> "DataPlace":
        """The same without other topics' and partitions' logs; an empty choice is all of them."""
        wanted, numbers = set(topics), set(partitions)
        return replace(
            self,
            partitions=tuple(
                place
                for place in self.partitions
                if (not wanted or place.topic in wanted)
                and (not numbers or place.partition in numbers)
            ),
        )


def place_at(path: Path, *, topic: str) -> DataPlace:
    """Look at a path; raises NoSuchLog. `topic` is the name where no folder tells it."""
    if path.is_dir():
        return _folder(path, topic)
    name = _SEGMENT_FILE.fullmatch(path.name)
    if not path.exists():
        raise NoSuchLog(f"{path} does not exist")
    if name is None:
        raise NoSuchLog(f"{path} is no segment: its name is not an offset and .log")
    segment = SegmentFile(path, int(name["base"]), name["leftover"] or "")
    named, number = parse_folder_name(path.absolute().parent.name) or (topic, None)
    return DataPlace(path, (PartitionPlace(named, number, None, (segment,)),))


def _folder(path: Path, topic: str) -> DataPlace:
    segments = _segments(path)
    own_name = parse_folder_name(path.absolute().name)
    if segments or (own_name is not None and _is_partition(path)):
        named, number = own_name or (topic, None)
        return DataPlace(path, (PartitionPlace(named, number, path, segments),))
    partitions = tuple(_partitions(path))
    if not partitions:
        raise NoSuchLog(f"{path} holds no partition's log")
    return DataPlace(path, partitions, is_data_dir=True)


def _is_partition(path: Path) -> bool:
    """Has this folder, which holds no segment yet, what every partition's folder has?"""
    return any((path / name).exists() for name in ("partition.metadata", "leader-epoch-checkpoint"))


def _partitions(path: Path) -> Iterator[PartitionPlace]:
    found = []
    for child in path.iterdir():
        named = parse_folder_name(child.name)
        if named is not None and child.is_dir():
            found.append((*named, child))
    for topic, partition, child in sorted(found):
        # A daemon that runs may delete a topic while we look: then it is not there.
        with suppress(FileNotFoundError):
            yield PartitionPlace(topic, partition, child, _segments(child))


def _segments(folder: Path) -> tuple[SegmentFile, ...]:
    found = []
    for name in os.listdir(folder):  # noqa: PTH208  names are all that is needed
        match = _SEGMENT_FILE.fullmatch(name)
        if match is not None and match["leftover"] is None:
            found.append(SegmentFile(folder / name, int(match["base"])))
    return tuple(sorted(found, key=lambda segment: segment.base_offset))


def after_offset(segments: Sequence[SegmentFile], offset: int) -> Sequence[SegmentFile]:
    """The segments that may hold this offset or a later one."""
    first = 0
    for number, segment in enumerate(segments):
        if segment.base_offset <= offset:
            first = number
    return segments[first:]
