"""Classic events: what happened to a classic group and its members.

Facts in the past tense, made by decisions and applied by `evolve`. Each event carries what `evolve`
needs and what an operator would ask: the log lines, the metrics and the history are all derived
from events (broker/observe/observer.py), by table, and from nothing else. Times: `at_ms` is the
wall clock (Unix epoch), `*_deadline_ms` and `now_ms` are monotonic. Kafka's counterpart: the log
lines of `GroupMetadataManager`, one event for each.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from coordinator.classic.commands import RebalanceCause
from coordinator.member_identity import MemberIdentity
from protocol.names import (
    ApiKey,
    ErrorCode,
    GenerationId,
    GroupId,
    GroupInstanceId,
    GroupState,
    MemberId,
    TopicName,
)
from seams.reply_token import ReplyToken

Protocols = tuple[tuple[str, bytes], ...]
"""A member's offered protocols in its order of preference: (name, metadata)."""


class JoinKind(StrEnum):
    """How a new member joined."""

    DYNAMIC = "dynamic"  # without an id, in a version that does not hand one out first
    PENDING = "pending"  # with the id that it was given
    STATIC = "static"  # with an instance id that nobody held


class RemovalCause(StrEnum):
    """Why a member, or an id that was handed out, is gone."""

    SESSION_EXPIRED = "session_expired"
    NEW_MEMBER_TIMED_OUT = "new_member_timed_out"
    LEFT = "left"
    DID_NOT_REJOIN = "did_not_rejoin"
    DID_NOT_SYNC = "did_not_sync"
    GROUP_FULL = "group_full"
    TOO_MANY_IDS = "too_many_ids"  # rollcall.group.pending.members.max


class LeaderCause(StrEnum):
    """Why another member leads."""

    DID_NOT_REJOIN = "did_not_rejoin"


class MemberIdAssigned(Struct, frozen=True):
    """A new member was told its id and is expected to join with it."""

    group_id: GroupId
    at_ms: int
    state: GroupState
    member_id: MemberId
    client_id: str
    client_host: str
    principal: str | None = None


class MemberAdded(Struct, frozen=True):
    group_id: GroupId
    at_ms: int
    now_ms: int
    state: GroupState
    join_kind: JoinKind
    member: MemberIdentity
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    session_deadline_ms: int
    token: ReplyToken
    reason: str


class MemberRejoined(Struct, frozen=True):
    """A known member's JoinGroup is parked; what it offers now replaces what it offered."""

    group_id: GroupId
    at_ms: int
    now_ms: int
    member: MemberIdentity
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    token: ReplyToken
    reason: str


class StaticMemberReplaced(Struct, frozen=True):
    """A static member came back: same instance, new id. `member` names the process that came.

    `without_rebalance`: into a Stable group whose protocol stays, so no join is parked.
    """

    group_id: GroupId
    at_ms: int
    now_ms: int
    state: GroupState
    old_member_id: MemberId
    member: MemberIdentity
    was_leader: bool
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    session_deadline_ms: int
    token: ReplyToken | None
    without_rebalance: bool
    reason: str


class MemberFenced(Struct, frozen=True):
    """A request came from an id that another one has replaced."""

    group_id: GroupId
    at_ms: int
    member_id: MemberId
    group_instance_id: GroupInstanceId
    current_member_id: MemberId
    api_key: ApiKey


class JoinRefused(Struct, frozen=True):
    """A client offers no protocol that all members have: it cannot be one of them."""

    group_id: GroupId
    at_ms: int
    client_id: str
    client_host: str
    offered: tuple[str, ...]
    supported: tuple[str, ...]  # by all members
    principal: str | None = None


class RemovedMember(Struct, frozen=True):
    """`reason` is the client's own, if it gave one; `by_instance`: nobody named its member id."""

    member: MemberIdentity
    reason: str | None = None
    by_instance: bool = False


class MembersRemoved(Struct, frozen=True):
    """The client is the one whose LeaveGroup it was; empty where time removed them."""

    group_id: GroupId
    at_ms: int
    state: GroupState
    generation_id: GenerationId
    cause: RemovalCause
    removed: tuple[RemovedMember, ...]
    client_id: str = ""
    client_host: str = ""
    principal: str | None = None


class PendingMemberRemoved(Struct, frozen=True):
    """An id that was handed out will not be accepted any more."""

    group_id: GroupId
    at_ms: int
    member_id: MemberId
    cause: RemovalCause
    reason: str | None = None
    client_id: str = ""
    client_host: str = ""
    principal: str | None = None


class SessionExtended(Struct, frozen=True):
    """A member's session now ends here; a lapse is taken back."""

    group_id: GroupId
    member_id: MemberId
    session_deadline_ms: int


class SessionPaused(Struct, frozen=True):
    """A session ran out while the member waits for us: its answer starts it afresh."""

    group_id: GroupId
    member_id: MemberId


class MemberLapsed(Struct, frozen=True):
    """A session ran out, and nobody was told yet: the member may still come back unpunished."""

    group_id: GroupId
    at_ms: int
    now_ms: int
    generation_id: GenerationId
    member: MemberIdentity
    session_timeout_ms: int
    forgiven_until_ms: int


