"""JoinGroup at a consumer group: a member of the classic protocol joins, or joins again.

It is answered at once, with its member epoch as the generation and without a leader or members: the
coordinator assigns. What it subscribes to and owns it says in the metadata of its protocols. A
static member may take the place of one of the consumer protocol; if that was the last one, the
group is downgraded. An empty group is converted in any case.
Kafka's counterpart: `GroupMetadataManager.classicGroupJoinToConsumerGroup`.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from coordinator.classic.commands import Join
from coordinator.classic.decide.join_answers import refuse_join
from coordinator.classic.decide.join_request import offered_protocols, rebalance_timeout_ms
from coordinator.consumer.commands import ResolveRegularExpressions
from coordinator.consumer.context import ConsumerContext
from coordinator.consumer.decide.advance import advance
from coordinator.consumer.decide.find_member import FoundMember
from coordinator.consumer.decide.refusal import Refusal
from coordinator.consumer.decide.update_member import with_principal
from coordinator.consumer.events import (
    ClassicJoinAnswered,
    ConsumerEvent,
    ConsumerSessionExtended,
    RegularExpressionsRequested,
)
from coordinator.consumer.group_view import ConsumerGroupView
from coordinator.consumer.member import (
    ClassicMetadata,
    ConsumerMemberMetadata,
    CurrentAssignment,
)
from coordinator.consumer.records import turn_records
from coordinator.events import GroupConverted
from coordinator.group import GroupType
from coordinator.migration.classic_members import find_named_member, instance_fenced
from coordinator.migration.embedded_protocol import owned_topic_ids
from coordinator.migration.replaced_member import (
    JoiningMember,
    downgrade_by_join,
    member_epoch_answer,
)
from coordinator.outcome import Outcome
from coordinator.records import new_group_record
from coordinator.settings import MigrationPolicy
from protocol.consumer_protocol import (
    PROTOCOL_TYPE,
    ConsumerProtocolSubscription,
    read_subscription,
)
from protocol.messages.consumer_group_heartbeat import HeartbeatTopicPartitions
from protocol.messages.join_group import JoinGroupRequest
from protocol.names import (
    NO_GENERATION,
    UNKNOWN_MEMBER_ID,
    ErrorCode,
    MemberId,
)
from protocol.primitives import Malformed
from seams.now import Now
from seams.reply_token import ReplyToken

_IDS_GIVEN_OUT_SINCE: Final = 4  # KIP-394
_NOT_GIVEN: Final = -1

_EMPTY_GROUP: Final = "a member joins the empty group with the classic protocol"


def decide_join_of_classic_member(
    group: ConsumerGroupView, command: Join, now: Now, context: ConsumerContext
) -> Outcome:
    request, token = command.request, command.token
    if not group.members:
        return _join_empty_group(group, command, now)
    refusal = _refusal(group, request, context)
    if refusal is not None:
        return _refused(token, refusal)
    if _needs_id(request, token):
        # Nothing is kept of the id: any id may join a consumer group.
        reply = refuse_join(token, ErrorCode.MEMBER_ID_REQUIRED, context.new_member_id())
        return Outcome(replies=(reply,))
    found = _find(group, request, context)
    if found is ErrorCode.FENCED_INSTANCE_ID:
        member_id, instance_id = request.member_id, request.group_instance_id
        fenced = instance_fenced(group, member_id, instance_id, NO_GENERATION, now)
        return _refused(token, found, fenced)
    if isinstance(found, ErrorCode):
        return _refused(token, found)
    try:
        subscription = read_subscription(bytes(request.protocols[0].metadata))
    except Malformed:
        return _refused(token, ErrorCode.UNKNOWN_SERVER_ERROR)
    metadata = _updated_metadata(found.metadata, request, subscription, token)
    reported = _reported(subscription, context)
    joining = JoiningMember(found, metadata, reported, request.group_instance_id)
    downgraded = downgrade_by_join(group, joining, token, now, context)
    if isinstance(downgraded, Outcome):
        return downgraded
    outcome = _join(group, joining, command, now, context)
    if downgraded is None:
        return outcome
    return replace(outcome, events=(*outcome.events, downgraded))


def _join_empty_group(group: ConsumerGroupView, command: Join, now: Now) -> Outcome:
    """The group is classic from now on, whatever becomes of the join; its offsets stay."""
    request = command.request
    if request.member_id != UNKNOWN_MEMBER_ID:
        reply = refuse_join(command.token, ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)
        return Outcome(replies=(reply,))
    converted = GroupConverted(
        group.group_id,
        now.wall_ms,
        GroupType.CONSUMER,
        GroupType.CLASSIC,
        _EMPTY_GROUP,
        had_members=False,
    )
    record = new_group_record(group.group_id, now.wall_ms)
    return Outcome(events=(converted,), records=(*group.tombstones(), record), then=(command,))


# ---------------------------------------------------------------- who joins


def _refusal(
    group: ConsumerGroupView, request: JoinGroupRequest, context: ConsumerContext
) -> ErrorCode | None:
    settings = context.settings
    if settings.group_consumer_migration_policy is MigrationPolicy.DISABLED:
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    is_full = len(group.members) >= settings.group_consumer_max_size
    if is_full and request.member_id not in group.members:
        return ErrorCode.GROUP_MAX_SIZE_REACHED
    if sum(len(protocol.metadata) for protocol in request.protocols) > settings.max_batch_bytes:
        return ErrorCode.MESSAGE_TOO_LARGE  # as at a classic group: no record could hold it
    if not _supports_protocols(group, request):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return None


def _supports_protocols(group: ConsumerGroupView, request: JoinGroupRequest) -> bool:
    """A protocol that all classic members offer; without any, every one."""
    if request.protocol_type != PROTOCOL_TYPE:
        return False
    shared = {protocol.name for protocol in request.protocols}
    if group.classic_member_count:
        for member in group.members.values():
            if member.metadata.classic is not None:
                shared &= {name for name, _ in member.metadata.classic.protocols}
    return bool(shared)


def _needs_id(request: JoinGroupRequest, token: ReplyToken) -> bool:
    return (
        request.member_id == UNKNOWN_MEMBER_ID
        and request.group_instance_id is None
        and token.api_version >= _IDS_GIVEN_OUT_SINCE
    )


def _find(
    group: ConsumerGroupView, request: JoinGroupRequest, context: ConsumerContext
) -> FoundMember | ErrorCode:
    member_id, instance_id = request.member_id, request.group_instance_id
    if instance_id is not None and member_id == UNKNOWN_MEMBER_ID:
        member_id = context.new_member_id()
        holder_id = group.static_members.get(instance_id)
        if holder_id is None:
            return _new(member_id)
        return _replaced(group, holder_id, member_id)
    if instance_id is None and member_id not in group.members:
        return _new(member_id or context.new_member_id())
    member = find_named_member(group, member_id, instance_id)
    if isinstance(member, ErrorCode):
        return member
    return FoundMember(member.metadata, member.current, group.target_of(member_id))


def _new(member_id: MemberId) -> FoundMember:
    return FoundMember(ConsumerMemberMetadata(member_id), CurrentAssignment(), {}, is_new=True)


def _replaced(group: ConsumerGroupView, holder_id: MemberId, member_id: MemberId) -> FoundMember:
    """A static member is back, with another id. It need not have left before."""
    holder = group.members[holder_id]
    return FoundMember(
        replace(holder.metadata, member_id=member_id),
        replace(holder.current, member_epoch=0, previous_member_epoch=0),
        group.target_of(holder_id),
        replaces=holder_id,
    )


# ---------------------------------------------------------------- what it says


def _updated_metadata(
    before: ConsumerMemberMetadata,
    request: JoinGroupRequest,
    subscription: ConsumerProtocolSubscription,
    token: ReplyToken,
) -> ConsumerMemberMetadata:
    """All protocols of a consumer have the same subscription. A regular expression is not in it."""
    timeout_ms = rebalance_timeout_ms(request, token)
    rack_id, instance_id = subscription.rack_id, request.group_instance_id
    updated = replace(
        before,
        instance_id=before.instance_id if instance_id is None else instance_id,
        rack_id=before.rack_id if rack_id is None else rack_id,
        client_id=token.client_id,
        client_host=token.client_host,
        subscribed_topic_names=tuple(sorted(set(subscription.topics))),
        subscribed_topic_regex="",
        rebalance_timeout_ms=(
            before.rebalance_timeout_ms if timeout_ms == _NOT_GIVEN else timeout_ms
        ),
        classic=ClassicMetadata(request.session_timeout_ms, offered_protocols(request)),
    )
    return with_principal(before, updated, token)


def _reported(
    subscription: ConsumerProtocolSubscription, context: ConsumerContext
) -> Sequence[HeartbeatTopicPartitions]:
    owned = owned_topic_ids(subscription, context.topics.view)
    return [HeartbeatTopicPartitions(topic_id, sorted(owned[topic_id])) for topic_id in owned]


# ---------------------------------------------------------------- what follows


def _join(
    group: ConsumerGroupView,
    joining: JoiningMember,
    command: Join,
    now: Now,
    context: ConsumerContext,
) -> Outcome:
    found, metadata, token = joining.found, joining.metadata, command.token
    advanced = advance(group, found, metadata, joining.reported, now, context)
    if isinstance(advanced, Refusal):
        return _refused(token, advanced.error_code, *advanced.happened)
    group_id, member_id, mono_ms = group.group_id, metadata.member_id, now.mono_ms
    assert metadata.classic is not None
    session_ms = mono_ms + metadata.classic.session_timeout_ms
    # As in Kafka that of the request: -1 does not change the member's, but ends at once.
    sync_ms = mono_ms + max(rebalance_timeout_ms(command.request, token), 0)
    happened = advanced.happened
    happened.append(ConsumerSessionExtended(group_id, member_id, session_ms))
    happened.append(ClassicJoinAnswered(group_id, member_id, sync_ms))
    then: tuple[ResolveRegularExpressions, ...] = ()
    if advanced.is_resolution_due:
        happened.append(RegularExpressionsRequested(group_id, mono_ms))
        then = (ResolveRegularExpressions(group_id, token),)
    return Outcome(
        replies=(member_epoch_answer(metadata, advanced.current, token),),
        events=happened,
        records=turn_records(happened),
        then=then,
        job=advanced.job,
    )


def _refused(token: ReplyToken, error_code: ErrorCode, *happened: ConsumerEvent) -> Outcome:
    return Outcome(replies=(refuse_join(token, error_code),), events=happened)
