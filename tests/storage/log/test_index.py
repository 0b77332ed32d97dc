"""The sparse indexes: Kafka's bytes, lookups that never overshoot, and no trust in a torn file."""

from array import array
from collections.abc import Callable
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.log.index import BadIndex, OffsetIndex, TimeIndex
from storage.log.index_entries import (
    PIECE,
    decode_columns,
    encode_columns,
    halves_of,
    of_halves,
    rises,
)
from tests.simulator.disk import SimulatedDisk
from tests.waits import shares_interpreter

BASE = 1000


def offset_index(*entries: tuple[int, int]) -> OffsetIndex:
    index = OffsetIndex("/x.index", BASE)
    for entry in entries:
        index.append(*entry)
    return index


def time_index(*entries: tuple[int, int]) -> TimeIndex:
    index = TimeIndex("/x.timeindex", BASE)
    for entry in entries:
        index.maybe_append(*entry)
    return index


def written(disk: SimulatedDisk, path: str) -> bytes:
    return disk.open(path).pread(1 << 20, 0)


def overwrite(disk: SimulatedDisk, path: str, content: bytes) -> None:
    file = disk.open(path, create=True)
    file.truncate(0)
    file.pwrite(content, 0)


def test_an_offset_search_starts_at_or_before_it() -> None:
    index = offset_index((1005, 100), (1010, 200), (1020, 300))
    assert [index.lookup(offset) for offset in (0, 1004, 1005, 1009, 1010, 1019, 1020, 5000)] == [
        0, 0, 100, 100, 200, 200, 300, 300,
    ]  # fmt: skip
    assert [index.boundary(position) for position in (0, 99, 100, 250, 300, 999)] == [
        0, 0, 100, 200, 300, 300,
    ]  # fmt: skip
    assert index.last == (1020, 300)
    assert offset_index().last == (-1, 0)


def test_a_timestamp_search_starts_before_the_first_record_that_late() -> None:
    index = time_index((50, 1005), (60, 1010), (55, 1012), (70, 1020))
    assert len(index) == 3  # an entry that is not later than the last says nothing
    assert [index.lookup(moment) for moment in (0, 50, 51, 60, 61, 70, 71)] == [
        1000, 1000, 1005, 1005, 1010, 1010, 1020,
    ]  # fmt: skip


def test_the_files_are_kafkas() -> None:
    disk = SimulatedDisk()
    offset_index((1005, 100), (1010, 200)).save(disk, sync=True)
    time_index((50, 1005)).save(disk, sync=True)
    assert written(disk, "/x.index").hex(" ", 4) == "00000005 00000064 0000000a 000000c8"
    assert written(disk, "/x.timeindex").hex(" ", 4) == "00000000 00000032 00000005"


@given(st.sets(st.integers(0, 2**32 - 1), max_size=20), st.sets(st.integers(0, 2**63 - 1)))
def test_any_entries_are_written_as_kafka_does(numbers: set[int], times: set[int]) -> None:
    disk = SimulatedDisk()
    places = [(number, number ^ 0xFF) for number in sorted(numbers)]
    moments = list(zip(sorted(times), sorted(numbers), strict=False))
    offset_index(*[(BASE + number, place) for number, place in places]).save(disk, sync=False)
    time_index(*[(moment, BASE + number) for moment, number in moments]).save(disk, sync=False)
    assert written(disk, "/x.index") == b"".join([pack(">II", *entry) for entry in places])
    assert written(disk, "/x.timeindex") == b"".join([pack(">qI", *entry) for entry in moments])


def test_what_is_saved_is_loaded_and_only_the_rest_is_written_later() -> None:
    disk = SimulatedDisk()
    index = offset_index((1005, 100))
    assert not index.is_durable
    index.save(disk, sync=True)
    assert index.is_durable
    index.append(1010, 200)
    assert not index.is_durable
    index.save(disk, sync=False)
    assert not index.is_durable

    again = offset_index()
    again.load(disk, log_bytes=201)
    assert again.last == (1010, 200)
    assert again.is_durable


