"""One .log file: what is appended is found again, by offset and by time, and a bad tail is cut."""

import random

import pytest

import storage.log.segment
from storage.api import Corrupt, Record
from storage.batch.record_batch import encode_batch, iter_batches
from storage.disk import read_file
from storage.log.index import OFFSET_ENTRY_BYTES
from storage.log.segment import EVERYTHING, IndexRebuilt, Placed, Repair, Segment, TailCut
from storage.log.segment_times import find_max_timestamp, offset_for_timestamp
from tests.build import IS_COMPILED
from tests.simulator.disk import SimulatedDisk
from tests.storage.rig import NOW_MS, keys_in, records

FOLDER = "/topic-0"
BASE = 100


def placed(name: str, offset: int, timestamp_ms: int = NOW_MS, count: int = 1) -> Placed:
    names = [f"{name}{number}" for number in range(count)] if count > 1 else [name]
    batch = encode_batch(records(*names), offset, timestamp_ms)
    return batch, offset + count - 1, timestamp_ms


def new_segment(interval: int = 100) -> tuple[SimulatedDisk, Segment]:
    disk = SimulatedDisk()
    disk.make_dir(FOLDER)
    segment = Segment(disk, FOLDER, BASE, interval)
    segment.create()
    return disk, segment


def filled(count: int = 20, interval: int = 100) -> tuple[SimulatedDisk, Segment]:
    """One record a batch, offsets from BASE on, each a second later than the last."""
    disk, segment = new_segment(interval)
    for number in range(count):
        segment.append([placed(f"k{number}", BASE + number, NOW_MS + number * 1000)])
    return disk, segment


def reopened(disk: SimulatedDisk, trusted_to: int = 0) -> tuple[Segment, list[Repair]]:
    segment = Segment(disk, FOLDER, BASE, 100)
    return segment, segment.load(trusted_to)


def offsets_in(content: bytes | None) -> list[int]:
    return [header.base_offset for _, header in iter_batches(content or b"")]


def test_names_are_kafkas() -> None:
    disk, segment = filled()
    segment.seal()
    stem = f"{BASE:020d}"
    assert disk.listdir(FOLDER) == [f"{stem}.log", f"{stem}.index", f"{stem}.timeindex"]


def test_every_offset_is_found_with_or_without_an_index() -> None:
    for interval in (50, 100, 1000, 1 << 20):
        _, segment = filled(interval=interval)
        for offset in range(BASE, BASE + 20):
            content = segment.read(offset, 1, up_to=1 << 40, at_least_one=True)
            assert offsets_in(content) == [offset]
        assert segment.read(BASE + 20, 1, up_to=1 << 40, at_least_one=True) is None


def test_a_read_ends_at_a_batch_below_both_limits() -> None:
    _, segment = filled()
    size = len(placed("k0", BASE)[0])
    for up_to in range(BASE, BASE + 22):
        for batches in range(4):
            content = segment.read(BASE + 5, batches * (size + 1), up_to=up_to, at_least_one=False)
            expected = list(range(BASE + 5, min(BASE + 5 + batches, up_to, BASE + 20)))
            assert offsets_in(content) == expected, (up_to, batches)


def test_the_first_batch_comes_whole_or_not_at_all() -> None:
    _, segment = filled()
    assert segment.read(BASE, 10, up_to=1 << 40, at_least_one=False) == b""
    assert offsets_in(segment.read(BASE, 10, up_to=1 << 40, at_least_one=True)) == [BASE]
    assert segment.read(BASE, 10, up_to=BASE, at_least_one=True) == b""


def test_an_offset_inside_a_batch_finds_the_batch() -> None:
    _, segment = new_segment()
    segment.append([placed("a", BASE, count=5), placed("b", BASE + 5, count=5)])
    assert offsets_in(segment.read(BASE + 3, 1, up_to=1 << 40, at_least_one=True)) == [BASE]
    assert offsets_in(segment.read(BASE + 5, 1, up_to=1 << 40, at_least_one=True)) == [BASE + 5]


