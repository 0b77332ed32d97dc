"""The write-ahead file: a group is whole or absent, and those of an earlier pass are absent."""

import random
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.api import Corrupt, TopicPartition
from storage.batch.compiled_batch import BATCH_ENTRIES_IN_C
from storage.batch.record_batch import batch_offsets, encode_batch
from storage.journal.write_ahead import (
    FIRST_GROUP,
    ZEROS_AHEAD,
    Declared,
    Journaled,
    WriteAhead,
    batch_entry_head,
    declare,
    read_entries,
)
from tests.simulator.disk import SimulatedDisk
from tests.storage.rig import TOPIC_ID, new_disk, records

PATH = "/data/wal"
CAPACITY = 64 << 10


def opened(disk: SimulatedDisk, *, is_synced: bool = True, capacity: int = CAPACITY) -> WriteAhead:
    return WriteAhead(disk, PATH, capacity, is_synced=is_synced)


def started(disk: SimulatedDisk, *, is_synced: bool = True) -> WriteAhead:
    """Opened, read and in its next pass."""
    journal = opened(disk, is_synced=is_synced)
    groups(journal)
    journal.begin_pass(journal.epoch + 1)
    return journal


def groups(journal: WriteAhead) -> list[bytes]:
    journal.find_pass()
    return [group.payload for group in journal.groups()]


def found(disk: SimulatedDisk) -> list[bytes]:
    return groups(opened(disk))


def write(journal: WriteAhead, *payloads: bytes) -> None:
    for sequence, payload in enumerate(payloads):
        journal.write([payload], sequence)
        journal.sync()


def test_groups_are_read_back_in_order() -> None:
    disk = new_disk()
    assert found(disk) == []
    write(started(disk), b"one", b"two" * 1000, b"")
    assert found(disk) == [b"one", b"two" * 1000, b""]
    assert found(disk.after_crash(random.Random(1))) == [b"one", b"two" * 1000, b""]


def test_a_new_pass_forgets_even_when_nothing_is_written_over() -> None:
    disk = new_disk()
    journal = started(disk)
    write(journal, b"old 1", b"old 2", b"old 3")
    journal.begin_pass(journal.epoch + 2)
    assert found(disk) == []
    write(journal, b"new 1")
    assert found(disk) == [b"new 1"]  # and not old 2 behind it, whole as it is
    assert found(disk.after_crash(random.Random(1))) == [b"new 1"]


def test_groups_begin_in_sectors_of_their_own() -> None:
    disk = new_disk()
    journal = started(disk)
    write(journal, b"x", b"y" * 500, b"z")
    journal = opened(disk)
    journal.find_pass()
    positions = [group.position for group in journal.groups()]
    assert positions == [FIRST_GROUP, FIRST_GROUP + 512, FIRST_GROUP + 512 + 1024]


def test_room_counts_down_to_the_end_of_the_file() -> None:
    disk = new_disk()
    journal = started(disk)
    room = journal.room
    write(journal, b"x" * (room - 600))
    assert 0 < journal.room < 600
    journal.write([b"y" * journal.room], 1)
    assert journal.room < 0
    assert len(found(disk)[0]) == room - 600
    assert disk.open(PATH).size() == CAPACITY
    journal.begin_pass(journal.epoch + 1)
    assert journal.room == room


