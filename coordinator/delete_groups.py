"""DeleteGroups: may this group be deleted, with its committed offsets?

Decides one group at a time; many_groups.py collects the results of a request. A group with members
is refused, by the rules of its type. The tombstones of the offsets come first and the group's own
last, so that no prefix of them leaves offsets without the group that they belong to.
Kafka's counterpart: `GroupCoordinatorShard.deleteGroups`, `Group.validateDeleteGroup`.
"""

from coordinator.events import GroupDeleted
from coordinator.group_view import GroupView
from coordinator.offsets.events import DeletionCause
from coordinator.outcome import Outcome
from coordinator.records import add_offset_tombstones
from protocol.names import ErrorCode
from seams.now import Now
from storage.api import RecordPair


def decide_delete_group(
    group: GroupView | None, now: Now, client_id: str, client_host: str
) -> tuple[ErrorCode, Outcome]:
    """The group's result, and what follows from it; the outcome answers nobody."""
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND, Outcome()
    error_code = group.validate_delete()
    if error_code is not ErrorCode.NONE:
        return error_code, Outcome()
    deleted = GroupDeleted(
        group.group_id,
        now.wall_ms,
        DeletionCause.REQUESTED,
        tuple(group.offsets.items()),
        client_id,
        client_host,
    )
    return ErrorCode.NONE, Outcome(events=[deleted], records=group_and_offset_tombstones(group))


def group_and_offset_tombstones(group: GroupView) -> list[RecordPair]:
    """What ends a group in the log."""
    records: list[RecordPair] = []
    for topic, partitions in group.offsets.items():
        add_offset_tombstones(records, group.group_id, topic, partitions)
    records.extend(group.tombstones())
    return records
