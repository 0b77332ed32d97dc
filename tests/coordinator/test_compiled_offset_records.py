"""Compiled offset records: the function in C adds the records that the one in Python adds."""

import random
from collections.abc import Mapping
from uuid import UUID

import pytest

from coordinator.group import CommittedOffset
from coordinator.offsets.committed_offsets import offsets_by_partition
from coordinator.records import add_in_python, add_offset_commits, offset_key_prefix
from protocol.compiled_codec import function_in_c
from protocol.names import GroupId, TopicId, TopicName
from storage.api import RecordPair
from tests.build import IS_COMPILED

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="of the compiled build")

GROUP, TOPIC = GroupId("grüppe"), TopicName("orders")
BEFORE: RecordPair = (b"already", b"there")


def outcome(commits: Mapping[int, CommittedOffset], version: int, *, in_python: bool) -> object:
    records = [BEFORE]
    try:
        if in_python:
            add_in_python(records, offset_key_prefix(GROUP, TOPIC), commits, version)
        else:
            add_offset_commits(records, GROUP, TOPIC, commits, version)
    except Exception as fault:
        return repr(fault)
    return records


def assert_same(commits: Mapping[int, CommittedOffset], version: int = 4) -> None:
    assert outcome(commits, version, in_python=False) == outcome(commits, version, in_python=True)


def assert_same_in_rows(commits: Mapping[int, CommittedOffset], version: int = 4) -> None:
    expected = outcome(commits, version, in_python=True)
    assert outcome(offsets_by_partition(commits), version, in_python=False) == expected


def commit_of(dice: random.Random, topic_ids: list[TopicId]) -> CommittedOffset:
    return CommittedOffset(
        dice.choice((0, -1, 1 << 40, (1 << 63) - 1, dice.randrange(1 << 62))),
        dice.choice((-1, 0, (1 << 31) - 1)),
        dice.choice(("", "", "", "mö")),
        dice.randrange(1 << 42),
        dice.choice((-1, -1, -1, 1 << 41)),
        dice.choice(topic_ids),
    )


@pytest.mark.parametrize("version", [3, 4])
def test_any_commits(version: int) -> None:
    dice = random.Random(20261128)
    topic_ids = [UUID(int=number) for number in (0, 1, 1 << 127)]
    for _ in range(500):
        partitions = [dice.choice((0, 1, 9, 1 << 20, (1 << 31) - 1)) for _ in range(4)]
        commits = {partition: commit_of(dice, topic_ids) for partition in partitions}
        assert_same(commits, version)
        assert_same_in_rows(commits, version)


def test_plain_commits_are_not_left_to_python() -> None:
    add = function_in_c("add_offset_commits")
    records: list[RecordPair] = []

    assert add is not None
    assert add(records, b"prefix", {3: CommittedOffset(7)}, lambda _topic_id: b"\x00")
    assert records[0][0] == b"prefix\x00\x00\x00\x03"
    assert add(records, b"prefix", offsets_by_partition({4: CommittedOffset(8)}), lambda _: b"\x00")
    assert records[1][0] == b"prefix\x00\x00\x00\x04"


@pytest.mark.parametrize(
    "odd",
    [CommittedOffset(1 << 63), CommittedOffset(1, 1 << 31), CommittedOffset(1, -1, "", 1 << 63)],
)
def test_numbers_that_do_not_fit(odd: CommittedOffset) -> None:
    assert_same({0: CommittedOffset(7), 1: odd})


def test_a_partition_that_does_not_fit() -> None:
    assert_same({0: CommittedOffset(7), 1 << 31: CommittedOffset(8)})
