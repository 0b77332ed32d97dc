"""DeleteGroups: may this group be forgotten, with all that it committed?

Answers one group at a time; the facade collects the results of a request. Only a group without
members may go. Its records end with tombstones, the offsets' first and the group's own last, so
that no prefix of them leaves offsets behind without the group that they belong to.
Kafka's counterpart: `GroupCoordinatorShard.deleteGroups`, `ClassicGroup.validateDeleteGroup`.
"""

from coordinator.classic.generation_record import end_generation_record
from coordinator.group import GroupView
from coordinator.offsets.events import DeletionCause, GroupDeleted
from coordinator.outcome import Outcome
from coordinator.records import add_offset_tombstones, group_tombstone
from protocol.names import ErrorCode, GroupState
from seams.now import Now
from storage.api import RecordPair


def decide_delete_group(
    group: GroupView | None, now: Now, client_id: str, client_host: str
) -> tuple[ErrorCode, Outcome]:
    """The group's result, and what follows from it; the outcome answers nobody."""
    if group is None or group.state is GroupState.DEAD:
        return ErrorCode.GROUP_ID_NOT_FOUND, Outcome()
    if group.state is not GroupState.EMPTY:
        return ErrorCode.NON_EMPTY_GROUP, Outcome()
    deleted = GroupDeleted(
        group.group_id,
        now.wall_ms,
        DeletionCause.REQUESTED,
        tuple(group.offsets.items()),
        client_id,
        client_host,
    )
    return ErrorCode.NONE, Outcome(events=[deleted], records=group_tombstones(group))


def group_tombstones(group: GroupView) -> list[RecordPair]:
    """What ends a group in the log. A simple group has no record of its own: it gets one anyway."""
    records: list[RecordPair] = []
    for topic, partitions in group.offsets.items():
        add_offset_tombstones(records, group.group_id, topic, partitions)
    records.append(group_tombstone(group.group_id))
    records.extend(end_generation_record(group))
    return records
