"""What a start says of the data directory: torn tails and who restored them, partitions kept."""

from pathlib import Path

from protocol.names import ErrorCode
from tests.broker.members import Member, as_other, make_topic
from tests.broker.node import Node

SETTINGS = {"rollcall_checkpoint_idle_ms": 3_600_000}


async def test_a_torn_tail_is_told_with_the_word_that_the_journal_restored_it(
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
        told = node.log.getvalue()
        assert "kind=TailCut" in told
        assert str(segment) in told
        assert "restored_by_the_journal=True" in told


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
        told = node.log.getvalue()
        assert "offsets.topic.num.partitions" in told
        assert "asked=50 kept=4" in told


def _left_by_a_kill(tmp_path: Path, partition: int) -> Path:
    """A copy of the data, as it lies there now, with a torn segment; which one."""
    data, left = tmp_path / "data", tmp_path / "left" / "data"
    for path in data.rglob("*"):
        if path.is_file() and path.name != ".lock":
            copy = left / path.relative_to(data)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    (segment,) = (left / f"__consumer_offsets-{partition}").glob("*.log")
    segment.write_bytes(segment.read_bytes()[:-9])
    return segment