def test_truncation_forgets_entries_in_memory_and_in_the_file() -> None:
    disk = SimulatedDisk()
    offsets = offset_index((1005, 100), (1010, 200), (1020, 300))
    moments = time_index((50, 1005), (60, 1010), (70, 1020))
    saves: list[Callable[[], None]] = [
        lambda: offsets.save(disk, sync=True),
        lambda: moments.save(disk, sync=True),
    ]
    for save in saves:
        save()
    offsets.truncate(1010)
    moments.truncate(1010)
    assert (offsets.last, moments.last) == ((1005, 100), (50, 1005))
    assert not offsets.is_durable
    for save in saves:
        save()
    assert len(written(disk, "/x.index")) == 8
    assert len(written(disk, "/x.timeindex")) == 12
    offsets.truncate(BASE)
    moments.truncate(BASE)
    assert (len(offsets), len(moments)) == (0, 0)


def test_a_missing_file_is_a_bad_index() -> None:
    disk = SimulatedDisk()
    with pytest.raises(BadIndex, match="missing"):
        offset_index().load(disk, 1000)
    with pytest.raises(BadIndex, match="missing"):
        time_index().load(disk)


def test_preallocated_zeros_and_a_torn_last_entry_are_no_entries() -> None:
    disk = SimulatedDisk()
    entries = bytes.fromhex("00000005 00000064 0000000a 000000c8")
    for rest in (b"", bytes(80), b"\x00\x00\x00", bytes(8) + b"\x01"):
        overwrite(disk, "/x.index", entries + rest)
        index = offset_index()
        index.load(disk, 1000)
        assert index.last == (1010, 200)


@pytest.mark.parametrize(
    "content",
    [
        "00000005 00000064 00000005 000000c8",  # an offset twice
        "00000005 00000064 0000000a 00000032",  # a position that falls
        "00000000 00000000 0000000a 000000c8 00000000 00000000 0000000b 000000c9",  # a hole
        "00000005 00000064 0000000a 000003e8",  # behind the end of the log
    ],
)
def test_an_index_that_cannot_be_is_refused(content: str) -> None:
    disk = SimulatedDisk()
    overwrite(disk, "/x.index", bytes.fromhex(content))
    with pytest.raises(BadIndex):
        offset_index().load(disk, 1000)


def test_a_time_index_that_falls_is_refused() -> None:
    disk = SimulatedDisk()
    overwrite(disk, "/x.timeindex", bytes.fromhex("0000000000000032 00000005 0000000000000031 0a"))
    time_index().load(disk)  # its second entry is torn
    overwrite(
        disk, "/x.timeindex", bytes.fromhex("0000000000000032 00000005 0000000000000031 0000000a")
    )
    with pytest.raises(BadIndex):
        time_index().load(disk)


@given(st.lists(st.tuples(st.integers(1, 500), st.integers(1, 5000)), max_size=60), st.data())
def test_any_index_survives_its_file(steps: list[tuple[int, int]], data: st.DataObject) -> None:
    disk = SimulatedDisk()
    index, offset, position = offset_index(), BASE, 0
    for offset_step, position_step in steps:
        offset, position = offset + offset_step, position + position_step
        index.append(offset, position)
        if data.draw(st.booleans()):
            index.save(disk, sync=False)
    index.save(disk, sync=True)
    again = offset_index()
    again.load(disk, position + 1)
    for target in data.draw(st.lists(st.integers(BASE, BASE + 40_000), max_size=5)):
        assert again.lookup(target) == index.lookup(target)


@pytest.mark.parametrize("count", [0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE + 1])
def test_many_entries_are_handled_in_pieces(count: int) -> None:
    first, second = array("I", range(count)), array("I", range(count, 0, -1))
    rows = encode_columns(first, second)
    assert rows == b"".join(map(pack, [">II"] * count, first, second))
    assert decode_columns(rows, 2) == [first, second]
    halves = halves_of(array("q", [(-number << 33) + 7 for number in range(count)]))
    assert of_halves(*halves) == array("q", [(-number << 33) + 7 for number in range(count)])
    assert rises(first)
    assert rises(second) == (count < 2)
    if count > 1:
        for place in {1, PIECE - 1, PIECE, PIECE + 1, count - 1} & set(range(1, count)):
            equal = first[:]
            equal[place] = equal[place - 1]
            assert not rises(equal)


def test_other_threads_run_while_a_large_index_is_loaded() -> None:
    """The cleaner does that, beside the clients."""
    disk, large = SimulatedDisk(), time_index(*[(at, BASE + at) for at in range(600_000)])
    large.save(disk, sync=False)
    assert shares_interpreter(lambda: time_index().load(disk))
