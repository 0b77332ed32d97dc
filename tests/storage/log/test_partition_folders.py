"""Partition folders: which folder names are partitions, and what the others are."""

import pytest

from storage.api import TopicPartition
from storage.log.partition_folders import (
    DELETE_SUFFIX,
    FUTURE_SUFFIX,
    STRAY_SUFFIX,
    folder_name,
    is_deleted,
    parse_folder_name,
    rename_to_deleted,
    rename_to_stray,
    renamed_suffix,
)
from tests.storage.rig import DATA, TOPIC_ID, new_disk

UNIQUE = "0123456789abcdef0123456789abcdef"
LONGEST = "t" * 249


@pytest.mark.parametrize(
    ("name", "topic", "partition"),
    [
        ("orders-0", "orders", 0),
        ("orders-10", "orders", 10),
        ("orders.created.v1-3", "orders.created.v1", 3),
        ("orders-2024-7", "orders-2024", 7),
        ("orders--7", "orders-", 7),
        ("__consumer_offsets-49", "__consumer_offsets", 49),
        (f"{LONGEST}-0", LONGEST, 0),
        # A topic that is named like a renamed folder.
        (f"orders-0.{UNIQUE}-delete-3", f"orders-0.{UNIQUE}-delete", 3),
        # No broker has so many; the store leaves such a folder alone and says so.
        ("orders-2024010100", "orders", 2024010100),
    ],
)
def test_a_partitions_folder(name: str, topic: str, partition: int) -> None:
    key = TopicPartition(topic, partition)
    assert parse_folder_name(name) == key
    assert folder_name(key) == name
    assert renamed_suffix(name) is None


@pytest.mark.parametrize(
    "name",
    [
        "",
        "orders",
        "-0",
        "orders-",
        "orders-x",
        "orders-0 ",
        "orders-0\n",
        "lost+found",
        "my orders-0",
        f"{LONGEST}t-0",
        "orders-00",
        "orders-007",
        "orders-+7",
        "orders-\u0667",  # a digit of another script
        "orders-20240101000000",
        f"orders-0.{UNIQUE}-delete",
        f"orders-0.{UNIQUE}-future",
        f"orders-0.{UNIQUE}-stray",
    ],
)
def test_any_other_name_is_no_partitions(name: str) -> None:
    assert parse_folder_name(name) is None


@pytest.mark.parametrize("suffix", [DELETE_SUFFIX, FUTURE_SUFFIX, STRAY_SUFFIX])
def test_a_renamed_folder(suffix: str) -> None:
    assert renamed_suffix(f"orders-0.{UNIQUE}{suffix}") == suffix
    assert is_deleted(f"orders-0.{UNIQUE}{suffix}") == (suffix == DELETE_SUFFIX)
    # Not a name that a broker gives: somebody else's.
    for name in (f"orders-0{suffix}", f"orders-0.{UNIQUE[1:]}{suffix}", f"{UNIQUE}{suffix}"):
        assert renamed_suffix(name) is None


def test_what_is_renamed_is_no_partition_any_more() -> None:
    disk = new_disk()
    for partition in (0, 1):
        disk.make_dir(f"{DATA}/orders-{partition}")
    deleted = rename_to_deleted(disk, f"{DATA}/orders-0", TOPIC_ID)
    stray = rename_to_stray(disk, f"{DATA}/orders-1")
    assert deleted == f"{DATA}/orders-0.{TOPIC_ID.hex}-delete"
    assert sorted(f"{DATA}/{name}" for name in disk.listdir(DATA)) == sorted([deleted, stray])
    assert renamed_suffix(deleted.removeprefix(f"{DATA}/")) == DELETE_SUFFIX
    assert renamed_suffix(stray.removeprefix(f"{DATA}/")) == STRAY_SUFFIX
