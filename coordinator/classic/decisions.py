"""Classic decisions: the table from classic commands to the functions of decide/."""

from typing import assert_never

from coordinator.classic import commands
from coordinator.classic.commands import ClassicCommand
from coordinator.classic.decide.assignment_stored import (
    decide_assignment_stored,
    decide_refuse_assignment,
)
from coordinator.classic.decide.begin_rebalance import (
    decide_begin_rebalance,
    decide_end_initial_delay,
)
from coordinator.classic.decide.complete_join import decide_complete_join
from coordinator.classic.decide.end_sync_phase import decide_end_sync_phase
from coordinator.classic.decide.expire_session import decide_expire_session
from coordinator.classic.decide.heartbeat import decide_heartbeat
from coordinator.classic.decide.join_group import NewMemberId, decide_join_group
from coordinator.classic.decide.lapsed_members import decide_remove_lapsed
from coordinator.classic.decide.leave_group import decide_leave_group
from coordinator.classic.decide.partitions_changed import decide_end_partition_delay
from coordinator.classic.decide.sync_group import decide_sync_group
from coordinator.classic.group_view import ClassicGroupView
from coordinator.outcome import Outcome
from coordinator.settings import GroupSettings
from seams.now import Now


def decide(
    group: ClassicGroupView | None,
    command: ClassicCommand,
    now: Now,
    settings: GroupSettings,
    new_member_id: NewMemberId,
) -> Outcome:
    match command:
        case commands.Join():
            return decide_join_group(group, command, now, settings, new_member_id)
        case commands.Sync():
            return decide_sync_group(group, command, now, settings)
        case commands.Beat():
            return decide_heartbeat(group, command, now)
        case commands.Leave():
            return decide_leave_group(group, command, now)
        case commands.ExpireSession():
            return decide_expire_session(group, command, now, settings)
        case commands.BeginRebalance():
            return decide_begin_rebalance(group, command, now, settings)
        case commands.EndInitialDelay():
            return decide_end_initial_delay(group, command, now, settings)
        case commands.CompleteJoin():
            return decide_complete_join(group, command, now, settings)
        case commands.AssignmentStored():
            return decide_assignment_stored(group, command, now)
        case commands.RefuseAssignment():
            return decide_refuse_assignment(group, command, now)
        case commands.EndSyncPhase():
            return decide_end_sync_phase(group, command, now)
        case commands.RemoveLapsed():
            return decide_remove_lapsed(group, command, now)
        case commands.EndPartitionDelay():
            return decide_end_partition_delay(group, command, now)
        case _:
            assert_never(command)
