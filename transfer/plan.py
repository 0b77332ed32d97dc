"""Plan: which records must be written so that the target holds the import? Pure.

A target that already has groups is refused, unless a rule says which side wins. With MERGE it is
the newer commit of each partition, and the newer state of a group as a whole; with OVERWRITE it is
the import, for every group in it. Groups that are not in the import are never changed. Planning the
same import a second time plans nothing.
"""

from collections.abc import Iterator
from enum import Enum
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from coordinator.classic.generation_record import GENERATION_BEGUN
from coordinator.group import CommittedOffset
from coordinator.group_types import AnyGroup
from coordinator.records import UnreadableRecord, offset_commit_value, record_type
from coordinator.restore import apply_record
from coordinator.writable import unwritable_offset
from history.entry_values import OffsetChange
from protocol.names import ZERO_TOPIC_ID, GroupId, TopicId
from storage.api import StoredRecord
from storage.batch.timed_batches import TimedRecord
from transfer.contents import (
    CONSUMER_KIND,
    SIMPLE,
    UNKNOWN_KIND,
    Contents,
    GroupContents,
    Kept,
    kind_of,
    offset_key,
)
from transfer.errors import BadText


class Rule(Enum):
    """What to do about groups that are there already."""

    REFUSE = "refuse"
    MERGE = "merge"
    OVERWRITE = "overwrite"


class Change(Struct):
    """What is to be written of one group, in this order."""

    group_id: GroupId
    records: list[TimedRecord] = field(default_factory=list)
    is_new: bool = False  # the target does not know the group
    has_state: bool = False  # in the import: it is more than offsets
    moved: list[OffsetChange] = field(default_factory=list)  # for the history


class Plan(Struct):
    """All changes, and what the report says of them."""

    changes: list[Change] = field(default_factory=list)
    groups_added: int = 0
    groups_changed: int = 0
    groups_unchanged: int = 0
    groups_empty: int = 0  # the target does not know the group, and there is nothing to write
    offsets_written: int = 0
    offsets_kept: int = 0  # the target's was the newer one
    states_kept: int = 0  # likewise
    topic_ids_dropped: int = 0

    @property
    def records(self) -> int:
        return sum(len(change.records) for change in self.changes)


class TargetNotEmpty(Exception):
    """It has groups, and no rule was given."""

    def __init__(self, groups: int) -> None:
        super().__init__(f"the target already has {groups} groups; use --merge or --overwrite")


class Terms(Struct, frozen=True):
    """How records are written for this target."""

    rule: Rule
    now_ms: int
    value_version: int = 4
    topic_ids: dict[str, TopicId] = field(default_factory=dict)
    """Of the topics that the target has: an id of another topic would hide the offset from clients
    that ask by id, so it is dropped unless it is the target's own."""
    keeps_topic_ids: bool = False
    """Every offset keeps the id that it has: the user said that these topics will be there."""


def make_plan(source: Contents, target: Contents, terms: Terms) -> Plan:
    """Raises TargetNotEmpty, and BadText for what no record can hold, wherever it came from."""
    if target.groups and terms.rule is Rule.REFUSE:
        raise TargetNotEmpty(len(target.groups))
    plan = Plan()
    for group_id, group in source.groups.items():
        there = target.groups.get(group_id)
        change = Change(group_id, is_new=there is None, has_state=bool(group.state))
        _plan_state(plan, change, group, there, terms)
        _plan_offsets(plan, change, group, there, terms)
        if there is None and not change.records:
            plan.groups_empty += 1
        elif there is None:
            plan.groups_added += 1
        elif change.records:
            plan.groups_changed += 1
        else:
            plan.groups_unchanged += 1
        if change.records:
            plan.changes.append(change)
    return plan


def _plan_state(
    plan: Plan, change: Change, group: GroupContents, there: GroupContents | None, terms: Terms
) -> None:
    before: dict[bytes, Kept] = {} if there is None else there.state
    if before and terms.rule is Rule.MERGE:
        assert there is not None
        if not group.state:
            return
        if group.newest_state_ms <= there.newest_state_ms:
            plan.states_kept += before != group.state
            return
    check_restorable(group)
    gone = [key for key in before if key not in group.state]
    change.records += [
        TimedRecord(terms.now_ms, key, None) for key in sorted(gone, key=_deletion_order)
    ]
    change.records += [
        TimedRecord(kept.timestamp_ms, key, kept.value)
        for key, kept in group.state.items()
        if key not in before or before[key].value != kept.value
    ]


