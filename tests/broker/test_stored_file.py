"""Stored file: what a power failure leaves of a small file that is replaced or appended to."""

import random

import pytest

from storage.api import SyncFailed
from storage.atomic_file import StoredFile
from tests.simulator.disk import SimulatedDisk
from tests.storage.rig import DATA, new_disk

PATH = f"{DATA}/a-file"


def _file(disk: SimulatedDisk) -> StoredFile:
    return StoredFile(disk, PATH)


@pytest.mark.parametrize("seed", range(20))
def test_what_was_appended_is_there_after_a_power_failure(seed: int) -> None:
    disk = new_disk()
    file = _file(disk)
    file.save(b"whole")
    file.append(b"1" * 5_000, 5)
    file.append(b"2" * 5_000, 5_005)
    assert (
        _file(disk.after_crash(random.Random(seed))).load()
        == b"whole" + b"1" * 5_000 + b"2" * 5_000
    )


@pytest.mark.parametrize("seed", range(20))
def test_an_append_that_fails_leaves_what_was_there_before(seed: int) -> None:
    disk = new_disk()
    file = _file(disk)
    file.save(b"whole")
    file.append(b"1" * 5_000, 5)
    disk.fail_sync(PATH)
    with pytest.raises(SyncFailed):
        file.append(b"2" * 5_000, 5_005)
    left = _file(disk.after_crash(random.Random(seed))).load()
    assert left is not None
    assert left.startswith(b"whole" + b"1" * 5_000)
    assert len(left) <= 10_005
