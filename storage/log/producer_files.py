"""Producer files: the `.snapshot` files of a log, in Kafka's format.

A file has the producers as of the offset in its name, with the last batch of each. It is written
when a segment is rolled and at a clean stop, so that a Kafka that gets the folder knows the
sequence numbers and the open transactions. A start of ours goes by `topics/producer_snapshot.py`,
and reads these files only for a log that it has no state of, such as one that came from a Kafka.

Nothing is synced: a torn file fails its checksum, and the reader takes an older one and the log.
Kafka's counterpart: ProducerStateManager.takeSnapshot.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final

from storage.api import StoredProducer
from storage.disk import Disk, overwrite, read_file
from storage.log.aborted import PRODUCER_SNAPSHOT_SUFFIX, mark_as_ours
from storage.log.producer_state import decode_producers, encode_producers
from storage.log.segment import Segment

_NOT_ROLLED: Final = -1


class ProducerFiles:
    __slots__ = ("_disk", "_offsets", "_path", "_segments", "rolled_at")

    def __init__(self, disk: Disk, path: str, segments: Callable[[], Sequence[Segment]]) -> None:
        self._disk = disk
        self._path = path
        self._segments = segments
        self._offsets: set[int] = set()
        self.rolled_at = _NOT_ROLLED  # where the last segment begins that this process has begun

    def load(self, names: Iterable[str], log_end: int) -> None:
        """Note the files that there are. Those beyond the log's end are removed, durably.

        A crash has cut the log; once it has grown again they would describe other batches.
        """
        stems = [
            name.removesuffix(PRODUCER_SNAPSHOT_SUFFIX)
            for name in names
            if name.endswith(PRODUCER_SNAPSHOT_SUFFIX)
        ]
        self._offsets = {int(stem) for stem in stems if stem.isdecimal()}
        beyond = {offset for offset in self._offsets if offset > log_end}
        for offset in beyond:
            self._remove(offset)
        if beyond:
            self._disk.sync_dir(self._path)

    def write(self, offset: int, producers: Sequence[StoredProducer]) -> None:
        """Write the file of an offset, and remove others, except where a segment begins.

        The log does without it if the disk refuses. Nothing is written where no producer ever was.
        """
        if not producers and not self._offsets:
            return
        with suppress(OSError):
            mark_as_ours(self._disk, self._path)
            overwrite(self._disk, self._name(offset), encode_producers(producers))
            self._offsets.add(offset)
            kept = {offset, *[segment.base_offset for segment in self._segments()]}
            for other in self._offsets - kept:
                self._remove(other)

    def read(self, log_start: int, log_end: int) -> tuple[int, Sequence[StoredProducer]] | None:
        """The newest file that is whole, as (offset, producers)."""
        for offset in sorted(self._offsets, reverse=True):
            if log_start <= offset <= log_end:
                with suppress(OSError):
                    producers = decode_producers(read_file(self._disk, self._name(offset)))
                    if producers is not None:
                        return offset, producers
        return None

    def _remove(self, offset: int) -> None:
        self._disk.remove(self._name(offset))
        self._offsets.discard(offset)

    def _name(self, offset: int) -> str:
        return f"{self._path}/{offset:020d}{PRODUCER_SNAPSHOT_SUFFIX}"
