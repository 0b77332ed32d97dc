"""Shortages: descriptors, memory or disk space are used up for a while; every answer is retriable.

The daemon in the test's own loop, on a disk whose operations raise what the test says.
"""

import asyncio
import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from protocol.names import ErrorCode
from storage.api import SyncFailed
from storage.disk import shortage
from tests.broker.faulty_disk import FaultyDisk, broken_disk
from tests.broker.members import as_other
from tests.broker.node import Node
from tests.broker.test_disk_faults import (
    SETTINGS,
    a_member_with,
    commit_at_last,
    until,
)

__all__ = ["broken_disk"]


def _failure(number: int) -> Callable[[str], Exception]:
    return lambda path: OSError(number, os.strerror(number), path)


SHORTAGES = {
    "EMFILE": _failure(errno.EMFILE),
    "ENFILE": _failure(errno.ENFILE),
    "ENOMEM": _failure(errno.ENOMEM),
    "MemoryError": lambda _: MemoryError(),
}


def test_shortages_are_distinguished_from_failures() -> None:
    for raises in SHORTAGES.values():
        assert shortage(raises("f")) is not None
    assert shortage(OSError(errno.ENOSPC, "full")) == "disk full"
    for other in (OSError(errno.EIO, "bad"), ValueError(), SyncFailed(errno.ENOSPC, "fsync")):
        assert shortage(other) is None


@pytest.mark.parametrize("raises", [SHORTAGES["EMFILE"], SHORTAGES["MemoryError"]])
@pytest.mark.parametrize("where", ["/__consumer_offsets-", "rollcall-journal", "/"])
async def test_a_shortage_anywhere_ends_by_itself(
    tmp_path: Path, broken_disk: FaultyDisk, where: str, raises: Callable[[str], Exception]
) -> None:
    """Each operation in turn is the first that fails; the next commits go through by themselves."""
    async with Node(tmp_path, {**SETTINGS, "rollcall_checkpoint_idle_ms": 5}) as node:
        member = await a_member_with(node, 1)
        node.daemon.ownership._sleep = _shorter
        offset = 1
        for countdown in (0, 2, 5):
            broken_disk.raises, broken_disk.failing = raises, where
            broken_disk.countdown = countdown
            for _ in range(6):
                offset += 1
                await member.commit(offset)
                await asyncio.sleep(0.003)
            broken_disk.failing = ""
            offset += 1
            await commit_at_last(member, offset)
            await until(lambda: node.daemon.health.ready)
            assert await member.committed() == offset
            assert node.daemon.ownership.failed == {}
        assert broken_disk.refused > 2
        assert "until a restart" not in node.log.getvalue()

    async with Node(tmp_path) as node:
        again = as_other(member, await node.client())
        assert await again.committed() == offset


async def _shorter(_: float) -> None:
    await asyncio.sleep(0.002)


async def test_a_partition_that_was_not_loaded_for_want_of_descriptors_is_tried_again(
    tmp_path: Path, broken_disk: FaultyDisk
) -> None:
    async with Node(tmp_path, SETTINGS) as node:
        member = await a_member_with(node, 7)
        partition = node.daemon.coordinator.partition_for(member.group_id)
    folder = f"/__consumer_offsets-{partition}"
    async with Node(tmp_path, SETTINGS) as node:
        ownership = node.daemon.ownership
        ownership._sleep = _shorter
        await ownership.resign(partition)
        broken_disk.failing = folder
        await ownership.elect([partition])
        assert "Too many open files" in ownership.failed[partition]
        assert f"not served: partition {partition}" in str(node.daemon.health.reason)
        broken_disk.failing = ""
        await until(lambda: not ownership.failed and node.daemon.health.ready)
        again = as_other(member, await node.client())
        assert await again.committed() == 7


# --- a full disk at a start ----------------------------------------------------------------------


def left_by_a_kill(folder: Path, to: Path) -> Path:
    shutil.copytree(folder / "data", to / "data")
    return to


async def test_a_start_on_a_full_disk_serves_what_it_has_and_writes_when_there_is_room(
    tmp_path: Path, broken_disk: FaultyDisk
) -> None:
    async with Node(tmp_path, SETTINGS) as node:
        member = await a_member_with(node, 7)
        left = left_by_a_kill(tmp_path, tmp_path / "left")
    broken_disk.full_for = "/"
    async with Node(left, SETTINGS) as node:
        node.daemon.ownership._sleep = _shorter
        again = as_other(member, await node.client())
        assert await again.committed() == 7
        assert await again.commit(8) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert str(node.daemon.health.reason).startswith("the journal has failed: disk full: ")
        assert "until the disk has room again" in node.log.getvalue()
        broken_disk.full_for = ""
        await until(lambda: node.daemon.health.ready)
        await commit_at_last(again, 9)
        assert await again.committed() == 9
    async with Node(left) as node:
        assert await as_other(member, await node.client()).committed() == 9


async def test_acknowledged_bytes_that_do_not_fit_forbid_the_start_and_are_named(
    tmp_path: Path, broken_disk: FaultyDisk
) -> None:
    async with Node(tmp_path, SETTINGS) as node:
        member = await a_member_with(node, 7)
        partition = node.daemon.coordinator.partition_for(member.group_id)
        left = left_by_a_kill(tmp_path, tmp_path / "left")
    # The power went: the journal alone has what was acknowledged.
    folder = left / "data" / f"__consumer_offsets-{partition}"
    for log in folder.glob("*.log"):
        log.write_bytes(b"")
    broken_disk.full_for = "/"
    with pytest.raises(OSError, match=r"no room for \d+ bytes that were acknowledged.*offsets-"):
        await Node(left, SETTINGS).__aenter__()
    broken_disk.full_for = ""


# --- a flush that hangs --------------------------------------------------------------------------


async def test_a_flush_that_hangs_is_reported_and_ends_readiness(
    tmp_path: Path, broken_disk: FaultyDisk
) -> None:
    async with Node(tmp_path, {**SETTINGS, "rollcall_flush_stalled_ms": 40}) as node:
        member = await a_member_with(node, 1)
        await until(lambda: node.daemon.health.ready)
        assert node.daemon.journal.flush_age_s == 0.0
        broken_disk.may_sync.clear()
        member.client.ask(member.commit_request(2), 9)
        await until(lambda: "A flush of the journal takes long" in node.log.getvalue())
        assert not node.daemon.health.ready
        assert str(node.daemon.health.reason).startswith("a flush of the journal has been running")
        assert node.daemon.journal.flush_age_s >= 0.04
        broken_disk.may_sync.set()
        await member.client.answer()
        await until(lambda: "that took long has ended" in node.log.getvalue())
        assert node.daemon.health.ready
