"""Producer files: what a Kafka reads of the producers, and what is read of a Kafka's."""

from collections.abc import Sequence

import pytest

from storage.api import StoredProducer
from storage.disk import read_file
from storage.log.producer_files import ProducerFiles
from storage.log.producer_state import (
    SIGNATURE,
    decode_producers,
    encode_producers,
    fault_in,
    greatest_producer_id,
    is_signed,
)
from storage.log.segment import Segment
from tests.simulator.disk import SimulatedDisk
from tests.storage.log.test_aborted import producer_snapshot
from tests.storage.rig import NOW_MS, new_disk

FOLDER = "/data/a-0"
OPEN = StoredProducer(30, 0, 0, 0, 0, 5, -1, 0)
ENDED = StoredProducer(31, 1, -1, -1, 0, 6, 4, None)


def files(disk: SimulatedDisk, log_end: int = 100, bases: Sequence[int] = ()) -> ProducerFiles:
    if not disk.exists(FOLDER):
        disk.make_dir(FOLDER)
    segments = [Segment(disk, FOLDER, base, 256) for base in bases]
    found = ProducerFiles(disk, FOLDER, lambda: segments)
    found.load(disk.listdir(FOLDER), log_end)
    return found


def test_the_bytes_are_those_of_kafka_and_a_signature() -> None:
    """The entries as a Kafka 4.3.1 wrote them after kill -9, and after a commit."""
    content = encode_producers([OPEN, ENDED])
    assert content[6:].removesuffix(SIGNATURE) == bytes.fromhex(
        "00000002"
        "000000000000001e 0000 00000000 0000000000000000 00000000 0000000000000005 ffffffff"
        "0000000000000000"
        "000000000000001f 0001 ffffffff ffffffffffffffff 00000000 0000000000000006 00000004"
        "ffffffffffffffff"
    )
    assert fault_in(content) is None
    assert is_signed(content)
    assert greatest_producer_id(content) == 31
    assert decode_producers(content) == [OPEN, ENDED]


def test_a_file_of_kafka_is_read() -> None:
    content = producer_snapshot(7)
    assert not is_signed(content)
    assert decode_producers(content) == [StoredProducer(7, 0, 5, 25, 5, NOW_MS, -1, None)]


def test_the_newest_whole_file_below_the_end_is_read() -> None:
    disk = new_disk()
    written = files(disk, bases=(10, 20))
    for offset, producers in ((10, [OPEN]), (20, [ENDED]), (30, [OPEN, ENDED])):
        written.write(offset, producers)
    assert files(disk).read(0, 100) == (30, [OPEN, ENDED])
    assert files(disk).read(0, 29) == (20, [ENDED])
    assert files(disk).read(21, 29) is None
    torn = disk.open(f"{FOLDER}/{30:020d}.snapshot")
    torn.truncate(torn.size() - 1)
    assert files(disk).read(0, 100) == (20, [ENDED])


def test_files_beyond_the_end_are_removed_durably() -> None:
    disk = new_disk()
    written = files(disk, bases=(10,))
    written.write(10, [OPEN])
    written.write(20, [OPEN])
    disk.write_back()
    files(disk, log_end=15)
    assert files(disk.after_kill()).read(0, 100) == (10, [OPEN])


def test_files_that_no_segment_needs_are_removed() -> None:
    disk = new_disk()
    written = files(disk, bases=(0, 10))
    for offset in (10, 20, 30):
        written.write(offset, [OPEN])
    names = [name for name in disk.listdir(FOLDER) if name.endswith(".snapshot")]
    assert sorted(names) == [f"{10:020d}.snapshot", f"{30:020d}.snapshot"]


def test_where_no_producer_ever_was_there_is_no_file() -> None:
    disk = new_disk()
    written = files(disk)
    written.write(10, [])
    assert disk.listdir(FOLDER) == []
    written.write(20, [OPEN])
    written.write(30, [])
    assert files(disk).read(0, 100) == (30, [])


@pytest.mark.parametrize("part", ["snapshot", "aborted"])
def test_a_full_disk_is_no_error(part: str) -> None:
    disk = new_disk()
    written = files(disk)
    disk.fail_write(part)
    written.write(10, [OPEN])
    assert files(disk).read(0, 100) is None


def test_what_is_ours_is_said_before_the_first_file() -> None:
    """Otherwise a start might take the log for one that came from a Kafka."""
    disk = new_disk()
    files(disk).write(10, [OPEN])
    assert b'"found_beside": []' in read_file(disk, f"{FOLDER}/rollcall-aborted-transactions.json")
