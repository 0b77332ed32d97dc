"""Consumer group entries: the record types of `__group_history` for the consumer group protocol.

As in entries.py, which has the types that both protocols share, the list of all stored names and
the rules. A rebalance of a consumer group begins with the first group epoch and ends when all
members have reached the target assignment (`RebalanceBegunEntry`, `RebalanceEndedEntry`). Between
them stand the entries of this module. A member whose partitions stay has none: `joined` of the
rebalance says when it reached the target.
"""

from msgspec import Struct

from coordinator.member_identity import MemberIdentity
from history.causes import Cause, WaitEnd
from history.entry_values import NO_MEMBER, OwnedTopic, PartitionHandover, PartitionMove
from protocol.names import NO_GENERATION


class GroupConvertedEntry(Struct, frozen=True):
    """The group has another type from now on. `generation`, `members`: as it was before."""

    group_id: str
    at_ms: int
    from_type: str = ""
    to_type: str = ""
    reason: str = ""
    generation: int = NO_GENERATION
    members: int = 0


class ConsumerMemberUpdatedEntry(Struct, frozen=True):
    """A member of a consumer group says something else of itself. `changed`: the fields' names."""

    group_id: str
    at_ms: int
    member: MemberIdentity = NO_MEMBER
    generation: int = NO_GENERATION  # the group epoch, before
    changed: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    topics_left_out: int = 0
    topic_regex: str = ""
    assignor: str = ""
    protocol: str = ""


class StaticMemberLeftEntry(Struct, frozen=True):
    """A static member left for a while (member epoch -2): it keeps its partitions until its
    session expires."""

    group_id: str
    at_ms: int
    member: MemberIdentity = NO_MEMBER
    generation: int = NO_GENERATION  # the group epoch
    member_epoch: int = NO_GENERATION  # that it had reached
    partitions: int = 0


class GroupEpochBumpedEntry(Struct, frozen=True):
    """The group epoch rose; in one flush with its record. `topics`: whose metadata changed."""

    group_id: str
    at_ms: int
    epoch: int = NO_GENERATION
    causes: tuple[Cause, ...] = ()
    triggers: tuple[MemberIdentity, ...] = ()
    triggers_left_out: int = 0
    topics: tuple[str, ...] = ()
    topics_left_out: int = 0
    members: int = 0  # at this moment: with a new one, without one that left


class TargetAssignmentUpdatedEntry(Struct, frozen=True):
    """A target assignment was computed; in one flush with its records.

    `members`: those whose target changed. `partitions_moved`: of their new partitions, those that
    another member owns or owned last; None: too many to be counted.
    """

    group_id: str
    at_ms: int
    epoch: int = NO_GENERATION
    assignor: str = ""
    took_ms: int = 0
    members: int = 0
    partitions_moved: int | None = None
    moves: tuple[PartitionMove, ...] = ()
    moves_left_out: int = 0


class TargetAssignmentRefusedEntry(Struct, frozen=True):
    """An assignor could not compute a target assignment; the old one stays."""

    group_id: str
    at_ms: int
    epoch: int = NO_GENERATION
    assignor: str = ""
    reason: str = ""
    times: int | None = None  # in a row so far; None: once. repeats.py limits the entries


class RevocationRequestedEntry(Struct, frozen=True):
    """A member was told to give partitions back, and keeps its epoch until it has confirmed that.

    `timeout_ms`: its rebalance timeout, after which it is removed.
    """

    group_id: str
    at_ms: int
    member: MemberIdentity = NO_MEMBER
    member_epoch: int = NO_GENERATION
    target_epoch: int = NO_GENERATION
    partitions: tuple[OwnedTopic, ...] = ()
    partitions_left_out: int = 0
    timeout_ms: int = 0


class RevocationEndedEntry(Struct, frozen=True):
    """A member has given its partitions back, or is gone with them (`end`)."""

    group_id: str
    at_ms: int
    member: MemberIdentity = NO_MEMBER
    end: WaitEnd = WaitEnd.REVOKED
    member_epoch: int = NO_GENERATION  # from now on; of one that is gone, the last
    partitions: int = 0
    waited_ms: int | None = None


class PartitionsAssignedEntry(Struct, frozen=True):
    """A member owns these partitions from now on; in one flush with its record.

    `waits_for`: partitions of its target that other members still own; 0 and a `member_epoch`
    that equals `target_epoch`: it has reached its target.
    """

    group_id: str
    at_ms: int
    member: MemberIdentity = NO_MEMBER
    member_epoch: int = NO_GENERATION
    target_epoch: int = NO_GENERATION
    handed_over: tuple[PartitionHandover, ...] = ()
    handed_over_left_out: int = 0
    waits_for: int = 0


class RegularExpressionResolvedEntry(Struct, frozen=True):
    """A subscribed regular expression matches these topics now; written when they change."""

    group_id: str
    at_ms: int
    pattern: str = ""
    topics: tuple[str, ...] = ()
    topics_left_out: int = 0


ConsumerEntry = (
    GroupConvertedEntry
    | ConsumerMemberUpdatedEntry
    | StaticMemberLeftEntry
    | GroupEpochBumpedEntry
    | TargetAssignmentUpdatedEntry
    | TargetAssignmentRefusedEntry
    | RevocationRequestedEntry
    | RevocationEndedEntry
    | PartitionsAssignedEntry
    | RegularExpressionResolvedEntry
)
