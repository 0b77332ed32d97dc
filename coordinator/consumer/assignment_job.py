"""Assignment job: a target assignment that is made outside of a turn.

It has all that it needs, so the group may change meanwhile. Its result comes back to the group as a
command that names the group epoch.
"""

from collections.abc import Mapping
from typing import NamedTuple

from coordinator.consumer.assignment_source import NOTHING_ASSIGNED, AssignmentSource
from coordinator.consumer.assignors.assignor import Assignment, Assignor, AssignorMember
from coordinator.consumer.commands import TargetAssignmentComputed, TargetAssignmentFailed
from coordinator.consumer.encoded_targets import encoded_targets
from protocol.names import GroupId, GroupInstanceId, MemberId
from seams.stopwatch import Stopwatch


class JobResult(NamedTuple):
    """`members` are those that the assignor was given; each has a target, even if it is empty."""

    members: Mapping[MemberId, AssignorMember]
    targets: Mapping[MemberId, Assignment]
    took_ms: int


class AssignmentJob(NamedTuple):
    group_id: GroupId
    group_epoch: int
    assignor: Assignor
    source: AssignmentSource
    stopwatch: Stopwatch
    requested_at_ms: int

    def run(self) -> JobResult:
        """Call it in any thread. Raises AssignorFailed, or whatever the assignor does."""
        given = self.source.assignor_input()
        begin_ms = self.stopwatch()
        assigned = self.assignor.assign(given)
        took_ms = self.stopwatch() - begin_ms
        targets = {
            member_id: assigned.get(member_id, NOTHING_ASSIGNED) for member_id in given.members
        }
        return JobResult(given.members, targets, took_ms)

    def computed(self) -> TargetAssignmentComputed:
        """What the group is told, made in any thread. Raises as `run` does."""
        members, targets, took_ms = self.run()
        instances = {
            member_id: GroupInstanceId(member.instance_id)
            for member_id, member in members.items()
            if member.instance_id is not None
        }
        return TargetAssignmentComputed(
            self.group_id,
            self.group_epoch,
            self.assignor.name,
            targets,
            took_ms,
            self.requested_at_ms,
            instances,
            encoded_targets(self.group_id, targets, members),
        )

    def failed(self, failure: Exception) -> TargetAssignmentFailed:
        return TargetAssignmentFailed(
            self.group_id,
            self.group_epoch,
            self.assignor.name,
            str(failure),
            self.requested_at_ms,
        )
