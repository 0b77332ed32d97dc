"""Classic commands: what is asked of a classic group: by a request, a timer, a stored record.

Every turn of a shard carries out one command. A decision may name commands that follow it at once
(`Outcome.then`) or once its records are stored (`Outcome.when_stored`); an op of the purgatory
yields one when what it waits for has come. So each decision takes one step, and a rebalance that
begins, completes and empties a group within one request is a chain of small ones.
Kafka's counterpart: the methods that its timers and append futures call.
"""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest
from protocol.messages.leave_group import LeaveGroupRequest
from protocol.messages.sync_group import SyncGroupRequest
from protocol.names import ErrorCode, GenerationId, GroupId, MemberId
from seams.reply_token import ReplyToken


class RebalanceCause(StrEnum):
    """Why a rebalance began, as the history and the metrics name it."""

    MEMBER_JOINED = "member_joined"
    METADATA_CHANGED = "metadata_changed"
    LEADER_REJOINED = "leader_rejoined"
    STATIC_MEMBER_CHANGED = "static_member_changed"
    SESSION_EXPIRED = "session_expired"
    MEMBER_LEFT = "member_left"
    DID_NOT_SYNC = "did_not_sync"
    ASSIGNMENT_NOT_STORED = "assignment_not_stored"
    OVER_CAPACITY = "over_capacity"
    PARTITIONS_CHANGED = "partitions_changed"


class Join(Struct, frozen=True):
    group_id: GroupId
    request: JoinGroupRequest
    token: ReplyToken


class Sync(Struct, frozen=True):
    group_id: GroupId
    request: SyncGroupRequest
    token: ReplyToken


class Beat(Struct, frozen=True):
    group_id: GroupId
    request: HeartbeatRequest
    token: ReplyToken


class Leave(Struct, frozen=True):
    group_id: GroupId
    request: LeaveGroupRequest
    token: ReplyToken


class BeginRebalance(Struct, frozen=True):
    """Move the group to PreparingRebalance. `reason` is Kafka's sentence, `trigger_ids` whose."""

    group_id: GroupId
    cause: RebalanceCause
    reason: str
    trigger_ids: tuple[MemberId, ...] = ()


class EndInitialDelay(Struct, frozen=True):
    """The initial delay ran out: extend it if somebody came meanwhile, else complete the join."""

    group_id: GroupId
    rebalance_id: int
    delay_ms: int
    remaining_ms: int


class CompleteJoin(Struct, frozen=True):
    """All have rejoined, or (`expired`) the rest is not waited for any longer."""

    group_id: GroupId
    rebalance_id: int
    expired: bool


class EndSyncPhase(Struct, frozen=True):
    """Nobody is left to sync, or (`expired`) the rest is not waited for any longer."""

    group_id: GroupId
    generation_id: GenerationId
    expired: bool


class ExpireSession(Struct, frozen=True):
    """A member, or an id that was handed out, has been silent for long enough to look."""

    group_id: GroupId
    member_id: MemberId


class RemoveLapsed(Struct, frozen=True):
    """Members whose session ran out, and who were forgiven so far, go now."""

    group_id: GroupId


class AssignmentStored(Struct, frozen=True):
    """The record of the leader's assignments is durable; do they still apply?"""

    group_id: GroupId
    generation_id: GenerationId
    leader_id: MemberId
    assignments: Mapping[MemberId, bytes]

    def refused(self, error_code: ErrorCode) -> "RefuseAssignment":
        """What comes instead, if the disk takes too long."""
        return RefuseAssignment(self.group_id, self.generation_id, self.leader_id, error_code)


class RefuseAssignment(Struct, frozen=True):
    """The leader's assignments cannot be stored, or not in time."""

    group_id: GroupId
    generation_id: GenerationId
    member_id: MemberId
    error_code: ErrorCode


class EndPartitionDelay(Struct, frozen=True):
    """Partition changes were gathered for long enough, or their group is Stable at last."""

    group_id: GroupId


Request = Join | Sync | Beat | Leave
"""A client's question about one group's membership, and the token that its answer goes to."""

ClassicCommand = (
    Request
    | BeginRebalance
    | EndInitialDelay
    | CompleteJoin
    | EndSyncPhase
    | ExpireSession
    | RemoveLapsed
    | AssignmentStored
    | RefuseAssignment
    | EndPartitionDelay
)
