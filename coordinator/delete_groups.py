"""DeleteGroups: may this group be deleted, with its committed offsets?

Decides one group at a time; many_groups.py collects the results of a request. A group with members
is refused, by the rules of its type. The tombstones of the offsets come first and the group's own
last, so that no prefix of them leaves offsets without the group that they belong to.
Kafka's counterpart: `GroupCoordinatorShard.deleteGroups`, `Group.validateDeleteGroup`.
"""

from coordinator.events import GroupDeleted
from coordinator.group_view import GroupView
from coordinator.offsets.events import DeletionCause
from coordinator.offsets.pending_offsets import NOTHING_PENDING, PendingOfTopics
from coordinator.outcome import Outcome
from coordinator.records import add_offset_tombstones
from protocol.names import ErrorCode
from seams.now import Now
from storage.api import RecordPair


def decide_delete_group(
    group: GroupView | None,
    now: Now,
    client_id: str,
    client_host: str,
    pending: PendingOfTopics = NOTHING_PENDING,
    principal: str | None = None,
) -> tuple[ErrorCode, Outcome]:
    """The group's result, and what follows from it; the outcome answers nobody.

    Its pending offsets go too: a marker that follows changes nothing.
    """
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
        principal,
    )
    records = group_and_offset_tombstones(group, pending)
    return ErrorCode.NONE, Outcome(events=[deleted], records=records)


def group_and_offset_tombstones(
    group: GroupView, pending: PendingOfTopics = NOTHING_PENDING
) -> list[RecordPair]:
    """What ends a group in the log."""
    records: list[RecordPair] = []
    for topic, partitions in group.offsets.items():
        add_offset_tombstones(records, group.group_id, topic, partitions)
    for topic, uncommitted in pending.items():
        committed = group.offsets.get(topic, {})
        alone = [index for index in uncommitted if index not in committed]
        add_offset_tombstones(records, group.group_id, topic, alone)
    records.extend(group.tombstones())
    return records
