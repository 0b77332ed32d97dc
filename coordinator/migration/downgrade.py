"""Downgrade: a consumer group becomes a classic group when only classic members remain.

Asked after each decision that removes members: a leave, a session or a rebalance that timed out.
And asked by a JoinGroup that takes the place of the last static member of the consumer protocol.
The group is Stable in the generation of its group epoch, with the target assignments. Tombstones
and the group's record are one batch, and take the place of the records of the removal. Then a
rebalance begins, so that members which were still reconciling join again.
Kafka's counterpart: `GroupMetadataManager.validateOnlineDowngradeWithFencedMembers` and
`convertToClassicGroup`, `ClassicGroup.fromConsumerGroup`.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from coordinator.classic.commands import BeginRebalance, RebalanceCause
from coordinator.classic.decide.protocol_choice import choose_protocol
from coordinator.classic.events import ConsumerGroupDowngraded, ConvertedMember
from coordinator.classic.subscriptions import subscribed_topics
from coordinator.consumer.assignors.assignor import Assignment
from coordinator.consumer.assignors.java_order import timeline_order
from coordinator.consumer.context import ConsumerContext
from coordinator.consumer.decide.remove_members import everything_owned
from coordinator.consumer.events import ConsumerMemberRemoved, ConsumerRemovalCause
from coordinator.consumer.group_view import ConsumerGroupView, ConsumerMemberView
from coordinator.consumer.member import ConsumerMemberMetadata
from coordinator.events import ConversionRefused, GroupConverted
from coordinator.group import GroupType
from coordinator.migration.embedded_protocol import assignment_bytes
from coordinator.outcome import Outcome
from coordinator.records import batch_bytes_at_most, group_metadata_record
from coordinator.settings import GroupSettings
from coordinator.stored_records import StoredMember
from protocol.consumer_protocol import PROTOCOL_TYPE
from protocol.names import GenerationId, GroupId
from seams.now import Now
from seams.topics_view import TopicsView
from storage.api import Record

LAST_MEMBER_GONE: Final = "the last member that used the consumer protocol is gone"
POLICY: Final = "the online downgrade is disabled"
RECORD_TOO_LARGE: Final = "its members do not fit into the record of a classic group"
TOO_LARGE: Final = "its group size is greater than classic group max size"

_CAUSES: Final = {
    ConsumerRemovalCause.LEFT: RebalanceCause.MEMBER_LEFT,
    ConsumerRemovalCause.SESSION_EXPIRED: RebalanceCause.SESSION_EXPIRED,
    ConsumerRemovalCause.REBALANCE_TIMED_OUT: RebalanceCause.SESSION_EXPIRED,
    ConsumerRemovalCause.CLASSIC_REJOIN_TIMED_OUT: RebalanceCause.SESSION_EXPIRED,
    ConsumerRemovalCause.CLASSIC_SYNC_TIMED_OUT: RebalanceCause.DID_NOT_SYNC,
}


class StayingMember(NamedTuple):
    """A member of the classic protocol, what it is to own, and what it owns."""

    metadata: ConsumerMemberMetadata
    target: Assignment
    owned: Assignment


class Conversion(NamedTuple):
    """What brings the members into the classic group; tombstones of the old records come before."""

    converted: GroupConverted
    downgraded: ConsumerGroupDowngraded
    record: Record


def downgrade_after_removal(
    group: ConsumerGroupView, outcome: Outcome, now: Now, context: ConsumerContext
) -> Outcome:
    """The outcome of a decision; the conversion in its place if only classic members remain."""
    removed = [event for event in outcome.events if isinstance(event, ConsumerMemberRemoved)]
    if not removed:
        return outcome
    gone = {event.member.member_id for event in removed}
    staying = [member for member_id, member in group.members.items() if member_id not in gone]
    if not staying or any(member.metadata.classic is None for member in staying):
        return outcome
    reason = reason_against(len(staying), context.settings)
    if reason is not None:
        refused = conversion_refused(group.group_id, reason, now)
        return replace(outcome, events=(*outcome.events, refused))
    members = [staying_member(group, member) for member in staying]
    conversion = convert_to_classic(group, members, LAST_MEMBER_GONE, now, context.topics.view)
    if is_unwritable(conversion, context.settings):
        refused = conversion_refused(group.group_id, RECORD_TOO_LARGE, now)
        return replace(outcome, events=(*outcome.events, refused))
    begin = BeginRebalance(
        group.group_id,
        _CAUSES[removed[0].cause],
        f"Downgrade group {group.group_id} from consumer to classic for member leaving.",
        tuple(event.member.member_id for event in removed),
    )
    return Outcome(
        replies=outcome.replies,
        events=(*removed, conversion.converted, conversion.downgraded),
        records=(*group.tombstones(), conversion.record),
        then=(begin,),
    )


def staying_member(group: ConsumerGroupView, member: ConsumerMemberView) -> StayingMember:
    """What it is to give back it owns, too."""
    target = group.target_of(member.member_id)
    return StayingMember(member.metadata, target, everything_owned(member.current))


def reason_against(members: int, settings: GroupSettings) -> str | None:
    """Why a group of so many classic members stays a consumer group; None if it does not."""
    if not settings.group_consumer_migration_policy.is_downgrade_enabled:
        return POLICY
    return TOO_LARGE if members > settings.group_max_size else None


def is_unwritable(conversion: Conversion, settings: GroupSettings) -> bool:
    """Whether the record of the classic group, which has all members, fits into no batch."""
    return batch_bytes_at_most((conversion.record,)) > settings.max_batch_bytes


def conversion_refused(group_id: GroupId, reason: str, now: Now) -> ConversionRefused:
    return ConversionRefused(group_id, now.wall_ms, GroupType.CONSUMER, GroupType.CLASSIC, reason)


def convert_to_classic(
    group: ConsumerGroupView,
    staying: Sequence[StayingMember],
    reason: str,
    now: Now,
    topics: TopicsView,
    joining: StayingMember | None = None,
) -> Conversion:
    """The first member leads, in the order of Kafka's map of the group's members.

    `joining`: the member whose JoinGroup converts the group. It is added last, so it leads only a
    group of its own.
    """
    by_id = {member.metadata.member_id: member for member in staying}
    staying = [by_id[member_id] for member_id in timeline_order([*by_id], len(group.members))]
    if joining is not None:
        staying.append(joining)
    protocol_name = choose_protocol([_protocols(member) for member in staying])
    members = tuple(_converted(member, protocol_name, now, topics) for member in staying)
    generation_id = GenerationId(group.epoch)
    leader_id = members[0].member.member_id
    offered = [_metadata_for(member.protocols, protocol_name) for member in members]
    downgraded = ConsumerGroupDowngraded(
        group.group_id,
        now.wall_ms,
        generation_id,
        PROTOCOL_TYPE,
        protocol_name,
        leader_id,
        subscribed_topics(PROTOCOL_TYPE, protocol_name, offered),
        members,
    )
    converted = GroupConverted(
        group.group_id, now.wall_ms, GroupType.CONSUMER, GroupType.CLASSIC, reason
    )
    return Conversion(converted, downgraded, _record(downgraded))


def _protocols(member: StayingMember) -> tuple[tuple[str, bytes], ...]:
    assert member.metadata.classic is not None
    return member.metadata.classic.protocols


def _metadata_for(protocols: Sequence[tuple[str, bytes]], protocol_name: str) -> bytes:
    return next(metadata for name, metadata in protocols if name == protocol_name)


def _converted(
    member: StayingMember, protocol_name: str, now: Now, topics: TopicsView
) -> ConvertedMember:
    metadata = member.metadata
    assert metadata.classic is not None
    session_timeout_ms = metadata.classic.session_timeout_ms
    offered = _metadata_for(metadata.classic.protocols, protocol_name)
    held = b""
    if member.owned != member.target:
        held = assignment_bytes(member.owned, offered, topics)
    return ConvertedMember(
        metadata.identity,
        session_timeout_ms,
        metadata.rebalance_timeout_ms,
        metadata.classic.protocols,
        assignment_bytes(member.target, offered, topics),
        now.mono_ms + session_timeout_ms,
        held,
    )


def _record(downgraded: ConsumerGroupDowngraded) -> Record:
    return group_metadata_record(
        downgraded.group_id,
        protocol_type=downgraded.protocol_type,
        generation_id=downgraded.generation_id,
        protocol_name=downgraded.protocol_name,
        leader_id=downgraded.leader_id,
        state_since_ms=downgraded.at_ms,
        members=[
            StoredMember(
                member_id=member.member.member_id,
                group_instance_id=member.member.group_instance_id,
                client_id=member.member.client_id,
                client_host=member.member.client_host,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                session_timeout_ms=member.session_timeout_ms,
                subscription=_metadata_for(member.protocols, downgraded.protocol_name),
                assignment=member.assignment,
            )
            for member in downgraded.members
        ],
    )
