"""Damaged catalog: a start with a catalog or a topic id that is absent, torn, damaged or too new.

It serves, or it refuses in a line that says what helps, and that does help: no dead end, no
traceback, and no offset of a group is lost. The folders beside it: strays, copies, and what only
looks like a partition.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from protocol.names import ErrorCode, TopicName
from storage.api import Corrupt, NewerFormat
from storage.log.log_store import CLEAN_SHUTDOWN
from storage.open import TOPICS_FILE
from storage.repair.repair import repair_hint
from tests.broker.members import Member, as_other, make_topic
from tests.broker.node import Node

SETTINGS: dict[str, int | str | bool] = {
    "offsets_topic_num_partitions": 2,
    "rollcall_history_enable": False,
}

DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "cut": lambda content: content[: len(content) // 2],
    "zeros": lambda content: bytes(len(content)),
    "no text": lambda _: b"\xff\xfe\x00",
    "another's": lambda _: b"hello\n",
    "too new": lambda content: content.replace(b'"format": 1', b'"format": 9').replace(
        b"version: 0", b"version: 9"
    ),
}


def node(folder: Path, *, repair: bool = False) -> Node:
    node = Node(folder, SETTINGS)
    node.repair = repair
    return node


async def stopped(tmp_path: Path) -> Member:
    """A stopped daemon's directory: a topic, and a group with a commit in it."""
    async with node(tmp_path) as running:
        member = Member(await running.client())
        await make_topic(member.client)
        await member.enter()
        assert await member.commit(7) is ErrorCode.NONE
    return member


async def topic_is(running: Node, name: str = "t") -> tuple[ErrorCode, list[ErrorCode]]:
    """The errors of a topic and of its partitions, as clients hear them."""
    request = MetadataRequest(
        [MetadataRequestTopic(name=TopicName(name))], allow_auto_topic_creation=False
    )
    answer = await (await running.client()).call(request)
    assert isinstance(answer, MetadataResponse)
    (topic,) = answer.topics
    return topic.error_code, [partition.error_code for partition in topic.partitions]


async def start(tmp_path: Path, member: Member) -> tuple[str, list[ErrorCode]]:
    """Start, as the refusal advises if there is one; what was logged, the topic's partitions."""
    running = node(tmp_path)
    try:
        async with running:
            return await _log_and_partitions(running, member)
    except Corrupt as damage:
        refusal = repair_hint(damage)
    assert "--repair" in refusal
    assert len(refusal.splitlines()) == 1
    running = node(tmp_path, repair=True)
    async with running:
        log, _ = await _log_and_partitions(running, member)
        assert "Nothing that was stored is damaged" not in log
    async with node(tmp_path) as running:  # and then without
        _, partitions = await _log_and_partitions(running, member)
    return log, partitions


async def _log_and_partitions(running: Node, member: Member) -> tuple[str, list[ErrorCode]]:
    again = as_other(member, await running.client())
    assert await again.committed() == 7
    error_code, partitions = await topic_is(running)
    assert error_code is ErrorCode.NONE
    assert len(partitions) == 1
    return running.log.getvalue(), partitions


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_catalog_is_rebuilt_by_a_repair(tmp_path: Path, damage: str) -> None:
    member = await stopped(tmp_path)
    path = tmp_path / "data" / TOPICS_FILE
    sound = path.read_bytes()
    path.write_bytes(DAMAGES[damage](sound))
    if damage == "too new":
        for repair in (False, True):
            with pytest.raises(NewerFormat, match="newer Rollcall"):
                await node(tmp_path, repair=repair).__aenter__()
            assert (
                tmp_path / "data" / CLEAN_SHUTDOWN
            ).exists()  # the newer one finds all as it was
        path.write_bytes(sound)
    log, partitions = await start(tmp_path, member)
    assert partitions == [ErrorCode.NONE]
    if damage != "too new":
        assert "Rebuilt the damaged topic catalog" in log
        assert "configs of topics are lost" in log
        kept = path.with_name(f"{TOPICS_FILE}.damaged")
        assert kept.read_bytes() == DAMAGES[damage](sound)


