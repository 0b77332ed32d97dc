"""Opening: what a start reports of the data directory: torn tails, restored records."""

from pathlib import Path

import pytest

from protocol.names import ErrorCode
from tests.broker.members import Member, as_other, make_topic
from tests.broker.node import Node

SETTINGS = {"rollcall_checkpoint_idle_ms": 3_600_000}


async def test_a_torn_tail_is_logged_as_restored_by_the_journal(
    tmp_path: Path,
) -> None:
    async with Node(tmp_path, SETTINGS) as node:
        client = await node.client()
        await make_topic(client)
        member = Member(client)
        await member.enter()
        assert await member.commit(7) is ErrorCode.NONE
        # What a kill leaves now, with the end of the segment torn off.
        partition = node.daemon.coordinator.partition_for(member.group_id)
        segment = _left_by_a_kill(tmp_path, partition)

    async with Node(tmp_path / "left", SETTINGS) as node:
        again = as_other(member, await node.client())
        assert await again.committed() == 7
        log = node.log.getvalue()
        assert "Cut a torn tail" in log
        assert str(segment) in log
        assert "restored_by_the_journal=True" in log


async def test_a_repair_where_nothing_is_damaged_says_so(tmp_path: Path) -> None:
    async with Node(tmp_path, SETTINGS) as node:
        client = await node.client()
        await make_topic(client)
        member = Member(client)
        await member.enter()
        assert await member.commit(7) is ErrorCode.NONE
        _left_by_a_kill(tmp_path, node.daemon.coordinator.partition_for(member.group_id))

    node = Node(tmp_path / "left", SETTINGS)
    node.repair = True
    async with node:
        again = as_other(member, await node.client())
        assert await again.committed() == 7
        log = node.log.getvalue()
        assert "Nothing that was stored is damaged" in log
        assert "restored_by_the_journal=True" in log
        assert "aside" not in log
        assert "Lost" not in log


@pytest.mark.parametrize("is_clean", [True, False])
async def test_rebuilt_indexes_are_a_warning_only_after_a_clean_stop(
    tmp_path: Path, is_clean: bool
) -> None:
    async with Node(tmp_path) as node:
        client = await node.client()
        await make_topic(client)
        member = Member(client)
        await member.enter()
        for offset in range(60):  # enough for an entry
            assert await member.commit(offset) is ErrorCode.NONE
        partition = node.daemon.coordinator.partition_for(member.group_id)
    data = tmp_path / "data"
    for path in (data / f"__consumer_offsets-{partition}").glob("*index"):
        path.unlink()
    if not is_clean:
        (data / ".kafka_cleanshutdown").unlink()
    async with Node(tmp_path) as node:
        (line,) = [
            line for line in node.log.getvalue().splitlines() if "Rebuilt the indexes" in line
        ]
        assert ("WARN" in line.upper()) == is_clean


async def test_the_offsets_topic_keeps_its_number_of_partitions(tmp_path: Path) -> None:
    async with Node(tmp_path, {"offsets_topic_num_partitions": 4}) as node:
        client = await node.client()
        await make_topic(client)
        member = Member(client)
        await member.enter()
        assert await member.commit(7) is ErrorCode.NONE

    async with Node(tmp_path, {"offsets_topic_num_partitions": 50}) as node:
        assert node.daemon.config.offsets_topic_num_partitions == 4
        again = as_other(member, await node.client())
        assert await again.committed() == 7
        assert await again.beat() is ErrorCode.NONE
        assert node.daemon.ownership.owned == 4
        log = node.log.getvalue()
        assert "offsets.topic.num.partitions" in log
        assert "asked=50 kept=4" in log


def _left_by_a_kill(tmp_path: Path, partition: int) -> Path:
    """A copy of the data in its current state, with a torn segment; which one."""
    data, left = tmp_path / "data", tmp_path / "left" / "data"
    for path in data.rglob("*"):
        if path.is_file() and path.name != ".lock":
            copy = left / path.relative_to(data)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    (segment,) = (left / f"__consumer_offsets-{partition}").glob("*.log")
    segment.write_bytes(segment.read_bytes()[:-9])
    return segment
