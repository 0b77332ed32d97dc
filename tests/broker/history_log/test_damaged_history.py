"""A damaged `__group_history`: does the coordinator start, and is it said what cannot be read?

Runs the whole daemon on real files: groups with a history, a clean stop, damage of many kinds in
the history's segment, and a start. Groups and offsets must be there, whatever the damage.
"""

import shutil
from contextlib import suppress
from pathlib import Path
from uuid import UUID

import pytest

from broker.history_log.view import HistoryView
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from protocol.names import ErrorCode, GroupId, TopicName
from storage.api import Corrupt
from storage.batch.record_batch import iter_batches
from storage.log.checkpoints import encode_uuid
from tests.broker.node import Node
from tests.broker.shell import Client

HEADER_FIELDS = {
    "base offset": 0,
    "base offset, low byte": 7,
    "length": 8,
    "length, low byte": 11,
    "leader epoch": 12,
    "magic": 16,
    "checksum": 17,
    "attributes": 22,
    "last offset delta": 23,
    "last offset delta, low byte": 26,
    "first timestamp": 27,
    "producer": 43,
    "record count": 57,
    "record count, low byte": 60,
    "record length": 61,
    "record key": 68,
}


TOPIC = TopicName("t")


async def commit(client: Client, offset: int) -> None:
    """By nobody in the group, and back and forth: each is a fact of the history."""
    topics = (
        OffsetCommitRequestTopic(TOPIC, partitions=(OffsetCommitRequestPartition(0, offset),)),
    )
    answer = await client.call(OffsetCommitRequest(GroupId("g"), topics=topics), 9)
    assert isinstance(answer, OffsetCommitResponse)
    assert answer.topics[0].partitions[0].error_code is ErrorCode.NONE


async def remembered(folder: Path) -> Path:
    """A daemon that has remembered some commits of nobody, stopped cleanly; its history's file."""
    async with Node(folder) as node:
        client = await node.client()
        await client.call(CreateTopicsRequest((CreatableTopic(TOPIC, 1, 1),)))
        for number in range(5):
            await commit(client, 10 - number)
        client.close()
    (path,) = (folder / "data" / "__group_history-0").glob("*.log")
    assert len(list(iter_batches(path.read_bytes()))) >= 3
    return path


async def check_served(folder: Path) -> str:
    """A start serves the group, reads what is left of its history, and writes on; the log."""
    node = Node(folder)
    async with node:
        group = node.daemon.coordinator.group(GroupId("g"))
        assert group is not None
        assert group.offsets
        history = node.daemon.history
        assert history is not None
        view = HistoryView(history, node.daemon.coordinator, node.daemon.clock)
        with suppress(Corrupt):  # what the console says in one line
            await view.events("g", 100, ())
            await view.rebalances("g", 100)
        client = await node.client()
        await commit(client, 100)
        client.close()
    assert "Traceback" not in node.log.getvalue()
    return node.log.getvalue()


@pytest.mark.parametrize("batch", [0, -1], ids=["first", "last"])
@pytest.mark.parametrize("field", HEADER_FIELDS)
async def test_a_flipped_byte_after_a_clean_stop(tmp_path: Path, field: str, batch: int) -> None:
    path = await remembered(tmp_path)
    content = bytearray(path.read_bytes())
    at = [position for position, _ in iter_batches(bytes(content))][batch]
    content[at + HEADER_FIELDS[field]] ^= 0xFF
    path.write_bytes(content)

    await check_served(tmp_path)


@pytest.mark.parametrize("damage", ["empty", "cut", "cut header", "zeros", "text", "absent"])
async def test_a_file_that_is_no_history_any_more(tmp_path: Path, damage: str) -> None:
    path = await remembered(tmp_path)
    content = path.read_bytes()
    match damage:
        case "empty":
            path.write_bytes(b"")
        case "cut":
            path.write_bytes(content[:-10])
        case "cut header":
            path.write_bytes(content[:40])
        case "zeros":
            path.write_bytes(bytes(len(content)))
        case "text":
            path.write_bytes(b"\xff no batch at all " * 50)
        case "absent":
            path.unlink()

    await check_served(tmp_path)


async def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    path = await remembered(tmp_path)
    content = bytearray(path.read_bytes())
    content[57] = 0xFF  # the count of records is negative
    path.write_bytes(content)

    assert "group history cannot be read" in await check_served(tmp_path)


async def killed(folder: Path, tmp_path: Path) -> Path:
    """What a kill leaves: a history below its recovery point, and one that the journal has too."""
    await remembered(folder)
    async with Node(folder) as node:
        client = await node.client()
        await commit(client, 20)
        await commit(client, 15)
        assert node.daemon.recording_boot is not None
        await node.daemon.recording_boot  # it writes a file beside those that are copied
        shutil.copytree(folder / "data", tmp_path / "killed" / "data")
        client.close()
    return tmp_path / "killed"


def other_topic_id(history: Path) -> None:
    path = history / "partition.metadata"
    version, _, _ = path.read_text().partition("\n")
    path.write_text(f"{version}\ntopic_id: {encode_uuid(UUID(int=7))}")


def flip(history: Path) -> None:
    (path,) = history.glob("*.log")
    content = bytearray(path.read_bytes())
    content[30] ^= 0xFF
    path.write_bytes(content)


AFTER_A_KILL = {
    "a flipped byte": flip,
    "an empty file": lambda history: next(history.glob("*.log")).write_bytes(b""),
    "no file": lambda history: next(history.glob("*.log")).unlink(),
    "no folder": shutil.rmtree,
    "another topic id": other_topic_id,
}


@pytest.mark.parametrize("damage", AFTER_A_KILL)
async def test_damage_after_a_kill_while_the_journal_has_records_of_it(
    tmp_path: Path, damage: str
) -> None:
    (tmp_path / "first").mkdir()
    folder = await killed(tmp_path / "first", tmp_path)
    AFTER_A_KILL[damage](folder / "data" / "__group_history-0")

    log = await check_served(folder)

    assert "__group_history" in log
    copies = list((folder / "data").glob("rollcall-journal*.damaged"))
    assert bool(copies) == ("Left out" in log)
    await check_served(folder)
