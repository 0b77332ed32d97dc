"""Entry values: the parts of history entries: members, waits, partitions and offsets.

Named tuples, stored as maps by the names of their fields (encoding.py), as entries are. Every field
that was added later has a default.
"""

from typing import Final, NamedTuple

from coordinator.member_identity import MemberIdentity
from history.causes import Cause, WaitEnd

NO_MEMBER: Final = MemberIdentity()


class RequestClient(NamedTuple):
    """The client that sent the request. `principal`: as in MemberIdentity."""

    client_id: str = ""
    client_host: str = ""
    principal: str | None = None


class MemberWait(NamedTuple):
    """A member that a rebalance waited for.

    `join_delay_ms`: from the beginning of the rebalance to its JoinGroup; None: it sent none.
    Of a consumer group: a member that had to give back `partitions`. `join_delay_ms` then ends
    when it had done so, and `waited_ms` begins when it was asked.
    """

    member: MemberIdentity
    join_delay_ms: int | None = None
    end: WaitEnd = WaitEnd.WAITING
    asked_at_ms: int | None = None
    waited_ms: int | None = None
    partitions: int | None = None


class JoinedMember(NamedTuple):
    """A member of a new generation, and how long after the rebalance began it joined.

    Of a consumer group: how long after that it had reached the target assignment.
    """

    member: MemberIdentity
    join_delay_ms: int = 0


class MemberRemoval(NamedTuple):
    """A removed member. `reason`: the client's own; `silent_ms`: since its last sign of life, if it
    expired."""

    member: MemberIdentity
    reason: str | None = None
    silent_ms: int | None = None
    session_timeout_ms: int | None = None  # its own, if it expired
    member_epoch: int | None = None  # consumer groups
    partitions: int | None = None  # consumer groups: that it owned


class AlsoCaused(NamedTuple):
    """Another cause, which would have begun the rebalance if it had not been running."""

    cause: Cause
    member: MemberIdentity | None = None
    at_ms: int = 0


class PartitionMove(NamedTuple):
    """A partition that moved from one member to another."""

    topic: str
    partition: int
    from_member: str
    to_member: str


class TopicPartitionCounts(NamedTuple):
    """A topic whose partitions changed: their numbers. None: not known; 0: no topic."""

    topic: str
    before: int | None = None
    now: int | None = None


class StandbyTasks(NamedTuple):
    """The tasks assigned to a Kafka Streams client. `standby`: standbys and warm-ups, which the
    assignment does not distinguish."""

    member: MemberIdentity
    active: int = 0
    standby: int = 0


class OwnedTopic(NamedTuple):
    """Partitions of one topic that a member owns, or is to give back."""

    topic: str
    partitions: tuple[int, ...] = ()


class PartitionHandover(NamedTuple):
    """A partition that a member owns from now on.

    `from_member`: the last owner, by instance id or else member id; "": it had none before.
    `unowned_ms`: for how long nobody owned it; None: not known.
    """

    topic: str
    partition: int
    from_member: str = ""
    unowned_ms: int | None = None


class OffsetChange(NamedTuple):
    """None: there was no offset, or there is none now."""

    topic: str
    partition: int
    old: int | None = None
    new: int | None = None