def test_an_offset_in_a_gap_finds_the_batch_after_it() -> None:
    _, segment = new_segment()
    segment.append([placed("a", BASE), placed("b", BASE + 50)])
    assert segment.position_of(BASE + 1) == segment.position_of(BASE + 50)
    assert segment.next_offset == BASE + 51


def test_a_moment_is_found() -> None:
    _, segment = filled()
    for number in range(20):
        expected = (NOW_MS + number * 1000, BASE + number)
        assert offset_for_timestamp(segment, NOW_MS + number * 1000, BASE) == expected
        assert offset_for_timestamp(segment, NOW_MS + number * 1000 - 999, BASE) == expected
    assert offset_for_timestamp(segment, NOW_MS + 19_001, BASE) is None
    assert offset_for_timestamp(segment, 0, BASE + 7) == (NOW_MS + 7000, BASE + 7)


def test_timestamps_may_go_back() -> None:
    _, segment = new_segment(interval=1)
    for number, moment in enumerate((5, 9, 3, 9, 4, 20, 1)):
        segment.append([placed("k", BASE + number, moment)])
    assert offset_for_timestamp(segment, 6, BASE) == (9, BASE + 1)
    assert offset_for_timestamp(segment, 10, BASE) == (20, BASE + 5)
    assert find_max_timestamp(segment) == (20, BASE + 5)
    assert find_max_timestamp(new_segment()[1]) is None


def test_it_is_full_by_bytes_offsets_or_index() -> None:
    _, segment = filled(interval=1)
    size = segment.size
    assert segment.has_room_for(10, BASE + 20, size + 10, 1 << 20)
    assert not segment.has_room_for(11, BASE + 20, size + 10, 1 << 20)
    assert not segment.has_room_for(10, BASE + 2**31, size + 10, 1 << 20)
    assert not segment.has_room_for(10, BASE + 20, size + 10, OFFSET_ENTRY_BYTES)


def test_an_append_that_fails_leaves_nothing() -> None:
    disk, segment = filled(3)
    size = segment.size
    disk.room = 20
    with pytest.raises(OSError, match="no space"):
        segment.append([placed("too much", BASE + 3)])
    assert (segment.size, segment.next_offset) == (size, BASE + 3)
    assert disk.open(segment.path).size() == size
    disk.room = None
    segment.append([placed("now", BASE + 3)])
    assert keys_in(list(segment.batches(0)))[-1] == "now"


# --- opening -------------------------------------------------------------------------------------


@pytest.mark.parametrize("trusted_to", [0, BASE + 10, BASE + 20, EVERYTHING])
@pytest.mark.parametrize("sealed", [True, False])
def test_a_sound_file_opens_as_it_was(trusted_to: int, sealed: bool) -> None:
    disk, segment = filled()
    if sealed:
        segment.seal()
    again, repairs = reopened(disk, trusted_to)
    assert again.size == segment.size
    assert again.next_offset == BASE + 20
    assert again.max_timestamp == NOW_MS + 19_000
    assert [repair for repair in repairs if isinstance(repair, TailCut)] == []
    assert len(again.offset_index) == len(segment.offset_index)
    again.append([placed("next", BASE + 20, NOW_MS + 20_000)])
    again.seal()
    assert offsets_in(again.read(BASE + 20, 1, up_to=1 << 40, at_least_one=True)) == [BASE + 20]


def test_an_index_made_by_a_scan_is_the_one_that_appending_makes() -> None:
    disk, segment = filled(200)
    segment.seal()
    stem = segment.path.removesuffix(".log")
    kept = [disk.open(stem + suffix).pread(1 << 20, 0) for suffix in (".index", ".timeindex")]
    assert kept[0]
    for suffix in (".index", ".timeindex"):
        disk.remove(stem + suffix)
    again, repairs = reopened(disk, EVERYTHING)
    assert isinstance(repairs[0], IndexRebuilt)
    again.seal()
    assert [
        disk.open(stem + suffix).pread(1 << 20, 0) for suffix in (".index", ".timeindex")
    ] == kept


