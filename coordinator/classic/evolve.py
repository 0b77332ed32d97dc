"""Evolve: writes a classic event into its group; the one writer of classic group state.

Called through apply.py after a decision, event by event, in log order. It decides nothing: what an
event says has happened. Every state transition goes through `_move`, which asserts the table of
transitions.py. Only the session deadline is also written elsewhere, by a heartbeat.
Kafka's counterpart: the setters of `ClassicGroup`.
"""

from typing import assert_never

from coordinator.classic import events
from coordinator.classic.commands import RebalanceCause
from coordinator.classic.generation_record import begun_part
from coordinator.classic.group import ClassicGroup, ClassicMember
from coordinator.classic.group_view import SESSION_PAUSED
from coordinator.classic.subscriptions import subscribed_topics
from coordinator.classic.transitions import check_move
from coordinator.records import member_part
from protocol.names import GroupState
from seams.java_hash import hash_early


def evolve(group: ClassicGroup, event: events.ClassicEvent) -> None:
    """Write the event into the group."""
    if isinstance(event, events.SessionExtended):  # first, for it comes with every commit
        member = group.members[event.member_id]
        if member.session_deadline_ms != SESSION_PAUSED:  # else the answer to its request does it
            member.session_deadline_ms = event.session_deadline_ms
        return
    group.open_tables()
    match event:
        # Those of each member first: a case that does not match costs 50 ns.
        case events.SyncParked():
            _sync_parked(group, event)
        case events.MemberRejoined():
            _member_rejoined(group, event)
        case events.MemberSynced():
            _member_synced(group, event)
        case events.MemberAdded():
            _member_added(group, event)
        case events.MemberIdAssigned():
            _member_id_assigned(group, event)
        case events.StaticMemberReplaced():
            _static_member_replaced(group, event)
        case events.MembersRemoved():
            _members_removed(group, event)
        case events.PendingMemberRemoved():
            _pending_member_removed(group, event)
        case events.SessionPaused():
            _session_paused(group, event)
        case events.MemberLapsed():
            _member_lapsed(group, event)
        case events.LapseForgiven():
            _lapse_forgiven(group, event)
        case events.ConsumerGroupDowngraded():
            _consumer_group_downgraded(group, event)
        case events.RebalanceBegun():
            _rebalance_begun(group, event)
        case events.InitialDelayExtended():
            group.new_member_added = False
        case events.LeaderChanged():
            _leader_changed(group, event)
        case events.GenerationBegun():
            _generation_begun(group, event)
        case events.GroupEmptied():
            _group_emptied(group, event)
        case events.AssignmentReceived():
            group.assignment_is_stored_now = True
        case events.GroupStabilized():
            _group_stabilized(group, event)
        case events.AssignmentRefused():
            _assignment_refused(group, event)
        case events.TopicsChanged():
            _topics_changed(group, event)
        case events.ChangedTopicsForgotten():
            group.changed_topics.clear()
        case (
            events.MemberFenced()
            | events.JoinRefused()
            | events.NoMemberRejoined()
            | events.AssignmentDropped()
        ):
            pass  # for the log, the metrics and the history only
        case _:
            assert_never(event)


def mark_dead(group: ClassicGroup, at_ms: int) -> None:
    """The group was deleted. Ops and decisions that still hold it see that."""
    _move(group, GroupState.DEAD, at_ms)


def _move(group: ClassicGroup, to: GroupState, at_ms: int) -> None:
    check_move(group.state, to)
    group.previous_state = group.state
    group.state = to
    group.state_since_ms = at_ms


def _park_join(
    group: ClassicGroup,
    member: ClassicMember,
    event: events.MemberAdded | events.MemberRejoined | events.StaticMemberReplaced,
) -> None:
    if event.token is None:
        return
    if member.awaiting_join is None:
        group.awaiting_join_count += 1
    member.awaiting_join = event.token
    member.join_parked_at_ms = event.now_ms
    # Now, so that the turn which completes the joins of 5,000 members need not.
    member.parts = begun_part(member), member_part(member)
    hash_early(member.member_id)  # for the order of the members in the record


