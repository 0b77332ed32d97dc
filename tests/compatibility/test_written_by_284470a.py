"""Stored formats: a data directory of 284470a opens unchanged.

`written_by_284470a/` has what that commit wrote and what it answered about it; make_fixtures.py
says how. Each test opens a copy with today's daemon or commands and wants the same answers. The
lake of that commit is in tests/pipeline/test_written_by_284470a.py.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.compatibility.answers import (
    last_batch,
    loaded_records,
    missing,
    offline_answers,
    online_answers,
    produced_again,
)
from tests.compatibility.clients import IDEMPOTENT_TOPIC
from tests.compatibility.versions import TODAY, VersionDaemon, cut_to, expected, unpack

Open = Callable[..., VersionDaemon]
BOTH = pytest.mark.parametrize("name", ["stopped", "killed"])


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """`opened(name)`: today's daemon on a copy, a minute after the fixture was written."""
    daemons: list[VersionDaemon] = []

    def start(
        name: str, *, sizes: Mapping[str, int] | None = None, without: str | None = None
    ) -> VersionDaemon:
        daemon = TODAY.daemon(tmp_path, said(name)["at_ms"])
        cut_to(unpack(name, daemon.data_dir), sizes or {})
        if without is not None:
            removed = list(daemon.data_dir.glob(without))
            assert removed
            for path in removed:
                path.unlink()
        daemons.append(daemon)
        return daemon.start()

    yield start
    for daemon in daemons:
        daemon.close()


def said(name: str) -> dict[str, Any]:
    return expected(name)


def unlike(wanted: Mapping[str, Any], found: Mapping[str, object]) -> list[str]:
    return list(missing({part: wanted[part] for part in found}, found))


@BOTH
def test_todays_daemon_answers_as_the_one_that_wrote_it(opened: Open, name: str) -> None:
    wanted = said(name)
    daemon = opened(name)
    batch = last_batch(daemon.data_dir / f"{IDEMPOTENT_TOPIC}-0")
    found = online_answers(daemon, wanted["until_ms"])
    found["produced_again"] = produced_again(daemon, IDEMPOTENT_TOPIC, batch)

    assert unlike(wanted, found) == []
    assert [line for line in daemon.lines() if line["level"] in ("warning", "error")] == []


def test_without_its_snapshots_a_load_reads_more(opened: Open) -> None:
    """So `loaded_records` of the answers above shows that they were used."""
    wanted = said("killed")
    daemon = opened("killed", without="*/*.groups")

    assert int(str(loaded_records(daemon))) > wanted["loaded_records"]


def test_the_journal_has_what_a_cut_of_power_took_from_the_logs(opened: Open) -> None:
    wanted = said("killed")
    assert len(wanted["synced"]) > 2
    daemon = opened("killed", sizes=wanted["synced"])

    found = online_answers(daemon, wanted["until_ms"])
    del found["loaded_records"]  # it may depend on where the log was cut
    assert unlike(wanted, found) == []


@BOTH
def test_the_commands_read_the_files_as_before(tmp_path: Path, name: str) -> None:
    wanted = said(name)
    found = offline_answers(TODAY, unpack(name, tmp_path), wanted["at_ms"])

    assert wanted["lint"] == {"exit_code": 0, "wrong": []}
    assert unlike(wanted, found) == []


def test_every_kind_of_content_is_in_the_fixtures() -> None:
    """Or the tests above would show less than they seem to."""
    stopped, killed = said("stopped"), said("killed")
    groups = killed["groups"].values()
    events = [event for events in killed["history"].values() for event in events]

    assert {group["state"] for group in groups} == {"STABLE", "EMPTY"}
    assert any(member["group_instance_id"] for group in groups for member in group["members"])
    assert any(offset["metadata"] for group in groups for offset in group["offsets"].values())
    assert {event["type"] for event in events} >= {
        "group_created", "group_deleted", "group_emptied", "group_loaded", "generation_assigned",
        "generation_began", "member_joined", "members_removed", "offsets_moved", "rebalance_began",
        "rebalance_ended", "static_member_replaced",
    }  # fmt: skip
    assert stopped["records"]["__group_lag-0"]["samples"]["aio"] > 100
    assert set(killed["groups"]) - set(stopped["groups"]) == {"new"}
    assert all(stopped["topics"][name]["configs"] for name in ("orders", "payments", "customers"))
    assert json.dumps(killed["history"]["deleted"])