@pytest.mark.skipif(not IS_COMPILED, reason="of the compiled build")
def test_the_scan_in_c_finds_and_cuts_what_the_one_in_python_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def outcome(content: bytes, trusted_to: int) -> object:
        disk, segment = new_segment()
        disk.open(segment.path).pwrite(content, 0)
        try:
            again, repairs = reopened(disk, trusted_to)
        except Corrupt as damage:
            return str(damage)
        again.seal()
        files = [read_file(disk, path) for path in again.paths if disk.exists(path)]
        newest = again.max_timestamp, again.max_timestamp_offset
        return repairs, files, again.next_offset, again.size, again.is_dirty, newest

    dice = random.Random(20261129)
    for _ in range(300):
        offset, batches = BASE, []
        for number in range(dice.randrange(1, 12)):
            count = dice.randrange(1, 4)
            batches.append(placed(f"k{number}", offset, NOW_MS + dice.randrange(9), count)[0])
            offset += count + dice.choice((0, 0, 0, 5, -1))
        content = bytearray(b"".join(batches))
        if dice.randrange(2):
            content[dice.randrange(len(content))] ^= dice.choice((1, 0x80, 0xFF))
        del content[len(content) - dice.choice((0, 0, 1, 40)) :]
        trusted_to = dice.choice((0, BASE + 3, offset))
        found = outcome(bytes(content), trusted_to)
        with monkeypatch.context() as sources:
            sources.setattr(storage.log.segment, "leading_places", lambda *_: [])
            assert found == outcome(bytes(content), trusted_to)


def test_a_torn_tail_is_cut_at_every_byte() -> None:
    disk, segment = filled(4)
    whole = disk.open(segment.path).pread(1 << 20, 0)
    last = segment.position_of(BASE + 3)
    for size in range(last, len(whole)):
        file = disk.open(segment.path)
        file.truncate(0)
        file.pwrite(whole[:size], 0)
        again, repairs = reopened(disk)
        assert (again.next_offset, again.size) == (BASE + 3, last)
        assert disk.open(segment.path).size() == last
        assert [repair[:3] for repair in repairs] == [(segment.path, last, size - last)] * (
            size > last
        )


def test_a_tail_of_other_bytes_is_cut_at_every_byte() -> None:
    disk, segment = filled(4)
    whole = disk.open(segment.path).pread(1 << 20, 0)
    last = segment.position_of(BASE + 3)
    for position in range(last, len(whole)):
        if position in range(last + 12, last + 16):
            continue  # the leader epoch is outside the checksum
        file = disk.open(segment.path)
        file.pwrite(whole, 0)
        file.pwrite(bytes((whole[position] ^ 0x55,)), position)
        again, _ = reopened(disk)
        keys = keys_in(list(again.batches(0)))
        # A base offset is not under the checksum either, but a lower one is seen, and a gap may be.
        assert keys == ["k0", "k1", "k2"] or (position < last + 8 and keys[3:] == ["k3"])


def test_indexes_of_a_tail_that_was_lost_are_lost_with_it() -> None:
    disk, segment = filled()
    segment.seal()
    disk.open(segment.path).truncate(0)  # a power failure: the indexes were synced, this was not
    sealed_at = BASE + 20
    again = Segment(disk, FOLDER, BASE, 100)
    again.load(0, sealed_at=sealed_at)
    # Left on the disk they would tell the next start, after a clean stop, that the log has shrunk.
    assert disk.open(f"{FOLDER}/{BASE:020d}.timeindex").size() == 0
    assert Segment(disk, FOLDER, BASE, 100).load(EVERYTHING, sealed_at=sealed_at) == []


