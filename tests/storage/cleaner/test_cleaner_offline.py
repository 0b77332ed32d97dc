"""`clean_folder`: all of it in one call, on a folder that no daemon uses."""

import pytest
from msgspec.structs import replace

from storage.api import Corrupt
from storage.cleaner.cleaner import clean_folder, read_clean_offsets
from tests.storage.cleaner.rig import FOLDER, KEY, SETTINGS, Partition
from tests.storage.rig import DATA, NOW_MS


def made() -> Partition:
    log = Partition()
    for number in range(50):
        log.write(**{f"key-{number % 5}": number})
        if number % 10 == 9:
            log.roll()
    log.write(**{"key-0": "active"})
    log.log.close()
    return log


def contents(log: Partition) -> dict[str, bytes]:
    files = {name: log.disk.open(f"{FOLDER}/{name}") for name in log.names()}
    return {name: file.pread(file.size(), 0) for name, file in files.items()}


def test_everything_but_the_active_segment_is_cleaned() -> None:
    log = made()
    done = clean_folder(log.disk, FOLDER, SETTINGS, NOW_MS, topic_partition=KEY)
    assert (done.first_dirty, done.end_offset, done.log_end) == (0, 50, 51)
    assert done.bytes_after < done.bytes_before
    again = log.reopened()
    assert again.log.size_bytes == done.bytes_after
    assert again.kept() == {
        **{n: (f"key-{n % 5}", str(n)) for n in range(45, 50)},
        50: ("key-0", "active"),
    }
    assert read_clean_offsets(log.disk, DATA) == {KEY: 50}
    assert not [name for name in log.names() if name.count(".") > 1]


def test_a_second_time_there_is_nothing_to_do() -> None:
    log = made()
    clean_folder(log.disk, FOLDER, SETTINGS, NOW_MS, topic_partition=KEY)
    before = contents(log)
    done = clean_folder(log.disk, FOLDER, SETTINGS, NOW_MS, topic_partition=KEY)
    assert (done.first_dirty, done.end_offset, done.passes) == (50, 50, [])
    assert contents(log) == before


def test_with_roll_the_active_segment_is_cleaned_too() -> None:
    log = made()
    clean_folder(log.disk, FOLDER, SETTINGS, NOW_MS, topic_partition=KEY, roll=True)
    assert sorted(log.reopened().kept()) == [46, 47, 48, 49, 50]


def test_a_dry_run_reports_and_changes_nothing() -> None:
    log = made()
    before = contents(log)
    estimate = clean_folder(
        log.disk, FOLDER, SETTINGS, NOW_MS, topic_partition=KEY, dry_run=True, roll=True
    )
    assert contents(log) == before
    assert read_clean_offsets(log.disk, DATA) == {}
    done = clean_folder(log.disk, FOLDER, SETTINGS, NOW_MS, topic_partition=KEY)
    assert estimate.bytes_after == done.bytes_after


def test_the_lag_holds_offline_too() -> None:
    log = made()
    young = replace(SETTINGS, min_compaction_lag_ms=1_000)
    done = clean_folder(log.disk, FOLDER, young, NOW_MS + 999, topic_partition=KEY)
    assert done.passes == []
    done = clean_folder(log.disk, FOLDER, young, NOW_MS + 1_000, topic_partition=KEY)
    assert done.end_offset == 50


def test_many_keys_take_many_passes() -> None:
    log = Partition()
    for number in range(300):
        log.write(**{f"key-{number}": number})
    log.roll()
    log.write(x=1)
    log.log.close()
    done = clean_folder(log.disk, FOLDER, SETTINGS, NOW_MS, topic_partition=KEY, map_bytes=4_000)
    assert len(done.passes) > 2
    assert done.end_offset == 300


def test_damage_is_named_and_the_folder_stays_as_it_was() -> None:
    log = made()
    path = f"{FOLDER}/{0:020d}.log"
    log.disk.open(path).pwrite(b"\xff", 70)
    before = contents(log)
    with pytest.raises(Corrupt, match="stored crc"):
        clean_folder(log.disk, FOLDER, SETTINGS, NOW_MS, topic_partition=KEY)
    left = contents(log)
    assert {name: left[name] for name in before} == before
    log.reopened()
    assert not [name for name in log.names() if name.count(".") > 1]
