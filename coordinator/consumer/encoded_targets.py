"""Encoded targets: the records of a large target assignment, made in the thread that makes it.

Not compiled: a compiled loop would keep the interpreter's lock from the event loop until its end.
"""

from collections.abc import Mapping

from coordinator.consumer.assignors.assignor import Assignment, AssignorMember
from coordinator.consumer.records import target_member_record
from protocol.names import GroupId, MemberId
from storage.api import RecordPair


def encoded_targets(
    group_id: GroupId,
    targets: Mapping[MemberId, Assignment],
    given: Mapping[MemberId, AssignorMember],
) -> dict[MemberId, RecordPair]:
    """A record of type 7 for each member whose target is not the one that it had."""
    return {
        member_id: target_member_record(group_id, member_id, target)
        for member_id, target in targets.items()
        if target != given[member_id].assigned
    }
