"""Layout of a data directory: what is in it, also while a daemon changes it."""

import os
from pathlib import Path

import pytest

from logtools.layout import place_at


def test_a_topic_that_is_deleted_during_the_listing_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("orders-0", "refunds-0"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{0:020}.log").touch()
    list_folder = os.listdir

    def listdir(folder: Path) -> list[str]:
        if Path(folder).name == "refunds-0":
            raise FileNotFoundError(folder)
        return list_folder(folder)

    monkeypatch.setattr(os, "listdir", listdir)

    place = place_at(tmp_path, topic="orders")

    assert [(partition.topic, len(partition.segments)) for partition in place.partitions] == [
        ("orders", 1)
    ]


def test_folders_with_other_names_than_a_partitions_are_left_out(tmp_path: Path) -> None:
    for name in ("orders-7", "orders-007", f"orders-8.{'0' * 32}-stray", "my orders-9"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{0:020}.log").touch()

    assert [str(each) for each in place_at(tmp_path, topic="-").partitions] == ["orders-7"]
    # One that is pointed at is read all the same; its name says nothing of a partition.
    assert [str(each) for each in place_at(tmp_path / "orders-007", topic="-").partitions] == ["-"]