def test_indexes_that_a_killed_start_cut_are_cut_for_good_by_the_next() -> None:
    disk, segment = filled()
    segment.seal()
    for suffix in ("log", "index", "timeindex"):
        disk.open(f"{FOLDER}/{BASE:020d}.{suffix}").sync()
    disk.sync_dir(FOLDER)
    disk.sync_dir("/")
    # A power failure took the log; the start after it was killed before it synced what it cut.
    disk.open(segment.path).truncate(0)
    disk.open(segment.path).sync()
    for suffix in ("index", "timeindex"):
        disk.open(f"{FOLDER}/{BASE:020d}.{suffix}").truncate(0)
    sealed_at = BASE + 20
    Segment(disk, FOLDER, BASE, 100).load(0, sealed_at=sealed_at)
    for seed in range(20):
        left = disk.after_crash(random.Random(seed))
        Segment(left, FOLDER, BASE, 100).load(EVERYTHING, sealed_at=sealed_at)


def test_offsets_that_fall_are_a_bad_tail() -> None:
    disk, segment = filled(3)
    segment.append([placed("again", BASE + 1)])
    assert reopened(disk)[0].next_offset == BASE + 3


def test_an_offset_too_far_from_the_first_is_damage() -> None:
    disk, segment = filled(3)
    last = segment.position_of(BASE + 2)
    disk.open(segment.path).pwrite((BASE + 2 | 1 << 40).to_bytes(8, "big"), last)
    with pytest.raises(Corrupt, match="too far from the first"):
        reopened(disk, EVERYTHING)
    again, repairs = reopened(disk)
    assert again.next_offset == BASE + 2
    assert any(isinstance(repair, TailCut) for repair in repairs)


def test_damage_below_the_recovery_point_is_not_cut_but_reported() -> None:
    disk, segment = filled(10)
    position = segment.position_of(BASE + 4)
    disk.open(segment.path).pwrite(b"?", position + 70)
    with pytest.raises(Corrupt, match=f"{segment.path} at byte {position}: stored crc"):
        reopened(disk, BASE + 5)
    assert disk.open(segment.path).size() == segment.size
    again, _ = reopened(disk, BASE + 4)
    assert again.next_offset == BASE + 4


def test_a_clean_file_that_ends_inside_a_batch_is_corrupt() -> None:
    disk, segment = filled(3)
    disk.open(segment.path).truncate(segment.size - 1)
    with pytest.raises(Corrupt, match="ends inside a batch"):
        reopened(disk, EVERYTHING)


def test_a_batch_larger_than_one_read_is_scanned() -> None:
    disk, segment = new_segment()
    big = encode_batch([Record(b"k", b"v" * (3 << 20))], BASE + 1, NOW_MS)
    segment.append([placed("small", BASE)])
    segment.append([(big, BASE + 1, NOW_MS)])
    again, _ = reopened(disk)
    assert again.size == segment.size
    assert list(again.batches(0))[1] == big


def test_truncation_drops_batches_and_their_index_entries() -> None:
    disk, segment = filled(20)
    segment.seal()
    segment.truncate(BASE + 7)
    assert (segment.next_offset, segment.max_timestamp) == (BASE + 7, NOW_MS + 6000)
    assert offset_for_timestamp(segment, NOW_MS + 7000, BASE) is None
    segment.append([placed("new", BASE + 7, NOW_MS + 50_000)])
    segment.seal()
    again, repairs = reopened(disk, EVERYTHING)
    assert repairs == []
    assert keys_in(list(again.batches(0)))[-2:] == ["k6", "new"]


def test_a_file_that_shrank_under_us_is_corrupt() -> None:
    disk, segment = filled(3)
    disk.open(segment.path).truncate(10)
    with pytest.raises(Corrupt):
        list(segment.batches(0))
    with pytest.raises(Corrupt):
        segment.pread(0, 11)


def test_removal_takes_the_indexes_along() -> None:
    disk, segment = filled(3)
    segment.seal()
    segment.remove()
    assert disk.listdir(FOLDER) == []
