"""Consumer group events: what happened to a consumer group and its members.

Facts in the past tense, made by decisions and applied by `evolve`. Those that change what the log
keeps have one record, or its tombstones, each (`event_records` in consumer/records.py): applying an
event and replaying its record give the same group. Log lines, metrics and the history are derived
from events. Times: `at_ms` is the wall clock (Unix epoch), `*_deadline_ms` and `now_ms` are
monotonic. Kafka's counterpart: the records and log lines of `GroupMetadataManager`.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from coordinator.consumer.assignors.assignor import Assignment
from coordinator.consumer.member import ConsumerMemberMetadata, CurrentAssignment
from coordinator.member_identity import MemberIdentity
from protocol.names import ErrorCode, GroupId, GroupInstanceId, MemberId, TopicName


class EpochCause(StrEnum):
    """Why the group epoch rose, as the history and the metrics name it."""

    MEMBER_JOINED = "member_joined"
    MEMBER_LEFT = "member_left"
    SESSION_EXPIRED = "session_expired"
    REBALANCE_TIMED_OUT = "rebalance_timed_out"
    SUBSCRIPTION_CHANGED = "subscription_changed"
    REGULAR_EXPRESSION_CHANGED = "regular_expression_changed"
    TOPICS_CHANGED = "topics_changed"
    STATIC_MEMBER_REPLACED = "static_member_replaced"
    GROUP_CONVERTED = "group_converted"


class ConsumerRemovalCause(StrEnum):
    """Why a member is gone."""

    LEFT = "left"
    SESSION_EXPIRED = "session_expired"
    REBALANCE_TIMED_OUT = "rebalance_timed_out"
    CLASSIC_REJOIN_TIMED_OUT = "classic_rejoin_timed_out"  # a member of the classic protocol
    CLASSIC_SYNC_TIMED_OUT = "classic_sync_timed_out"


class ConsumerMemberUpdated(Struct, frozen=True):
    """A member joined (`is_new`), or says something else of itself. Record type 5."""

    group_id: GroupId
    at_ms: int
    member: ConsumerMemberMetadata
    is_new: bool


class ConsumerMemberRemoved(Struct, frozen=True):
    """A member is gone with its target and its partitions. Tombstones of types 8, 7 and 5.

    `silent_ms`: since its last heartbeat, if its session expired. `leave_reason`: the client's own,
    of a LeaveGroup (the classic protocol); "" if it gave none. None if it left by its heartbeat.
    """

    group_id: GroupId
    at_ms: int
    member: MemberIdentity
    cause: ConsumerRemovalCause
    member_epoch: int
    owned: Assignment  # what it owned, with what it was to give back
    silent_ms: int | None = None
    session_timeout_ms: int | None = None  # likewise
    rebalance_timeout_ms: int | None = None
    leave_reason: str | None = None


class ConsumerStaticMemberReplaced(Struct, frozen=True):
    """A static member came back with another id, which takes over target and partitions.

    Tombstones of types 8, 7 and 5 of the old id; types 5, 7 and 8 (member epoch 0) of the new one.
    `is_classic`: it came back with the classic protocol; `member` has what it said before.
    """

    group_id: GroupId
    at_ms: int
    old_member_id: MemberId
    member: ConsumerMemberMetadata
    target: Assignment
    current: CurrentAssignment
    is_classic: bool = False


class ConvertedMember(NamedTuple):
    """A member of a classic group. Its target is its last assignment."""

    member: ConsumerMemberMetadata
    target: Assignment
    current: CurrentAssignment


class ClassicGroupUpgraded(Struct, frozen=True):
    """The members of a classic group are members of this group, Stable in this epoch.

    Record type 5 for each, type 3, type 7 for each, type 6 (assigned at 0), type 8 for each.
    """

    group_id: GroupId
    at_ms: int
    epoch: int
    metadata_hash: int
    members: tuple[ConvertedMember, ...]


class GroupEpochBumped(Struct, frozen=True):
    """Record type 3. `causes` in the order in which they were found; `trigger_ids` whose."""

    group_id: GroupId
    at_ms: int
    epoch: int
    metadata_hash: int
    causes: tuple[EpochCause, ...]
    trigger_ids: tuple[MemberId, ...] = ()
    changed_topics: tuple[TopicName, ...] = ()


class TargetAssignmentUpdated(Struct, frozen=True):
    """Record type 7 for each member of `changed`, then type 6."""

    group_id: GroupId
    at_ms: int
    assignment_epoch: int
    assignor: str
    changed: Mapping[MemberId, Assignment]
    took_ms: int = 0


class TargetAssignmentRequested(Struct, frozen=True):
    """An assignor computes for this group epoch, outside of the turn. Not stored."""

    group_id: GroupId
    group_epoch: int
    at_ms: int = 0


class TargetAssignmentRefused(Struct, frozen=True):
    """An assignor could not compute a target. Not stored."""

    group_id: GroupId
    at_ms: int
    group_epoch: int
    assignor: str
    reason: str


class CurrentAssignmentUpdated(Struct, frozen=True):
    """A member moved to another epoch, state or set of partitions. Record type 8.

    `rebalance_deadline_ms`: until when it has to give back what it was told to; None if nothing.
    """

    group_id: GroupId
    at_ms: int
    now_ms: int
    member_id: MemberId
    current: CurrentAssignment
    rebalance_deadline_ms: int | None = None
    instance_id: GroupInstanceId | None = None


class RegularExpressionResolved(Struct, frozen=True):
    """Record type 16. `version` counts topic changes of the view that it was matched with."""

    group_id: GroupId
    at_ms: int
    pattern: str
    topics: frozenset[TopicName]
    version: int


class RegularExpressionRemoved(Struct, frozen=True):
    """No member subscribes with it any more. Tombstone of type 16."""

    group_id: GroupId
    at_ms: int
    pattern: str


class RegularExpressionsRequested(Struct, frozen=True):
    """A resolution of the group's regular expressions follows. Not stored."""

    group_id: GroupId
    now_ms: int