def test_blocks_get_zeros_before_groups_need_them() -> None:
    disk = new_disk()
    journal = opened(disk, capacity=4 * ZEROS_AHEAD)
    groups(journal)
    journal.begin_pass(1)
    file = disk.open(PATH)
    dead, zeros_end = b"\xff" * ZEROS_AHEAD, FIRST_GROUP + 512 + ZEROS_AHEAD
    for start in range(FIRST_GROUP, 4 * ZEROS_AHEAD, ZEROS_AHEAD):
        file.pwrite(dead[: 4 * ZEROS_AHEAD - start], start)
    write(journal, b"first")
    behind = file.pread(4 * ZEROS_AHEAD, FIRST_GROUP + 512)
    assert behind == bytes(ZEROS_AHEAD) + b"\xff" * (4 * ZEROS_AHEAD - zeros_end)

    file.pwrite(dead, FIRST_GROUP + 512)  # what is written is not written again
    journal.write([b"second"], 1)
    assert file.pread(ZEROS_AHEAD - 512, FIRST_GROUP + 1_024) == dead[512:]

    journal.write([bytes(ZEROS_AHEAD)], 2)  # beyond the zeros
    journal.begin_pass(2)
    file.pwrite(dead, zeros_end)
    write(journal, b"x" * (ZEROS_AHEAD - 600), b"y" * (ZEROS_AHEAD - 600))
    assert file.pread(8, FIRST_GROUP + 2 * ZEROS_AHEAD - 1_000) == dead[:8]
    assert [len(payload) for payload in found(disk)] == [ZEROS_AHEAD - 600] * 2


def test_zeros_end_with_the_file() -> None:
    disk = new_disk()
    journal = started(disk)
    write(journal, b"first")
    assert disk.open(PATH).size() == CAPACITY


def test_a_pass_without_syncs_needs_no_zeros() -> None:
    disk = new_disk()
    journal = started(disk, is_synced=False)
    disk.open(PATH).pwrite(b"dead", FIRST_GROUP + 512)
    write(journal, b"first")
    assert disk.open(PATH).pread(4, FIRST_GROUP + 512) == b"dead"


def test_a_group_that_is_torn_at_any_byte_ends_the_scan() -> None:
    disk = new_disk()
    write(started(disk), b"first", b"second group")
    start = FIRST_GROUP + 512
    file = disk.open(PATH)
    whole = file.pread(28 + len(b"second group"), start)
    for size in range(len(whole)):
        file.pwrite(whole[:size] + bytes(len(whole) - size), start)
        journal = opened(disk)
        assert groups(journal) == [b"first"]
        if size == len(whole) - 1:
            assert journal.tail is not None
            assert journal.tail[:2] == (PATH, start)
    file.pwrite(whole, start)
    journal = opened(disk)
    assert groups(journal) == [b"first", b"second group"]
    assert journal.tail is None


def test_a_damaged_group_before_a_whole_one_is_corrupt_if_each_was_synced() -> None:
    for is_synced in (True, False):
        disk = new_disk()
        write(started(disk, is_synced=is_synced), b"first", b"second", b"third")
        disk.open(PATH).pwrite(b"?", FIRST_GROUP + 512 + 28)
        if is_synced:
            reason = rf"{PATH} at byte {FIRST_GROUP + 512}: group 1 is damaged, though group 2"
            with pytest.raises(Corrupt, match=reason):
                found(disk)
        else:
            assert found(disk) == [b"first"]


def test_one_slot_may_be_torn_but_not_both() -> None:
    disk = new_disk()
    journal = started(disk)
    write(journal, b"kept")
    file = disk.open(PATH)
    slots = [file.pread(21, 0), file.pread(21, 4096)]
    for torn in (0, 1):
        file.pwrite(b"torn", torn * 4096)
        assert found(disk) == [b"kept"]
        file.pwrite(slots[torn], torn * 4096)
    file.pwrite(b"torn", 0)
    file.pwrite(b"torn", 4096)
    with pytest.raises(Corrupt, match="neither slot"):
        found(disk)


def test_a_crash_in_the_first_moments_leaves_an_empty_journal() -> None:
    for cut in range(12):
        for seed in range(10):
            disk = new_disk()
            disk.cut_power_at = disk.operations + cut
            try:
                journal = started(disk)
                disk.cut_power_at = None
                assert cut >= 6
                write(journal, b"x")
                assert found(disk.after_crash(random.Random(seed))) == [b"x"]
            except BaseException as failure:
                if type(failure).__name__ != "PowerCut":
                    raise
                assert found(disk.after_crash(random.Random(seed))) == []


