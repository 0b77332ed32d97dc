"""Given ids: a daemon under comparison makes the ids of another broker."""

from pathlib import Path
from uuid import UUID

import pytest

from broker.loop import ids
from storage.log.checkpoints import encode_uuid
from tests.compare.given_ids import give, take_from
from topics import topic_ids


def test_all_kinds_of_ids_are_taken_from_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for module, name in ((ids, "uuid4"), (ids, "urandom"), (topic_ids, "uuid4")):
        monkeypatch.setattr(module, name, getattr(module, name))  # and back after the test
    path = tmp_path / "ids.json"
    take_from(path)
    given = [UUID(f"{number:08x}-0000-4000-8000-000000000000") for number in range(3)]
    give(path, members=[str(given[0]), str(given[1])], topics=[str(given[2])])

    assert ids.new_member_id("a") == f"a-{given[0]}"
    assert ids.new_consumer_member_id() == encode_uuid(given[1])
    assert topic_ids.random_topic_id() == given[2]
    assert ids.new_member_id("a") != f"a-{given[0]}"