async def test_without_a_catalog_the_folders_say_it(tmp_path: Path) -> None:
    member = await stopped(tmp_path)
    path = tmp_path / "data" / TOPICS_FILE
    before = json.loads(path.read_text())
    path.unlink()
    log, partitions = await start(tmp_path, member)
    assert partitions == [ErrorCode.NONE]
    assert "Found logs of a topic" in log
    after = json.loads(path.read_text())
    ids = {topic["name"]: topic["id"] for topic in before["topics"]}
    assert {topic["name"]: topic["id"] for topic in after["topics"]} == ids


@pytest.mark.parametrize("folder", ["t-0", "__consumer_offsets-0", "__consumer_offsets-1"])
@pytest.mark.parametrize("damage", ["absent", *DAMAGES])
async def test_a_topic_id_that_cannot_be_read_ends_no_start_in_a_traceback(
    tmp_path: Path, folder: str, damage: str
) -> None:
    member = await stopped(tmp_path)
    path = tmp_path / "data" / folder / "partition.metadata"
    if damage == "absent":
        path.unlink()
    else:
        path.write_bytes(DAMAGES[damage](path.read_bytes()))
    _, partitions = await start(tmp_path, member)
    if folder == "t-0" and partitions != [ErrorCode.NONE]:
        # Set aside; a repair brings it back, for the catalog knows its topic.
        assert partitions == [ErrorCode.LEADER_NOT_AVAILABLE]
        async with node(tmp_path, repair=True) as running:
            assert await topic_is(running) == (ErrorCode.NONE, [ErrorCode.NONE])
    # From then on the id is there.
    async with node(tmp_path) as running:
        assert await topic_is(running) == (ErrorCode.NONE, [ErrorCode.NONE])
    assert b"topic_id: " in path.read_bytes()


async def test_folders_that_are_no_partitions_change_nothing(tmp_path: Path) -> None:
    member = await stopped(tmp_path)
    data = tmp_path / "data"
    (data / "backup-7").mkdir()
    (data / "backup-7" / "notes.txt").write_text("mine")
    shutil.copytree(data / "t-0", data / "backup-20261122")
    (data / "t-3").mkdir()
    log, _ = await start(tmp_path, member)
    assert "Left a folder alone" in log
    assert (data / "backup-7" / "notes.txt").exists()
    assert (data / "backup-20261122").exists()
    async with node(tmp_path) as running:
        assert (await topic_is(running, "backup"))[0] is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert "backup" not in (data / TOPICS_FILE).read_text()


async def test_a_copy_of_a_folder_is_set_aside(tmp_path: Path) -> None:
    member = await stopped(tmp_path)
    data = tmp_path / "data"
    shutil.copytree(data / "t-0", data / "copy-0")
    log, partitions = await start(tmp_path, member)
    assert partitions == [ErrorCode.NONE]
    assert "Set aside a folder that no topic owns" in log
    assert not (data / "copy-0").exists()
    assert [path.name for path in data.iterdir() if path.name.endswith("-stray")]


async def test_a_folder_with_another_topic_id_forbids_no_start(tmp_path: Path) -> None:
    member = await stopped(tmp_path)
    data = tmp_path / "data"
    (data / "t-0" / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
    log, partitions = await start(tmp_path, member)
    assert partitions == [ErrorCode.LEADER_NOT_AVAILABLE]
    assert "start once with --repair" in log
    async with node(tmp_path, repair=True) as running:
        logged, partitions = await _log_and_partitions(running, member)
    assert partitions == [ErrorCode.NONE]
    assert "Set aside a folder" in logged
    assert "Nothing that was stored is damaged" not in logged


async def test_missing_partitions_of_a_found_topic_are_logged_in_one_line(
    tmp_path: Path,
) -> None:
    await stopped(tmp_path)
    data = tmp_path / "data"
    (data / "found-300").mkdir()
    (data / "found-300" / "partition.metadata").write_text(
        "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
    )
    async with node(tmp_path) as running:
        _, partitions = await topic_is(running, "found")
        lines = [line for line in running.log.getvalue().splitlines() if "topic=found" in line]
    assert partitions == [ErrorCode.LEADER_NOT_AVAILABLE] * 300 + [ErrorCode.NONE]
    assert len([line for line in lines if "not served" in line]) == 1
    assert not (data / "found-7").exists()
