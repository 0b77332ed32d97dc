"""Evolve: writes a consumer group event into its group.

Called through apply.py after a decision, event by event, in log order. It decides nothing. What has
a record is written by the same method of `ConsumerGroup` that a restore uses.
"""

from typing import assert_never

from coordinator.consumer import events
from coordinator.consumer.group import ConsumerGroup
from coordinator.consumer.member import NEVER_ASSIGNED_MS
from coordinator.consumer.resolved import ResolvedRegularExpression


def evolve_consumer_group(group: ConsumerGroup, event: events.ConsumerEvent) -> None:
    match event:
        case events.ConsumerSessionExtended():
            group.members[event.member_id].session_deadline_ms = event.session_deadline_ms
        case events.CurrentAssignmentUpdated():
            group.put_current(event.member_id, event.current)
            member = group.members[event.member_id]
            member.rebalance_deadline_ms = event.rebalance_deadline_ms
        case events.ConsumerMemberUpdated():
            group.put_member(event.member)
            if event.member.classic is None:
                member = group.members[event.member.member_id]
                member.rejoin_deadline_ms = member.sync_deadline_ms = None
        case events.GroupEpochBumped():
            group.put_epoch(event.epoch, event.metadata_hash)
            _refreshed(group)
        case events.TargetAssignmentUpdated():
            for member_id, target in event.changed.items():
                group.put_target(member_id, target)
            group.put_assignment_epoch(event.assignment_epoch, event.at_ms)
            group.computing_epoch = None
        case events.TargetAssignmentRequested():
            group.computing_epoch = event.group_epoch
            group.computing_since_ms = event.at_ms
        case events.TargetAssignmentRefused():
            group.computing_epoch = None
        case events.ConsumerMemberRemoved():
            group.remove_member(event.member.member_id)
        case events.ConsumerStaticMemberReplaced():
            _static_member_replaced(group, event)
        case events.ClassicGroupUpgraded():
            _classic_group_upgraded(group, event)
        case events.ClassicRejoinRequested():
            group.members[event.member_id].rejoin_deadline_ms = event.rejoin_deadline_ms
        case events.ClassicJoinAnswered():
            member = group.members[event.member_id]
            member.rejoin_deadline_ms, member.sync_deadline_ms = None, event.sync_deadline_ms
        case events.ClassicMemberSynced():
            group.members[event.member_id].sync_deadline_ms = None
        case events.RegularExpressionResolved():
            resolved = ResolvedRegularExpression(event.topics, event.version, event.at_ms)
            group.put_regex(event.pattern, resolved)
        case events.RegularExpressionRemoved():
            group.remove_regex(event.pattern)
        case events.RegularExpressionsRequested():
            group.regexes_requested_at_ms = event.now_ms
        case events.MetadataRefreshRequested():
            group.is_refresh_due = True
            group.changed_topics |= event.topics
        case events.MetadataRefreshed():
            _refreshed(group)
        case events.ConsumerMemberFenced():
            pass
        case _:
            assert_never(event)


def _refreshed(group: ConsumerGroup) -> None:
    group.is_refresh_due = False
    group.changed_topics = frozenset()


def _static_member_replaced(
    group: ConsumerGroup, event: events.ConsumerStaticMemberReplaced
) -> None:
    group.remove_member(event.old_member_id)
    group.put_member(event.member)
    group.put_target(event.member.member_id, event.target)
    group.put_current(event.member.member_id, event.current)


def _classic_group_upgraded(group: ConsumerGroup, event: events.ClassicGroupUpgraded) -> None:
    for member, _, _ in event.members:
        group.put_member(member)
    group.put_epoch(event.epoch, event.metadata_hash)
    group.is_refresh_due = False
    for member, target, _ in event.members:
        group.put_target(member.member_id, target)
    group.put_assignment_epoch(event.epoch, NEVER_ASSIGNED_MS)
    for member, _, current in event.members:
        group.put_current(member.member_id, current)