def _unpark_join(group: ClassicGroup, member: ClassicMember) -> None:
    if member.awaiting_join is not None:
        group.awaiting_join_count -= 1
        member.awaiting_join = None


def _offer(
    group: ClassicGroup,
    member: ClassicMember,
    event: events.MemberRejoined | events.StaticMemberReplaced,
) -> None:
    group.count_protocols(member, -1)
    member.protocols = event.protocols
    group.count_protocols(member, +1)
    member.session_timeout_ms = event.session_timeout_ms
    member.rebalance_timeout_ms = event.rebalance_timeout_ms


def _forgive(group: ClassicGroup, member: ClassicMember) -> None:
    member.lapsed_at_ms = None
    group.lapsed_member_ids.pop(member.member_id, None)


def _member_id_assigned(group: ClassicGroup, event: events.MemberIdAssigned) -> None:
    group.open_pending()[event.member_id] = event.member_id


def _member_added(group: ClassicGroup, event: events.MemberAdded) -> None:
    if group.state is GroupState.PREPARING_REBALANCE and group.previous_state is GroupState.EMPTY:
        group.new_member_added = True  # the initial delay may be extended
    member = ClassicMember(
        member_id=event.member.member_id,
        group_instance_id=event.member.group_instance_id,
        client_id=event.member.client_id,
        client_host=event.member.client_host,
        session_timeout_ms=event.session_timeout_ms,
        rebalance_timeout_ms=event.rebalance_timeout_ms,
        protocol_type=event.protocol_type,
        protocols=event.protocols,
        caller=event.member,
    )
    member.is_new = True
    member.session_deadline_ms = event.session_deadline_ms
    group.pending_member_ids.pop(member.member_id, None)
    group.admit(member)
    _park_join(group, member, event)


def _member_rejoined(group: ClassicGroup, event: events.MemberRejoined) -> None:
    member = group.members[event.member.member_id]
    member.held_assignment = b""
    _forgive(group, member)
    _offer(group, member, event)
    _park_join(group, member, event)


def _static_member_replaced(group: ClassicGroup, event: events.StaticMemberReplaced) -> None:
    was_leader = group.leader_id == event.old_member_id
    old = group.dismiss(event.old_member_id)
    # The names that Kafka describes stay those of the first process.
    member = ClassicMember(
        member_id=event.member.member_id,
        group_instance_id=event.member.group_instance_id,
        client_id=old.client_id,
        client_host=old.client_host,
        session_timeout_ms=old.session_timeout_ms,
        rebalance_timeout_ms=old.rebalance_timeout_ms,
        protocol_type=old.protocol_type,
        protocols=old.protocols,
        assignment=old.assignment,
        caller=event.member,
    )
    member.session_deadline_ms = event.session_deadline_ms
    group.admit(member)
    if was_leader:
        group.leader_id = member.member_id
    _offer(group, member, event)
    _park_join(group, member, event)


def _members_removed(group: ClassicGroup, event: events.MembersRemoved) -> None:
    for removed in event.removed:
        group.dismiss(removed.member.member_id)


def _pending_member_removed(group: ClassicGroup, event: events.PendingMemberRemoved) -> None:
    del group.pending_member_ids[event.member_id]


def _session_paused(group: ClassicGroup, event: events.SessionPaused) -> None:
    group.members[event.member_id].session_deadline_ms = SESSION_PAUSED


def _member_lapsed(group: ClassicGroup, event: events.MemberLapsed) -> None:
    member = group.members[event.member.member_id]
    member.lapsed_at_ms = event.now_ms
    member.session_deadline_ms = event.forgiven_until_ms
    group.open_lapsed()[member.member_id] = None


def _lapse_forgiven(group: ClassicGroup, event: events.LapseForgiven) -> None:
    member = group.members[event.member.member_id]
    _forgive(group, member)
    member.session_deadline_ms = event.session_deadline_ms


