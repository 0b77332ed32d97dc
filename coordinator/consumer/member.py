"""Consumer member: what one member of a consumer group said of itself, and what it owns.

All values, one for each record type that names a member: `ConsumerMemberMetadata` (type 5), the
target assignment (type 7) and `CurrentAssignment` (type 8). A change replaces the value.
Kafka's counterpart: `ConsumerGroupMember`, `ConsumerMemberState`.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from msgspec import Struct

from coordinator.consumer.assignors.assignor import Assignment
from coordinator.member_identity import MemberIdentity
from protocol.messages.consumer_group_heartbeat import LEAVE_STATIC_EPOCH
from protocol.names import GroupInstanceId, MemberId, TopicId, TopicName

NO_REBALANCE_TIMEOUT: Final = -1

NEVER_ASSIGNED_MS: Final = 0
"""When the target assignment was computed, of a group whose target no assignor has computed."""

OwnedPartitions = Mapping[TopicId, Mapping[int, int]]
"""Partitions that a member owns: topic -> partition -> the epoch in which it was assigned."""

NOTHING_OWNED: Final[OwnedPartitions] = {}


class ConsumerMemberState(IntEnum):
    """Where a member is on the way to its target; the number stands in records of type 8."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1  # it was told to give partitions back and has not confirmed that
    UNRELEASED_PARTITIONS = 2  # it waits for partitions that others have not given back
    UNKNOWN = 127  # of a later Kafka


class ClassicMetadata(Struct, frozen=True):
    """What a member said in JoinGroup that uses the classic protocol in a consumer group."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]  # (name, metadata), in its order of preference


class ConsumerMemberMetadata(Struct, frozen=True, gc=False):
    """`subscribed_topic_regex` "" means none. `classic` is None for the consumer protocol."""

    member_id: MemberId
    instance_id: GroupInstanceId | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: tuple[TopicName, ...] = ()  # sorted, each once
    subscribed_topic_regex: str = ""
    rebalance_timeout_ms: int = NO_REBALANCE_TIMEOUT
    server_assignor: str | None = None
    classic: ClassicMetadata | None = None
    principal: str | None = None  # as in MemberIdentity; not in the record

    @property
    def identity(self) -> MemberIdentity:
        """For the log and the history."""
        host, principal = self.client_host, self.principal
        return MemberIdentity(self.member_id, self.instance_id, self.client_id, host, principal)


class CurrentAssignment(Struct, frozen=True, gc=False):
    """What a member owns. Partitions in `pending_revocation` are its own until it confirms.

    `member_epoch` -2 (LEAVE_STATIC_EPOCH): a static member that left for a while.
    `previous_member_epoch` is accepted from a client that did not get the last answer.
    """

    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: ConsumerMemberState = ConsumerMemberState.STABLE
    assigned: OwnedPartitions = NOTHING_OWNED
    pending_revocation: OwnedPartitions = NOTHING_OWNED

    @property
    def has_left_for_a_while(self) -> bool:
        return self.member_epoch == LEAVE_STATIC_EPOCH


def without_epochs(owned: OwnedPartitions) -> Assignment:
    """Owned partitions without their epochs."""
    return {topic_id: frozenset(epochs) for topic_id, epochs in owned.items()}