class LapseForgiven(Struct, frozen=True):
    """A lapsed member was heard from in time."""

    group_id: GroupId
    at_ms: int
    generation_id: GenerationId
    member: MemberIdentity
    late_by_ms: int
    session_deadline_ms: int


class ConvertedMember(NamedTuple):
    """A member that used the classic protocol in a consumer group.

    `held_assignment`: what it owns until it joins again, if that is not its assignment.
    """

    member: MemberIdentity
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    assignment: bytes
    session_deadline_ms: int
    held_assignment: bytes = b""


class ConsumerGroupDowngraded(Struct, frozen=True):
    """The members of a consumer group are members of this group, Stable in this generation."""

    group_id: GroupId
    at_ms: int
    generation_id: GenerationId
    protocol_type: str
    protocol_name: str
    leader_id: MemberId
    subscribed_topics: frozenset[TopicName] | None
    members: tuple[ConvertedMember, ...]


class RebalanceBegun(Struct, frozen=True):
    """`waiting_for` are the members that have not rejoined yet."""

    group_id: GroupId
    at_ms: int
    now_ms: int
    from_state: GroupState
    old_generation_id: GenerationId
    cause: RebalanceCause
    reason: str
    trigger_ids: tuple[MemberId, ...]
    waiting_for: tuple[MemberIdentity, ...]
    rebalance_timeout_ms: int


class InitialDelayExtended(Struct, frozen=True):
    group_id: GroupId
    at_ms: int
    delay_ms: int
    remaining_ms: int


class NoMemberRejoined(Struct, frozen=True):
    """Only static members are left and none of them came: the rebalance goes on waiting."""

    group_id: GroupId
    at_ms: int
    waiting_for: tuple[MemberIdentity, ...]


class LeaderChanged(Struct, frozen=True):
    """The timeouts and protocols are those of the new leader."""

    group_id: GroupId
    at_ms: int
    cause: LeaderCause
    old_leader: MemberIdentity
    new_leader: MemberIdentity
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocol_names: tuple[str, ...]


class GenerationBegun(Struct, frozen=True):
    """The joins are answered. Kafka's "Stabilized group"; the assignment is still to come.

    `waited_ms`: of each of `joined`, from its JoinGroup to the answer, in the same order.
    """

    group_id: GroupId
    at_ms: int
    now_ms: int
    generation_id: GenerationId
    protocol_type: str
    protocol_name: str
    leader_id: MemberId
    subscribed_topics: frozenset[TopicName] | None
    recorded: bool
    joined: Sequence[MemberIdentity]
    waited_ms: Sequence[int]
    absent: tuple[MemberIdentity, ...]


class GroupEmptied(Struct, frozen=True):
    group_id: GroupId
    at_ms: int
    generation_id: GenerationId


class SyncParked(Struct, frozen=True):
    group_id: GroupId
    member_id: MemberId
    token: ReplyToken


class MemberSynced(Struct, frozen=True):
    """A member fetched its assignment from a Stable group."""

    group_id: GroupId
    member_id: MemberId


class AssignmentReceived(Struct, frozen=True):
    group_id: GroupId
    at_ms: int
    generation_id: GenerationId
    leader_id: MemberId
    member_count: int
    static_member_count: int
    without_assignment: tuple[MemberId, ...]
    assignment_bytes: int
    assignments: Mapping[MemberId, bytes]
    fits: bool = True  # or it is more than the log takes, and will be refused


class GroupStabilized(Struct, frozen=True):
    """The assignments are stored and handed out."""

    group_id: GroupId
    at_ms: int
    now_ms: int
    generation_id: GenerationId
    assignments: Mapping[MemberId, bytes]
    answered: tuple[MemberId, ...]


class AssignmentDropped(Struct, frozen=True):
    """The assignments were stored, but the group has moved on: they do not apply."""

    group_id: GroupId
    at_ms: int
    generation_id: GenerationId
    state: GroupState
    current_generation_id: GenerationId


class AssignmentRefused(Struct, frozen=True):
    group_id: GroupId
    at_ms: int
    now_ms: int
    generation_id: GenerationId
    leader_id: MemberId
    error_code: ErrorCode


class TopicsChanged(Struct, frozen=True):
    """Partitions of topics that the group subscribes to came or went; a rebalance will follow."""

    group_id: GroupId
    at_ms: int
    topics: frozenset[TopicName]


class ChangedTopicsForgotten(Struct, frozen=True):
    """Nobody is left in the group for whom the changes would matter."""

    group_id: GroupId


ClassicEvent = (
    MemberIdAssigned
    | MemberAdded
    | MemberRejoined
    | StaticMemberReplaced
    | MemberFenced
    | JoinRefused
    | MembersRemoved
    | PendingMemberRemoved
    | SessionExtended
    | SessionPaused
    | MemberLapsed
    | LapseForgiven
    | ConsumerGroupDowngraded
    | RebalanceBegun
    | InitialDelayExtended
    | NoMemberRejoined
    | LeaderChanged
    | GenerationBegun
    | GroupEmptied
    | SyncParked
    | MemberSynced
    | AssignmentReceived
    | GroupStabilized
    | AssignmentDropped
    | AssignmentRefused
    | TopicsChanged
    | ChangedTopicsForgotten
)