def _consumer_group_downgraded(group: ClassicGroup, event: events.ConsumerGroupDowngraded) -> None:
    """As if the record of this generation were restored, but with all that members offer."""
    for converted in event.members:
        identity = converted.member
        member = ClassicMember(
            member_id=identity.member_id,
            group_instance_id=identity.group_instance_id,
            client_id=identity.client_id,
            client_host=identity.client_host,
            session_timeout_ms=converted.session_timeout_ms,
            rebalance_timeout_ms=converted.rebalance_timeout_ms,
            protocol_type=event.protocol_type,
            protocols=converted.protocols,
            assignment=converted.assignment,
            caller=identity,
        )
        member.session_deadline_ms = converted.session_deadline_ms
        member.held_assignment = converted.held_assignment
        group.admit(member)
    group.generation_id = group.newest_generation_id = event.generation_id
    group.protocol_name = event.protocol_name
    group.leader_id = event.leader_id
    group.subscribed_topics = event.subscribed_topics
    group.state = GroupState.STABLE
    group.state_since_ms = event.at_ms


def _rebalance_begun(group: ClassicGroup, event: events.RebalanceBegun) -> None:
    if group.state is GroupState.COMPLETING_REBALANCE:
        # Parked syncs were answered with REBALANCE_IN_PROGRESS: there is nothing to hand out.
        for member in group.members.values():
            member.assignment = b""
            if member.awaiting_sync is not None:
                member.awaiting_sync = None
                member.session_deadline_ms = event.now_ms + member.session_timeout_ms
    group.pending_sync_ids.clear()
    group.assignment_is_stored_now = False
    if event.cause is RebalanceCause.PARTITIONS_CHANGED:
        group.changed_topics.clear()
    group.rebalance_id += 1
    _move(group, GroupState.PREPARING_REBALANCE, event.at_ms)


def _leader_changed(group: ClassicGroup, event: events.LeaderChanged) -> None:
    group.leader_id = event.new_leader.member_id


def _generation_begun(group: ClassicGroup, event: events.GenerationBegun) -> None:
    group.generation_id = group.newest_generation_id = event.generation_id
    group.generation_recorded |= event.recorded
    group.protocol_name = event.protocol_name
    group.subscribed_topics = event.subscribed_topics
    group.new_member_added = False
    for member in group.members.values():
        _unpark_join(group, member)
        member.is_new = False
        member.held_assignment = b""
        member.session_deadline_ms = event.now_ms + member.session_timeout_ms
    group.pending_sync_ids = set(group.members)
    _move(group, GroupState.COMPLETING_REBALANCE, event.at_ms)


def _group_emptied(group: ClassicGroup, event: events.GroupEmptied) -> None:
    group.generation_id = group.newest_generation_id = event.generation_id
    group.generation_recorded = False
    group.protocol_name = None
    group.subscribed_topics = subscribed_topics(group.protocol_type, None, ())
    group.new_member_added = False
    group.pending_sync_ids.clear()
    _move(group, GroupState.EMPTY, event.at_ms)


def _sync_parked(group: ClassicGroup, event: events.SyncParked) -> None:
    group.members[event.member_id].awaiting_sync = event.token
    group.pending_sync_ids.discard(event.member_id)


def _member_synced(group: ClassicGroup, event: events.MemberSynced) -> None:
    group.pending_sync_ids.discard(event.member_id)


def _group_stabilized(group: ClassicGroup, event: events.GroupStabilized) -> None:
    group.generation_recorded = False
    group.assignment_is_stored_now = False
    for member in group.members.values():
        member.parts = None
        member.assignment = event.assignments.get(member.member_id, b"")
        if member.awaiting_sync is not None:
            member.awaiting_sync = None
            member.session_deadline_ms = event.now_ms + member.session_timeout_ms
    group.close_tables()
    _move(group, GroupState.STABLE, event.at_ms)


def _assignment_refused(group: ClassicGroup, event: events.AssignmentRefused) -> None:
    group.assignment_is_stored_now = False
    for member in group.members.values():
        member.assignment = b""
        if member.awaiting_sync is not None:
            member.awaiting_sync = None
            member.session_deadline_ms = event.now_ms + member.session_timeout_ms


def _topics_changed(group: ClassicGroup, event: events.TopicsChanged) -> None:
    group.open_changed_topics().update(event.topics)
