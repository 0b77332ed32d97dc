"""Import history: after an import the history says who moved which offsets."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from history.causes import OffsetsBy
from history.encoding import decode
from history.entries import (
    GroupCreatedEntry,
    HistoryEntry,
    OffsetsMovedEntry,
)
from history.entry_values import (
    OffsetChange,
    RequestClient,
)
from history.recording.record_limits import RecordLimits
from protocol.names import HISTORY_TOPIC, GroupId
from storage.api import LogSettings, TopicPartition
from storage.batch.record_batch import stored_records
from storage.disk import RealDisk
from storage.log.log_store import LogStore
from storage.log.partition_log import PartitionLog
from tests.cli.test_command import Command
from tests.simulator.disk import PowerCut, SimulatedDisk
from tests.storage.rig import TOPIC_ID
from tests.transfer.given import NOW_MS, commit, shown
from tests.transfer.test_crashes import SOURCE, StoreTarget, given_target, plan_for
from transfer.append import Appended, apply_plan
from transfer.contents import Contents
from transfer.import_history import events_of, history_of_plan
from transfer.importing import ACTOR
from transfer.plan import Rule, Terms, make_plan

TOOL = RequestClient(ACTOR, "somewhere")


def moved(group: str, *changes: tuple[str, int, int | None, int | None]) -> OffsetsMovedEntry:
    parts = tuple(OffsetChange(*change) for change in changes)
    return OffsetsMovedEntry(group, NOW_MS, OffsetsBy.IMPORT, parts, TOOL)


def with_offsets(offset: int, at_ms: int, **groups: range) -> Contents:
    made = Contents()
    for name, partitions in groups.items():
        for partition in partitions:
            made.group(GroupId(name)).offsets["t", partition] = (commit(offset, at_ms), at_ms)
    return made


def entries_of_import(source: Contents, target: Contents, rule: Rule) -> list[HistoryEntry]:
    return list(events_of(make_plan(source, target, Terms(rule, NOW_MS)), NOW_MS, TOOL))


# ---------------------------------------------------------------- what is told


def test_a_new_group_is_made_and_its_offsets_come_from_nowhere() -> None:
    source = with_offsets(5, 10, a=range(2))
    assert entries_of_import(source, Contents(), Rule.REFUSE) == [
        GroupCreatedEntry("a", NOW_MS, simple=True),
        moved("a", ("t", 0, None, 5), ("t", 1, None, 5)),
    ]


def test_a_merge_records_only_what_was_older() -> None:
    source = with_offsets(9, 20, a=range(3))
    target = with_offsets(5, 30, a=range(1)).group(GroupId("a"))
    there = with_offsets(4, 10, a=range(2))
    there.groups[GroupId("a")].offsets.update(target.offsets)
    assert entries_of_import(source, there, Rule.MERGE) == [
        moved("a", ("t", 1, 4, 9), ("t", 2, None, 9))
    ]


def test_an_overwrite_records_what_is_gone_too() -> None:
    source = with_offsets(9, 20, a=range(1))
    assert entries_of_import(
        source, with_offsets(5, 30, a=range(2), b=range(1)), Rule.OVERWRITE
    ) == [moved("a", ("t", 1, 5, None), ("t", 0, 5, 9))]


def test_a_repeated_import_records_nothing() -> None:
    source = with_offsets(9, 20, a=range(4))
    assert entries_of_import(source, with_offsets(9, 20, a=range(4)), Rule.OVERWRITE) == []


def test_many_partitions_are_several_events() -> None:
    most = RecordLimits().offsets
    events = entries_of_import(with_offsets(9, 20, a=range(most + 1)), Contents(), Rule.MERGE)
    assert [len(event.changes) for event in events if isinstance(event, OffsetsMovedEntry)] == [
        most,
        1,
    ]


# ---------------------------------------------------------------- into a directory


@pytest.fixture
def rollcall(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capsys)


def events_in(log: PartitionLog) -> Iterator[HistoryEntry]:
    for batch in log.batches(log.log_start_offset):
        for record in stored_records(batch):
            event = decode(record.value)
            assert event is not None
            assert record.key == event.group_id.encode()
            yield event


def events_of_dir(data: Path) -> list[HistoryEntry]:
    store = LogStore(RealDisk(), str(data))
    store.open()
    keys = sorted(key for key in store.partitions() if key.topic == HISTORY_TOPIC)
    logs = [log for key in keys if (log := store.partition_log(key)) is not None]
    found = [event for log in logs for event in events_in(log)]
    assert store.close() == []
    return found


def test_the_command_writes_it(rollcall: Command, tmp_path: Path) -> None:
    file, data = tmp_path / "some.csv", tmp_path / "data"
    file.write_text("a,t,0,5\nb,t,0,6\n")
    into = ("offsets", "import", "--from", str(file), "--data-dir", str(data))
    pairs = ("--set", "rollcall.history.topic.num.partitions=3")
    done = rollcall(*into, *pairs)
    assert "4 history events" in done.out
    file.write_text("a,t,0,7\n")
    rollcall(*into, *pairs, "--overwrite", "--dry-run")
    rollcall(*into, *pairs, "--overwrite")
    found = events_of_dir(data)
    assert {type(entry) for entry in found} == {GroupCreatedEntry, OffsetsMovedEntry}
    moves = [entry for entry in found if isinstance(entry, OffsetsMovedEntry)]
    assert [move.changes for move in moves if move.group_id == "a"] == [
        (OffsetChange("t", 0, None, 5),),
        (OffsetChange("t", 0, 5, 7),),
    ]
    for move in moves:
        assert move.by is OffsetsBy.IMPORT
        assert move.client is not None
        assert move.client.client_id == ACTOR
        assert move.client.client_host


def test_a_history_that_is_off_is_left_alone(rollcall: Command, tmp_path: Path) -> None:
    file, data = tmp_path / "some.csv", tmp_path / "data"
    file.write_text("a,t,0,5\n")
    into = ("offsets", "import", "--from", str(file), "--data-dir", str(data))
    done = rollcall(*into, "--set", "rollcall.history.enable=false")
    assert done.exit_code == 0
    assert "of the history" not in done.out
    assert events_of_dir(data) == []


def test_a_damaged_history_keeps_no_offset_from_coming_in(
    rollcall: Command, tmp_path: Path
) -> None:
    file, data = tmp_path / "some.csv", tmp_path / "data"
    file.write_text("a,t,0,5\n")
    into = ("offsets", "import", "--from", str(file), "--data-dir", str(data), "--overwrite")
    rollcall(*into)
    (log,) = (data / f"{HISTORY_TOPIC}-0").glob("*.log")
    log.write_bytes(b"\xff" * 30 + log.read_bytes()[30:])
    for index in log.parent.glob("*index"):
        index.unlink()
    (data / ".kafka_cleanshutdown").unlink()
    file.write_text("a,t,0,6\nb,t,0,1\n")
    done = rollcall(*into)
    assert done.exit_code == 0, done.err
    assert "the history log is damaged: 3 events not recorded" in done.out


# ---------------------------------------------------------------- all or nothing


def history_of(target: StoreTarget) -> PartitionLog:
    key = TopicPartition(HISTORY_TOPIC, 0)
    found = target.store.partition_log(key)
    return found or target.store.create(key, TOPIC_ID, LogSettings(segment_bytes=2 << 10))


def run(target: StoreTarget) -> Appended:
    plan = plan_for(target, SOURCE)
    beside = history_of_plan(plan, NOW_MS, TOOL, [history_of(target)]).beside
    return apply_plan(target, plan, NOW_MS, beside)


def given_history() -> SimulatedDisk:
    disk = given_target("abc")
    target = StoreTarget(disk)
    history_of(target)
    assert target.store.close() == []
    return disk


@pytest.mark.parametrize("seed", range(2))
def test_a_cut_of_power_leaves_offsets_and_history_or_neither(seed: int) -> None:
    before = shown(StoreTarget(given_history()).contents())
    after = {**before, **shown(SOURCE)}
    plan = make_plan(SOURCE, StoreTarget(given_history()).contents(), Terms(Rule.MERGE, NOW_MS))
    expected = list(events_of(plan, NOW_MS, TOOL))
    assert len(expected) > 4
    steps, outcomes = 0, set()
    while True:
        disk = given_history()
        target = StoreTarget(disk)
        disk.cut_power_at = disk.operations + steps
        try:
            run(target)
        except PowerCut:
            opened = StoreTarget(disk.after_crash(random.Random(seed * 983 + steps)))
            offsets, events = shown(opened.contents()), list(events_in(history_of(opened)))
            assert (offsets, events) in ((before, []), (after, expected))
            outcomes.add(bool(events))
            steps += 1
            continue
        break
    assert steps > 20
    assert False in outcomes
    survivor = StoreTarget(disk.after_crash(random.Random(seed)))
    assert list(events_in(history_of(survivor))) == expected
