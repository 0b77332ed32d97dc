"""Boot record: which starts must expect that records which were not synced are gone."""

import pytest

from storage.boot_record import BOOT_FILE, BootRecord, current_boot_id
from tests.simulator.disk import SimulatedDisk
from tests.storage.rig import DATA, new_disk


def _record(
    disk: SimulatedDisk, boot_id: str | None = "first", *, was_clean: bool = False
) -> BootRecord:
    return BootRecord(disk, DATA, boot_id, was_clean=was_clean)


@pytest.mark.parametrize(("boot_id", "lost"), [("first", False), ("second", True), (None, True)])
def test_after_a_kill_records_are_lost_only_if_the_machine_went_down_too(
    boot_id: str | None,
    lost: bool,
) -> None:
    disk = new_disk()
    _record(disk).save()
    assert _record(disk, boot_id).lost is lost
    # A command that recovered the logs and closed them has not brought anything back.
    assert _record(disk, boot_id, was_clean=True).lost is lost


def test_after_a_clean_stop_nothing_is_lost_in_whatever_boot() -> None:
    disk = new_disk()
    record = _record(disk)
    record.save()
    record.clear()
    assert not disk.exists(f"{DATA}/{BOOT_FILE}")
    assert not _record(disk, "second", was_clean=True).lost
    record.clear()  # a stop before the first save


def test_a_loss_that_could_not_be_dealt_with_outlasts_a_clean_stop() -> None:
    disk = new_disk()
    _record(disk).save()
    record = _record(disk, "second")
    assert record.lost
    record.clear(is_resolved=False)
    assert _record(disk, "second", was_clean=True).lost


def test_without_a_record_a_stop_that_was_not_clean_counts_as_one_of_the_machine() -> None:
    disk = new_disk()
    assert _record(disk, was_clean=False).lost
    assert not _record(disk, was_clean=True).lost


def test_a_start_that_is_killed_before_it_has_dealt_with_the_loss_leaves_the_next_in_doubt() -> (
    None
):
    disk = new_disk()
    _record(disk).save()
    assert _record(disk, "second").lost
    assert _record(disk, "second").lost
    _record(disk, "second").save()
    assert not _record(disk, "second").lost


def test_a_system_without_boot_ids_loses_with_every_kill() -> None:
    disk = new_disk()
    _record(disk, None).save()
    assert _record(disk, None).lost


def test_the_boot_id_of_this_system_stays_the_same() -> None:
    assert current_boot_id() == current_boot_id()