class MetadataRefreshRequested(Struct, frozen=True):
    """Topics changed: the next heartbeat computes the metadata hash again. Not stored."""

    group_id: GroupId
    topics: frozenset[TopicName]


class MetadataRefreshed(Struct, frozen=True):
    """The metadata hash was computed and is as before. Not stored."""

    group_id: GroupId


class ConsumerSessionExtended(Struct, frozen=True):
    """A member's session now ends here. Not stored."""

    group_id: GroupId
    member_id: MemberId
    session_deadline_ms: int


class ClassicRejoinRequested(Struct, frozen=True):
    """A member of the classic protocol was told to join again, until this deadline. Not stored."""

    group_id: GroupId
    member_id: MemberId
    rejoin_deadline_ms: int


class ClassicJoinAnswered(Struct, frozen=True):
    """A member of the classic protocol is to sync until this deadline. Not stored."""

    group_id: GroupId
    member_id: MemberId
    sync_deadline_ms: int


class ClassicMemberSynced(Struct, frozen=True):
    """A member of the classic protocol fetched its assignment. Not stored."""

    group_id: GroupId
    member_id: MemberId


class ConsumerMemberFenced(Struct, frozen=True):
    """A request came with an epoch or an instance id that is not the member's any more."""

    group_id: GroupId
    at_ms: int
    member_id: MemberId
    error_code: ErrorCode
    received_epoch: int
    member_epoch: int | None
    instance_id: GroupInstanceId | None = None
    holder_id: MemberId | None = None  # the member that has the instance id


ConsumerEvent = (
    ConsumerMemberUpdated
    | ConsumerMemberRemoved
    | ConsumerStaticMemberReplaced
    | ClassicGroupUpgraded
    | GroupEpochBumped
    | TargetAssignmentUpdated
    | TargetAssignmentRequested
    | TargetAssignmentRefused
    | CurrentAssignmentUpdated
    | RegularExpressionResolved
    | RegularExpressionRemoved
    | RegularExpressionsRequested
    | MetadataRefreshRequested
    | MetadataRefreshed
    | ConsumerSessionExtended
    | ClassicRejoinRequested
    | ClassicJoinAnswered
    | ClassicMemberSynced
    | ConsumerMemberFenced
)