def _plan_offsets(
    plan: Plan, change: Change, group: GroupContents, there: GroupContents | None, terms: Terms
) -> None:
    check_writable(group)
    before = {} if there is None else there.offsets
    if terms.rule is Rule.OVERWRITE:
        gone = [place for place in before if place not in group.offsets]
        change.records += [
            TimedRecord(terms.now_ms, offset_key(group.group_id, place), None) for place in gone
        ]
        change.moved += [
            OffsetChange(*place, before[place][0].committed_offset, None) for place in gone
        ]
    for place, (found, timestamp_ms) in group.offsets.items():
        commit = _with_own_topic_id(plan, place[0], found, terms)
        old = before[place][0] if place in before else None
        if old is not None and _is_there(commit, old):
            continue
        at_ms = timestamp_ms if timestamp_ms >= 0 else terms.now_ms
        if commit.committed_at_ms < 0:
            # A coordinator would take it for very old, and delete it at its next expiry check.
            commit = replace(commit, committed_at_ms=at_ms)
        if (
            old is not None
            and terms.rule is Rule.MERGE
            and old.committed_at_ms >= commit.committed_at_ms
        ):
            plan.offsets_kept += 1
            continue
        value = offset_commit_value(commit, terms.value_version)
        key = offset_key(group.group_id, place)
        change.records.append(TimedRecord(at_ms, key, value))
        replaced = None if old is None else old.committed_offset
        change.moved.append(OffsetChange(*place, replaced, commit.committed_offset))
        plan.offsets_written += 1


def check_writable(group: GroupContents) -> None:
    """Raises BadText for an offset that no record and no request can hold."""
    for (topic, partition), (commit, _) in group.offsets.items():
        fault = unwritable_offset(group.group_id, topic, commit.metadata)
        if fault is not None:
            place = f"{topic[:40]!r}-{partition} of group {group.group_id[:40]!r}"
            raise BadText(f"{place}: {fault}")


def check_restorable(group: GroupContents) -> None:
    """Raises BadText for a consumer group whose records contradict each other.

    A damaged source may lack some of them. No coordinator would load the partition.
    """
    if CONSUMER_KIND not in group.kinds:
        return
    groups: dict[GroupId, AnyGroup] = {}
    for offset, (key, kept) in enumerate(group.state.items()):
        try:
            apply_record(groups, StoredRecord(offset, kept.timestamp_ms, key, kept.value))
        except UnreadableRecord as fault:
            raise BadText(f"group {group.group_id[:40]!r} cannot be restored: {fault}") from None


def _is_there(commit: CommittedOffset, old: CommittedOffset) -> bool:
    """Has the target this commit? One of unknown time is the same at any time."""
    if old.committed_at_ms < 0:
        return False
    if commit.committed_at_ms < 0:
        commit = replace(commit, committed_at_ms=old.committed_at_ms)
    return old == commit


def _with_own_topic_id(
    plan: Plan, topic: str, commit: CommittedOffset, terms: Terms
) -> CommittedOffset:
    if terms.keeps_topic_ids or commit.topic_id in (ZERO_TOPIC_ID, terms.topic_ids.get(topic)):
        return commit
    plan.topic_ids_dropped += 1
    return replace(commit, topic_id=ZERO_TOPIC_ID)


# A coordinator takes a member's tombstone only after those of what it was assigned, and a group's
# last of all.
_DELETION_ORDER: Final = (8, 14, 22, 7, 13, 21, 6, 12, 20, 5, 10, 19, 16, 4, 15, 23, 3, 11, 17, 2)


def _deletion_order(key: bytes) -> int:
    kind = record_type(key)
    return _DELETION_ORDER.index(kind) if kind in _DELETION_ORDER else len(_DELETION_ORDER)


def of_one_kind(contents: Contents) -> Iterator[tuple[GroupId, str]]:
    """Of a group whose kind changed leave the newer one's records; says of which groups.

    A coordinator that meets both kinds fails to load the whole partition.
    """
    for group_id, group in contents.groups.items():
        if len(real := [kind for kind in group.kinds if kind not in (UNKNOWN_KIND, SIMPLE)]) > 1:
            for key in list(group.state):
                if kind_of(record_type(key)) in real[:-1]:
                    del group.state[key]
            yield group_id, f"was {' and '.join(real)}, is written as {real[-1]}"


def for_kafka(contents: Contents) -> Iterator[tuple[GroupId, str]]:
    """Leave out what only we understand, and what a Kafka would not load; says what that was."""
    yield from of_one_kind(contents)
    for group_id, group in list(contents.groups.items()):
        for key in list(group.state):
            if record_type(key) == GENERATION_BEGUN:
                del group.state[key]
        if not group.state and not group.offsets:
            del contents.groups[group_id]
            yield group_id, "has nothing that a Kafka understands"