def test_the_file_takes_a_new_size_at_a_new_pass() -> None:
    disk = new_disk()
    write(started(disk), b"x")
    for capacity in (CAPACITY * 2, CAPACITY // 2):
        journal = opened(disk, capacity=capacity)
        groups(journal)
        journal.begin_pass(journal.epoch + 1)
        assert disk.open(PATH).size() == capacity
        assert 0 < journal.room < capacity


@given(st.lists(st.binary(max_size=3000), max_size=12), st.integers(0, 2**32), st.booleans())
def test_after_any_crash_a_prefix_is_left_and_all_that_was_synced(
    payloads: list[bytes], seed: int, finish: bool
) -> None:
    disk = new_disk()
    journal = started(disk)
    write(journal, *payloads)
    if not finish:
        journal.write([b"not synced" * 200], len(payloads))
    left = found(disk.after_crash(random.Random(seed)))
    assert left[: len(payloads)] == payloads
    assert left[len(payloads) :] in ([], [b"not synced" * 200])


# --- entries -----------------------------------------------------------------------------------


def test_entries_round_trip() -> None:
    key = TopicPartition("__consumer_offsets", 49)
    payload = declare(7, key, TOPIC_ID) + batch_entry_head(7, 3) + b"abc" + batch_entry_head(7, 0)
    assert list(read_entries(payload)) == [
        Declared(7, key, TOPIC_ID),
        Journaled(7, b"abc"),
        Journaled(7, b""),
    ]


@pytest.mark.parametrize("cut", [1, 5, 8, 10])
def test_cut_entries_are_refused(cut: int) -> None:
    payload = batch_entry_head(1, 3) + b"abc"
    with pytest.raises(ValueError, match="cut short"):
        list(read_entries(payload[:cut]))
    with pytest.raises(ValueError, match="cut short"):
        list(read_entries(declare(1, TopicPartition("t", 0), UUID(int=1))[: cut * 2]))


def test_an_unknown_kind_of_entry_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown kind 9"):
        list(read_entries(b"\x09"))


@pytest.mark.skipif(BATCH_ENTRIES_IN_C is None, reason="of the compiled build")
def test_groups_of_batches_are_read_in_c_as_in_python() -> None:
    assert BATCH_ENTRIES_IN_C is not None
    dice = random.Random(20261129)
    known = 0
    for _ in range(500):
        content = b""
        for reference in dice.sample(range(1 << 32), dice.randrange(4)):
            names = [f"k{number}" for number in range(dice.randrange(1, 4))]
            batch = encode_batch(records(*names), dice.randrange(1 << 40), dice.randrange(1 << 40))
            content += batch_entry_head(reference, len(batch)) + batch
        payload = bytearray(content)
        if payload and dice.randrange(2):
            payload[dice.randrange(len(payload))] = dice.choice((0, 1, 2, 3, 0x7F, 0x80, 0xFF))
        del payload[len(payload) - dice.choice((0, 0, 0, 1, 30)) :]

        in_c = BATCH_ENTRIES_IN_C(bytes(payload))

        if in_c is None:
            assert bytes(payload) != content
            continue
        known += 1
        expected = []
        for entry in read_entries(bytes(payload)):
            assert isinstance(entry, Journaled)
            base_offset, last_offset, max_timestamp = batch_offsets(entry.batch)
            placed = entry.batch, last_offset, max_timestamp
            expected.append((entry.reference, base_offset, placed))
        assert in_c == expected
    assert known > 250


@pytest.mark.skipif(BATCH_ENTRIES_IN_C is None, reason="of the compiled build")
def test_a_group_that_declares_a_partition_is_left_to_python() -> None:
    assert BATCH_ENTRIES_IN_C is not None
    batch = encode_batch(records("key"), 0, 7)
    entry = batch_entry_head(1, len(batch)) + batch
    declared = declare(1, TopicPartition("t", 0), TOPIC_ID)
    assert BATCH_ENTRIES_IN_C(declared + entry) is None
    assert BATCH_ENTRIES_IN_C(entry + declared) is None
    assert BATCH_ENTRIES_IN_C(batch_entry_head(1, 60) + batch[:60]) is None  # no whole header
