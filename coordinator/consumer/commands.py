"""Consumer group commands: what is asked of a consumer group: by a request, a timer, an assignor.

Every turn of a shard carries out one command (see classic/commands.py). A heartbeat does all of
its steps in one turn, so that its records are one batch: update the member, bump the group epoch,
compute the target assignment, reconcile.
"""

from collections.abc import Mapping

from msgspec import Struct

from coordinator.consumer.assignors.assignor import Assignment
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from protocol.names import GroupId, GroupInstanceId, MemberId
from seams.reply_token import ReplyToken
from storage.api import RecordPair


class ConsumerHeartbeat(Struct, frozen=True):
    group_id: GroupId
    request: ConsumerGroupHeartbeatRequest
    token: ReplyToken


class ExpireConsumerSession(Struct, frozen=True):
    """A member has been silent for long enough to look."""

    group_id: GroupId
    member_id: MemberId


class ExpireRebalanceTimeout(Struct, frozen=True):
    """A member has not given partitions back in time, if it is still in this epoch."""

    group_id: GroupId
    member_id: MemberId
    member_epoch: int


class ExpireClassicRejoin(Struct, frozen=True):
    """A member of the classic protocol was to join again by now."""

    group_id: GroupId
    member_id: MemberId


class ExpireClassicSync(Struct, frozen=True):
    """A member of the classic protocol was to sync by now."""

    group_id: GroupId
    member_id: MemberId


class ResolveRegularExpressions(Struct, frozen=True):
    """Match the group's regular expressions with the topics that exist now.

    `token` is the heartbeat's that found it due: topics that its client may not see do not match.
    """

    group_id: GroupId
    token: ReplyToken


class TargetAssignmentComputed(Struct, frozen=True):
    """An assignor's result for this group epoch; it is dropped if the epoch has passed.

    `targets` has an entry for each member that the assignor was given, `instances` the instance ids
    of the static ones, `records` what the log keeps of each target that changes.
    """

    group_id: GroupId
    group_epoch: int
    assignor: str
    targets: Mapping[MemberId, Assignment]
    took_ms: int
    requested_at_ms: int  # another group may have its id by now, and wait for the same epoch
    instances: Mapping[MemberId, GroupInstanceId]
    records: Mapping[MemberId, RecordPair]


class TargetAssignmentFailed(Struct, frozen=True):
    """An assignor raised; the target assignment stays, and the next heartbeat tries again."""

    group_id: GroupId
    group_epoch: int
    assignor: str
    reason: str
    requested_at_ms: int


ConsumerCommand = (
    ConsumerHeartbeat
    | ExpireConsumerSession
    | ExpireRebalanceTimeout
    | ExpireClassicRejoin
    | ExpireClassicSync
    | ResolveRegularExpressions
    | TargetAssignmentComputed
    | TargetAssignmentFailed
)
