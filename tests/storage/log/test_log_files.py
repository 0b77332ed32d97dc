"""Log files: as the worker process reads them, batch by batch, in pieces of any size."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.api import Corrupt, Record
from storage.batch.record_batch import TRANSACTIONAL_FLAG, encode_batch
from storage.log import log_files
from storage.log.log_files import FilePosition, LogFiles
from tests.simulator.disk import SimulatedDisk
from tests.storage.rig import NOW_MS

FOLDER = "/p"
FIRST, SECOND = (f"{FOLDER}/{base:020d}.log" for base in (0, 6))


def batch(offset: int, *keys: str, attributes: int = 0) -> bytes:
    some = [Record(key.encode(), b"v" * 20) for key in keys]
    return encode_batch(some, offset, NOW_MS, attributes=attributes)


BATCHES = [
    (batch(0, "a"), 1),
    (batch(1, "a", "b" * 300), 2),
    (batch(3, "a", attributes=TRANSACTIONAL_FLAG), 0),
    (batch(4, "a", "b"), 2),
    (batch(6, "c"), 1),
    (batch(7, "d"), 1),
]
WHOLE = b"".join([content for content, _ in BATCHES[:4]])
STARTS = [sum(len(content) for content, _ in BATCHES[:n]) for n in range(4)]


def written(first: bytes = WHOLE) -> SimulatedDisk:
    disk = SimulatedDisk()
    disk.make_dir(FOLDER)
    for path, content in ((FIRST, first), (SECOND, BATCHES[4][0] + BATCHES[5][0])):
        disk.open(path, create=True).pwrite(content, 0)
    return disk


@pytest.mark.parametrize("chunk_bytes", [61, 62, 100, 150, 400, 1 << 20])
def test_each_batch_comes_once_and_plain_ones_with_their_number_of_records(
    chunk_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_files, "READ_CHUNK_BYTES", chunk_bytes)
    files = LogFiles(written(), FOLDER)
    assert list(files.batches(0, 8)) == BATCHES
    assert files.end == FilePosition(6, len(BATCHES[4][0]) + len(BATCHES[5][0]))
    assert list(files.batches(2, 7)) == BATCHES[1:5]
    assert files.end == FilePosition(6, len(BATCHES[4][0]))
    assert list(files.batches(2, 5)) == BATCHES[1:3]  # the next one holds more than is asked for
    assert files.end == FilePosition(0, STARTS[3])
    assert list(files.batches(4, 4)) == []
    assert list(files.batches(8, 8)) == []


def test_reading_goes_on_where_the_last_one_ended() -> None:
    disk = written()
    files = LogFiles(disk, FOLDER)
    assert list(files.batches(0, 4)) == BATCHES[:3]
    disk.open(FIRST).pwrite(b"\xff" * STARTS[3], 0)  # what was read is not looked at
    assert list(files.batches(4, 8, files.end)) == BATCHES[3:]
    with pytest.raises(Corrupt):
        list(files.batches(4, 8))


@settings(max_examples=200)
@given(st.integers(8, STARTS[3] - 1), st.integers(1, 255))
def test_damage_is_named_by_its_batch_and_what_comes_before_it_is_read(
    byte: int, change: int
) -> None:
    where = max(n for n in range(3) if STARTS[n] <= byte)
    if not 8 <= byte - STARTS[where] < 12 and byte - STARTS[where] < 16:
        return  # the offset and the leader's epoch are outside the checksum
    content = bytearray(WHOLE)
    content[byte] ^= change
    read: list[tuple[bytes, int]] = []
    with pytest.raises(Corrupt) as caught:
        read.extend(LogFiles(written(bytes(content)), FOLDER).batches(0, 1 << 40))
    assert (caught.value.path, caught.value.position) == (FIRST, STARTS[where])
    assert read == BATCHES[:where]


@pytest.mark.parametrize("missing", [1, 40, 61, len(BATCHES[3][0]) - 1])
def test_a_file_that_breaks_off_is_damage(missing: int) -> None:
    content = WHOLE[:-missing]
    read: list[tuple[bytes, int]] = []
    with pytest.raises(Corrupt) as caught:
        read.extend(LogFiles(written(content), FOLDER).batches(0, 8))
    assert read == BATCHES[:3]
    assert caught.value.position == STARTS[3]
