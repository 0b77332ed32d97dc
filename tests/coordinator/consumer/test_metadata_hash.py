"""Metadata hash: the same number as Kafka's for the same topics.

`golden/hashes.jsonl` has the answers of Kafka 4.3.1 (`golden/make.py` records them).
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from coordinator.consumer.metadata_hash import group_hash, topic_hash
from protocol.names import TopicName

RECORDED = [
    json.loads(line)
    for line in (Path(__file__).parent / "golden/hashes.jsonl").read_text().splitlines()
]
T = TopicName("t")


def hashes_of(topics: list[dict[str, Any]]) -> dict[TopicName, int]:
    return {
        TopicName(topic["name"]): topic_hash(
            UUID(topic["id"]), topic["name"], len(topic["racks"]), topic["racks"]
        )
        for topic in topics
    }


@pytest.mark.parametrize("group", RECORDED, ids=range(len(RECORDED)))
def test_the_hashes_are_kafkas(group: dict[str, Any]) -> None:
    hashes = hashes_of(group["topics"])
    assert hashes == group["hashes"]
    assert group_hash(hashes) == group["group_hash"]


def test_the_records_have_all_lengths_and_signs() -> None:
    numbers = [group["group_hash"] for group in RECORDED]
    assert len(numbers) > 20
    assert min(numbers) < 0 < max(numbers)
    assert all(-(1 << 63) <= number < 1 << 63 for number in numbers)


def test_a_group_without_topics_has_the_hash_zero() -> None:
    assert group_hash({}) == 0


def test_every_part_of_a_topic_changes_its_hash() -> None:
    first_id, second_id = UUID(int=1), UUID(int=2)
    hashes = [
        topic_hash(first_id, "t", 2, ()),
        topic_hash(second_id, "t", 2, ()),
        topic_hash(first_id, "u", 2, ()),
        topic_hash(first_id, "t", 3, ()),
        topic_hash(first_id, "t", 2, (("a",), ())),
        topic_hash(first_id, "t", 2, ((), ("a",))),
        topic_hash(first_id, "t", 2, (("a",), ("b",))),
    ]
    assert len(set(hashes)) == len(hashes)


def test_no_racks_are_the_same_as_an_empty_list_for_each_partition() -> None:
    assert topic_hash(UUID(int=1), "t", 2, ()) == topic_hash(UUID(int=1), "t", 2, ((), ()))


def test_the_order_of_racks_and_of_topics_does_not_count() -> None:
    first_id = UUID(int=1)
    assert topic_hash(first_id, "t", 1, (("b", "a"),)) == topic_hash(
        first_id, "t", 1, (("a", "b"),)
    )
    u = TopicName("u")
    assert group_hash({T: 1, u: 2}) == group_hash({u: 2, T: 1}) != group_hash({T: 2, u: 1})


def test_xxhash_is_loaded_with_the_first_hash() -> None:
    code = (
        "import sys\n"
        "from coordinator.consumer.metadata_hash import group_hash\n"
        "assert 'xxhash' not in sys.modules\n"
        "group_hash({'t': 1})\n"
        "assert 'xxhash' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
