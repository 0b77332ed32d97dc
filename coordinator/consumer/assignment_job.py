"""Assignment job: a target assignment that is made outside of a turn.

It has all that it needs, so the group may change meanwhile. Its result comes back to the group as a
command that names the group epoch.
"""

from collections.abc import Mapping
from typing import NamedTuple

from coordinator.consumer.assignors.assignor import Assignment, Assignor, AssignorInput
from coordinator.consumer.commands import TargetAssignmentComputed, TargetAssignmentFailed
from protocol.names import GroupId, GroupInstanceId, MemberId
from seams.stopwatch import Stopwatch


class JobResult(NamedTuple):
    targets: Mapping[MemberId, Assignment]
    took_ms: int


class AssignmentJob(NamedTuple):
    group_id: GroupId
    group_epoch: int
    assignor: Assignor
    given: AssignorInput
    stopwatch: Stopwatch
    requested_at_ms: int

    def run(self) -> JobResult:
        """Call it in any thread. Raises AssignorFailed, or whatever the assignor does."""
        begin_ms = self.stopwatch()
        targets = self.assignor.assign(self.given)
        return JobResult(targets, self.stopwatch() - begin_ms)

    def outcome(
        self, result: JobResult | Exception
    ) -> TargetAssignmentComputed | TargetAssignmentFailed:
        """What the group is told. A member that the assignor does not name is assigned nothing."""
        name = self.assignor.name
        if isinstance(result, Exception):
            reason = str(result)
            return TargetAssignmentFailed(
                self.group_id, self.group_epoch, name, reason, self.requested_at_ms
            )
        given = self.given.members
        targets = {member_id: result.targets.get(member_id, {}) for member_id in given}
        instances = {
            member_id: GroupInstanceId(member.instance_id)
            for member_id, member in given.items()
            if member.instance_id is not None
        }
        return TargetAssignmentComputed(
            self.group_id,
            self.group_epoch,
            name,
            targets,
            result.took_ms,
            self.requested_at_ms,
            instances,
        )
