"""The write-ahead pair: what a start makes durable of what it found in both files."""

import pytest

from storage.journal.write_ahead_pair import FILE_NAMES, WriteAheadPair
from tests.simulator.disk import SimulatedDisk
from tests.storage.rig import new_disk

FIRST, SECOND = FILE_NAMES


def started(disk: SimulatedDisk, *, is_synced: bool = True) -> WriteAheadPair:
    pair = WriteAheadPair(disk, "/data", 64 << 10, is_synced=is_synced)
    list(pair.groups())
    return pair


def killed_in(name: str | None, *, is_synced: bool) -> SimulatedDisk:
    """After the write, and before the sync, of a group in this file."""
    disk = new_disk()
    pair = started(disk, is_synced=is_synced)
    pair.begin()
    if name is not None:
        pair.write([b"one"])
    if name == SECOND:
        pair.sync()
        pair.switch()
        pair.write([b"two"])
    return disk.after_kill()


def is_synced_by_a_start(disk: SimulatedDisk, name: str) -> bool:
    pair = started(disk)
    disk.fail_sync(name)
    try:
        pair.secure()
    except OSError:
        return True
    return False


@pytest.mark.parametrize(
    ("name", "is_synced", "expected"),
    [
        (None, True, []),
        (FIRST, True, [FIRST]),
        (SECOND, True, [SECOND]),  # that of the first file came before its group
        (SECOND, False, [FIRST, SECOND]),
    ],
)
def test_a_start_syncs_what_may_not_be_durable(
    name: str | None, is_synced: bool, expected: list[str]
) -> None:
    synced = [
        file
        for file in FILE_NAMES
        if is_synced_by_a_start(killed_in(name, is_synced=is_synced), file)
    ]
    assert synced == expected
