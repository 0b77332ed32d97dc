"""Compiled OffsetCommit: the function in C accepts partitions as the one in Python does."""

import random
from collections.abc import Sequence
from typing import Final
from uuid import UUID

import pytest

from coordinator.group import CommittedOffset
from coordinator.offsets.offset_commit import (
    STORED,
    Accepted,
    accept_in_python,
    are_there_in_python,
)
from coordinator.settings import GroupSettings
from protocol.compiled_codec import function_in_c
from protocol.messages.offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitResponsePartition,
)
from tests.build import IS_COMPILED

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="of the compiled build")

TOPIC_ID: Final = UUID(int=7)
METADATA_MAX: Final = 40
SETTINGS: Final = GroupSettings(offset_metadata_max_bytes=METADATA_MAX)
INT64_MAX: Final = (1 << 63) - 1


def accepted_in_c(
    partitions: Sequence[OffsetCommitRequestPartition],
    at_ms: int = 1_790_000_000_000,
    expire_at_ms: int = -1,
    metadata_max: int = METADATA_MAX,
) -> Accepted | None:
    accept = function_in_c("accept_commits")
    assert accept is not None
    found: Accepted | None = accept(partitions, STORED, metadata_max, at_ms, expire_at_ms, TOPIC_ID)
    return found


def any_partition(dice: random.Random) -> OffsetCommitRequestPartition:
    return OffsetCommitRequestPartition(
        dice.choice((0, 1, 2, 9, len(STORED) - 1, len(STORED), (1 << 31) - 1)),
        dice.choice((-1, 0, 1 << 40, INT64_MAX, -1 << 63)),
        dice.choice((-1, 0, (1 << 31) - 1)),
        dice.choice(
            (None, "", "note", "x" * METADATA_MAX, "x" * (METADATA_MAX + 1), "mö", "😀" * 21)
        ),
    )


def test_any_partitions() -> None:
    dice = random.Random(20261129)
    in_c = 0
    for _ in range(4_000):
        partitions = [any_partition(dice) for _ in range(dice.randrange(1, 5))]
        given = dice.choice((tuple(partitions), partitions))
        at_ms, expire_at_ms = dice.choice((0, INT64_MAX)), dice.choice((-1, 1 << 41, -1 << 63))
        found = accepted_in_c(given, at_ms, expire_at_ms)
        if found is not None:
            in_c += 1
            assert found == accept_in_python(given, SETTINGS, at_ms, expire_at_ms, TOPIC_ID)
    assert in_c > 500


def test_any_partitions_of_any_topic() -> None:
    are_there = function_in_c("are_there")
    assert are_there is not None
    dice = random.Random(20261129)
    answers = set()
    for _ in range(2_000):
        partitions = [any_partition(dice) for _ in range(dice.randrange(1, 5))]
        given = dice.choice((tuple(partitions), partitions))
        count = dice.choice((0, 1, 3, 10, len(STORED) + 1, 1 << 31))
        found = are_there(given, count)
        assert found is are_there_in_python(given, count)
        answers.add(found)
    assert answers == {False, True}
    assert not are_there([OffsetCommitRequestPartition(-1, 5)], 1)
    assert are_there([OffsetCommitRequestPartition(1 << 63, 5)], 1) is None
    assert are_there([object()], 1) is None


def test_usual_partitions_are_not_left_to_python() -> None:
    partitions = [OffsetCommitRequestPartition(n, 5, 1, None) for n in (3, 0, 3)]
    partitions[2].committed_metadata = "note"

    found = accepted_in_c(partitions)

    assert found is not None
    assert found[0] == [OffsetCommitResponsePartition(n) for n in (3, 0, 3)]
    assert list(found[1]) == [3, 0]
    assert found[1][3] == CommittedOffset(5, 1, "note", 1_790_000_000_000, -1, TOPIC_ID)


@pytest.mark.parametrize(
    "odd",
    [
        OffsetCommitRequestPartition(0, 1 << 63),
        OffsetCommitRequestPartition(0, 1, 1 << 31),
        OffsetCommitRequestPartition(-1),
        OffsetCommitRequestPartition(0, 1, 1, "x" * (METADATA_MAX + 1)),
        OffsetCommitRequestPartition(0, 1, 1, "ö"),
    ],
)
def test_what_is_odd_is_left_to_python(odd: OffsetCommitRequestPartition) -> None:
    assert accepted_in_c([OffsetCommitRequestPartition(1), odd]) is None


def test_metadata_that_fits_no_string_is_left_to_python() -> None:
    long = OffsetCommitRequestPartition(0, 1, 1, "x" * 32_768)

    assert accepted_in_c([long], metadata_max=1 << 20) is None


def test_what_is_no_request_is_left_to_python() -> None:
    assert accepted_in_c([OffsetCommitResponsePartition()]) is None  # type: ignore[list-item]
