"""Kafka folders: what is in the folders that a real Kafka left, and what its consumers read.

Recorded by tests/storage/golden/make_folders.py: one image as after kill -9, one as after a clean
stop. A topic's folders are told by name, with the content that a consumer was given there.
"""

import io
import tarfile
from functools import cache
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct

from protocol.names import TopicId
from storage.log.checkpoints import PARTITION_METADATA, decode_uuid
from tests.simulator.kept_records import Kept, Written

ARCHIVE: Final = Path(__file__).parents[1] / "storage" / "golden" / "folders.tar.gz"
READ: Final = ARCHIVE.with_name("folders.json")

Image = Literal["killed", "stopped"]
IMAGES: Final[tuple[Image, ...]] = ("killed", "stopped")


class _Read(Struct):
    """Of one partition."""

    start: int
    end: int
    records: list[tuple[int, int, str, str | None]]
    below_start: list[tuple[int, int, str, str | None]] = []
    greatest_producer_id: int = -1


class _Recorded(Struct):
    written_to_ms: int
    partitions: dict[str, _Read]


class KafkaFolder(Struct, frozen=True):
    topic: str
    index: int
    topic_id: TopicId
    files: dict[str, bytes]
    greatest_producer_id: int

    def kept(self) -> Kept:
        """What must be served from this folder; a new copy for each caller."""
        read = _recorded().partitions[f"{self.topic}-{self.index}"]
        rows = [*read.below_start, *read.records]
        written = [
            Written(offset, key.encode(), None if value is None else value.encode(), at_ms)
            for offset, at_ms, key, value in rows
        ]
        return Kept({record.offset: record for record in written}, end=read.end, start=read.start)


@cache
def _recorded() -> _Recorded:
    return msgspec.json.decode(READ.read_bytes(), type=_Recorded)


def written_to_ms() -> int:
    """The time of the last record."""
    return _recorded().written_to_ms


@cache
def _files() -> dict[str, bytes]:
    found = {}
    with tarfile.open(fileobj=io.BytesIO(ARCHIVE.read_bytes())) as archive:
        for member in archive.getmembers():
            file = archive.extractfile(member)
            assert file is not None
            found[member.name] = file.read()
    return found


@cache
def folders(image: Image) -> list[KafkaFolder]:
    """All that the image has."""
    found = []
    for name, read in _recorded().partitions.items():
        prefix = f"{image}/{name}/"
        files = {
            path.removeprefix(prefix): content
            for path, content in _files().items()
            if path.startswith(prefix)
        }
        topic, _, index = name.rpartition("-")
        topic_id = decode_uuid(files[PARTITION_METADATA].decode().partition("topic_id: ")[2])
        assert topic_id is not None
        found.append(KafkaFolder(topic, int(index), topic_id, files, read.greatest_producer_id))
    return found


def checkpoints(image: Image) -> dict[str, bytes]:
    """The files beside the folders: the offset checkpoints, the marker of a clean stop."""
    named = {path.partition("/")[2]: path for path in _files() if path.startswith(f"{image}/")}
    return {name: _files()[path] for name, path in named.items() if "/" not in name}
