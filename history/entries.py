"""History entries: the record types of `__group_history`.

A record has one entry, encoded by `encoding.py`: a map of the fields below and the type's name
(`ENTRY_TYPES`). A class is called like the coordinator's event that it is made from, with `Entry`
at the end; the stored names are other ones and never change. broker/history_log/writer.py appends
the entries in the turn of the event. The console, `rollcall why`, the verdicts and Spark read them.
docs/history.md describes each field for users.

Times: `*_at_ms` is the wall clock (ms, Unix epoch), `*_ms` a duration. Lists of members and of
partitions are limited by the recorder; `*_left_out` is the number of the others. Every field but
`group_id` and `at_ms` has a default, so that older records can be read. Kafka's counterpart: none;
KIP-1314 proposes one.
"""

from typing import Final

from msgspec import Struct

from coordinator.member_identity import MemberIdentity
from history.causes import Cause, End, OffsetsBy, Removal
from history.consumer_entries import (
    ConsumerEntry,
    ConsumerMemberUpdatedEntry,
    GroupConvertedEntry,
    GroupEpochBumpedEntry,
    PartitionsAssignedEntry,
    RegularExpressionResolvedEntry,
    RevocationEndedEntry,
    RevocationRequestedEntry,
    StaticMemberLeftEntry,
    TargetAssignmentRefusedEntry,
    TargetAssignmentUpdatedEntry,
)
from history.entry_values import (
    NO_MEMBER,
    AlsoCaused,
    JoinedMember,
    MemberRemoval,
    MemberWait,
    OffsetChange,
    PartitionMove,
    RequestClient,
    StandbyTasks,
    TopicPartitionCounts,
)
from protocol.names import NO_GENERATION


class Rebalance(Struct, frozen=True):
    """One whole rebalance: what `rollcall why --json` lists, and what the verdicts read.

    `generation_after <= generation_before`: it brought no generation (see `end`), and the group
    continued with this one, which after a crash may be an older one. While it runs, `duration_ms`
    and `generation_after` are None. The numbers about partitions are None if the assignments are
    not a consumer's, or were not read.

    Of a consumer group (`group_type`): from the first group epoch to the end of the
    reconciliation. The generations are group epochs; `joined` are the members that have reached
    the target assignment.
    """

    cause: Cause
    began_at_ms: int
    trigger: MemberIdentity | None = None
    reason: str = ""  # Kafka's text
    client_reason: str = ""  # the client's own (KIP-800)
    began_by: Cause | None = None  # what began it, if `cause` is the reason for that
    end: End = End.RUNNING
    duration_ms: int | None = None
    waited_for: tuple[MemberWait, ...] = ()
    waited_for_left_out: int = 0
    joined: tuple[JoinedMember, ...] = ()  # every member of the new generation, the slowest first
    joined_left_out: int = 0
    also: tuple[AlsoCaused, ...] = ()
    generation_before: int = NO_GENERATION
    generation_after: int | None = None
    members_before: int = 0
    members_after: int | None = None
    partitions_moved: int | None = None
    unowned_partition_seconds: float | None = None
    with_trigger: tuple[MemberIdentity, ...] = ()  # removed together with the trigger
    replaced: MemberIdentity | None = None  # the process that the trigger replaced
    note: str = ""  # what else is known of its cause, as text
    silent_ms: int | None = None  # of the trigger, if it expired
    session_timeout_ms: int | None = None  # likewise
    topics: tuple[TopicPartitionCounts, ...] = ()  # whose partitions changed
    moves: tuple[PartitionMove, ...] = ()  # the first ones of `partitions_moved`
    held: tuple[StandbyTasks, ...] = ()  # Kafka Streams
    described: str = ""  # what was assigned, as text; not of consumers
    away_ms: int | None = None  # how long the coordinator was down, at most
    stopped: str = ""  # how it had ended: "killed", "stopped"; "": it had not
    protocol_type: str = ""
    group_type: str = ""  # "consumer"; "": classic
    assignor: str = ""  # consumer groups: the last one


NO_REBALANCE: Final = Rebalance(Cause.MEMBER_JOINED, 0)


class GroupCreatedEntry(Struct, frozen=True):
    """`simple`: by a commit of a consumer without a group, not by a member."""

    group_id: str
    at_ms: int
    simple: bool = False
    group_type: str = ""  # here and below: "consumer"; "": classic


class GroupLoadedEntry(Struct, frozen=True):
    """This process coordinates the group from now on: it started, or was elected.

    Only for groups with members. `interrupted`: a rebalance was running before.
    """

    group_id: str
    at_ms: int
    generation: int = NO_GENERATION
    state: str = ""
    members: int = 0
    interrupted: bool = False
    away_ms: int | None = None  # since its last sign of life, or its stop
    stopped: str = ""  # "killed" or "stopped"; "" if the process had not ended
    protocol_type: str = ""
    group_type: str = ""


class GroupDeletedEntry(Struct, frozen=True):
    group_id: str
    at_ms: int
    expired: bool = False
    client: RequestClient | None = None


class MemberAddedEntry(Struct, frozen=True):
    """`entrance`: dynamic, pending (with an id that it was given), static.

    The fields from `group_type` on are those of consumer groups; `protocol` of the member:
    consumer, or classic after a migration.
    """

    group_id: str
    at_ms: int
    member: MemberIdentity = NO_MEMBER
    join_kind: str = ""
    generation: int = NO_GENERATION  # the group's, before
    reason: str = ""
    session_timeout_ms: int = 0
    rebalance_timeout_ms: int = 0
    group_type: str = ""
    protocol: str = ""
    topics: tuple[str, ...] = ()
    topics_left_out: int = 0
    topic_regex: str = ""
    assignor: str = ""  # that it asks for


class MembersRemovedEntry(Struct, frozen=True):
    """`asker`: the sender of the LeaveGroup; None if a timeout removed them."""

    group_id: str
    at_ms: int
    cause: Removal = Removal.LEFT
    generation: int = NO_GENERATION
    members: tuple[MemberRemoval, ...] = ()
    members_left_out: int = 0
    client: RequestClient | None = None
    group_type: str = ""


class StaticMemberReplacedEntry(Struct, frozen=True):
    """Another process joined with a member's instance id. `without_rebalance`: nobody rejoined."""

    group_id: str
    at_ms: int
    member: MemberIdentity = NO_MEMBER
    old_member_id: str = ""
    generation: int = NO_GENERATION
    members: int = 0
    without_rebalance: bool = False
    reason: str = ""
    replaced: MemberIdentity | None = None  # the process before it
    silent_ms: int | None = None  # since its last sign of life
    partitions: int | None = None  # that it owned; None if its assignment is not a consumer's
    group_type: str = ""


class MemberFencedEntry(Struct, frozen=True):
    """A request came from an id that another process has replaced.

    Of a consumer group also: it has a member epoch that is not the member's any more.
    """

    group_id: str
    at_ms: int
    member_id: str = ""
    group_instance_id: str = ""
    current_member_id: str = ""
    request: str = ""
    error: str = ""  # this and the next ones: consumer groups
    received_epoch: int | None = None
    member_epoch: int | None = None
    times: int | None = None  # in a row so far; None: once. repeats.py limits the entries


class MemberLapsedEntry(Struct, frozen=True):
    """A session expired, and no rebalance began yet (rollcall.forgive.slow.member)."""

    group_id: str
    at_ms: int
    member: MemberIdentity = NO_MEMBER
    generation: int = NO_GENERATION
    session_timeout_ms: int = 0


class LapseForgivenEntry(Struct, frozen=True):
    """A lapsed member sent a request in time, and stays."""

    group_id: str
    at_ms: int
    member: MemberIdentity = NO_MEMBER
    generation: int = NO_GENERATION
    late_by_ms: int = 0


class RebalanceBegunEntry(Struct, frozen=True):
    """`waiting_for`: the members that have not rejoined yet. `timeout_ms`: how long at most."""

    group_id: str
    at_ms: int
    cause: Cause = Cause.MEMBER_JOINED
    began_by: Cause | None = None  # as in Rebalance
    trigger: MemberIdentity | None = None
    reason: str = ""
    client_reason: str = ""
    from_state: str = ""
    generation: int = NO_GENERATION  # the one that ends
    members: int = 0  # before the trigger: without a new member, with one that left
    waiting_for: tuple[MemberIdentity, ...] = ()
    waiting_for_left_out: int = 0
    timeout_ms: int = 0
    with_trigger: tuple[MemberIdentity, ...] = ()  # these and the next ones as in Rebalance
    replaced: MemberIdentity | None = None
    note: str = ""
    silent_ms: int | None = None
    session_timeout_ms: int | None = None
    topics: tuple[TopicPartitionCounts, ...] = ()
    protocol_type: str = ""
    group_type: str = ""


class NoMemberRejoinedEntry(Struct, frozen=True):
    """Only static members are left, and none has rejoined: the rebalance continues to wait."""

    group_id: str
    at_ms: int
    waiting_for: tuple[MemberIdentity, ...] = ()
    times: int | None = None  # in a row so far; None: once. repeats.py limits the entries


class LeaderChangedEntry(Struct, frozen=True):
    group_id: str
    at_ms: int
    old: MemberIdentity = NO_MEMBER
    new: MemberIdentity = NO_MEMBER


class GenerationBegunEntry(Struct, frozen=True):
    """The joins are answered; the assignment is not known yet."""

    group_id: str
    at_ms: int
    generation: int = NO_GENERATION
    protocol_type: str = ""
    protocol: str = ""
    leader_id: str = ""
    members: int = 0
    joined: tuple[JoinedMember, ...] = ()
    joined_left_out: int = 0
    absent: tuple[MemberIdentity, ...] = ()


class AssignmentReceivedEntry(Struct, frozen=True):
    """The leader's assignments, in one flush with the record of the group that holds them."""

    group_id: str
    at_ms: int
    generation: int = NO_GENERATION
    leader_id: str = ""
    members: int = 0
    without_assignment: int = 0
    partitions: int | None = None
    partitions_moved: int | None = None
    moves: tuple[PartitionMove, ...] = ()
    moves_left_out: int = 0
    held: tuple[StandbyTasks, ...] = ()  # Kafka Streams: those with standby tasks
    described: str = ""  # of groups that are no consumers', in words


class AssignmentRefusedEntry(Struct, frozen=True):
    """The leader's assignments could not be stored; the group rebalances again."""

    group_id: str
    at_ms: int
    generation: int = NO_GENERATION
    leader_id: str = ""
    error: str = ""


class GroupEmptiedEntry(Struct, frozen=True):
    """The last member left; in one flush with the record of the group."""

    group_id: str
    at_ms: int
    generation: int = NO_GENERATION
    group_type: str = ""


class RebalanceEndedEntry(Struct, frozen=True):
    """A whole rebalance in one record: no other record is needed."""

    group_id: str
    at_ms: int
    rebalance: Rebalance = NO_REBALANCE


class TopicsChangedEntry(Struct, frozen=True):
    """Partitions of subscribed topics changed (rollcall.rebalance.on.partition.change)."""

    group_id: str
    at_ms: int
    topics: tuple[str, ...] = ()
    changes: tuple[TopicPartitionCounts, ...] = ()  # the same topics, with numbers


class OffsetsMovedEntry(Struct, frozen=True):
    """Offsets that no member of a generation moved. `asker`: whose request (of `topic_deletion`
    the DeleteTopics); None where time did, or it is not known any more."""

    group_id: str
    at_ms: int
    by: OffsetsBy = OffsetsBy.COMMIT
    changes: tuple[OffsetChange, ...] = ()
    client: RequestClient | None = None
    member_id: str = ""  # what the request said; often empty
    commits: int | None = None  # of one client, steadily forward, that this stands for; None: one
    since_ms: int | None = None  # when the first of these was made; `at_ms` is the last
    producer_id: int | None = None  # whose transaction was committed; None: no transaction


class PendingOffsetsEndedEntry(Struct, frozen=True):
    """A producer's transaction was aborted: the offsets that it had committed do not count."""

    group_id: str
    at_ms: int
    producer_id: int = -1
    producer_epoch: int = -1
    changes: tuple[OffsetChange, ...] = ()  # `new` is what each would have become
    client: RequestClient | None = None  # None: not known any more


class VerdictBegunEntry(Struct, frozen=True):
    """A verdict holds from now on (docs/verdicts.md)."""

    group_id: str
    at_ms: int
    verdict: str = ""
    subject: str = ""
    summary: str = ""
    remedy: str = ""


class VerdictEndedEntry(Struct, frozen=True):
    """A verdict does not hold any more."""

    group_id: str
    at_ms: int
    verdict: str = ""
    subject: str = ""
    lasted_ms: int = 0


HistoryEntry = (
    GroupCreatedEntry
    | GroupLoadedEntry
    | GroupDeletedEntry
    | MemberAddedEntry
    | MembersRemovedEntry
    | StaticMemberReplacedEntry
    | MemberFencedEntry
    | MemberLapsedEntry
    | LapseForgivenEntry
    | RebalanceBegunEntry
    | NoMemberRejoinedEntry
    | LeaderChangedEntry
    | GenerationBegunEntry
    | AssignmentReceivedEntry
    | AssignmentRefusedEntry
    | GroupEmptiedEntry
    | RebalanceEndedEntry
    | TopicsChangedEntry
    | OffsetsMovedEntry
    | PendingOffsetsEndedEntry
    | VerdictBegunEntry
    | VerdictEndedEntry
    | ConsumerEntry
)

ENTRY_TYPES: Final[dict[str, type[HistoryEntry]]] = {
    "group_created": GroupCreatedEntry,
    "group_loaded": GroupLoadedEntry,
    "group_deleted": GroupDeletedEntry,
    "member_joined": MemberAddedEntry,
    "members_removed": MembersRemovedEntry,
    "static_member_replaced": StaticMemberReplacedEntry,
    "member_fenced": MemberFencedEntry,
    "member_lapsed": MemberLapsedEntry,
    "lapse_forgiven": LapseForgivenEntry,
    "rebalance_began": RebalanceBegunEntry,
    "nobody_rejoined": NoMemberRejoinedEntry,
    "leader_changed": LeaderChangedEntry,
    "generation_began": GenerationBegunEntry,
    "generation_assigned": AssignmentReceivedEntry,
    "assignment_refused": AssignmentRefusedEntry,
    "group_emptied": GroupEmptiedEntry,
    "rebalance_ended": RebalanceEndedEntry,
    "topics_changed": TopicsChangedEntry,
    "offsets_moved": OffsetsMovedEntry,
    "transaction_aborted": PendingOffsetsEndedEntry,
    "verdict_began": VerdictBegunEntry,
    "verdict_ended": VerdictEndedEntry,
    "group_converted": GroupConvertedEntry,
    "member_updated": ConsumerMemberUpdatedEntry,
    "static_member_left": StaticMemberLeftEntry,
    "group_epoch_bumped": GroupEpochBumpedEntry,
    "target_assignment_updated": TargetAssignmentUpdatedEntry,
    "target_assignment_refused": TargetAssignmentRefusedEntry,
    "revocation_requested": RevocationRequestedEntry,
    "revocation_ended": RevocationEndedEntry,
    "partitions_assigned": PartitionsAssignedEntry,
    "regular_expression_resolved": RegularExpressionResolvedEntry,
}
"""Stored name -> type. Names never change, and never go to another type."""

ENTRY_NAMES: Final[dict[type[HistoryEntry], str]] = {
    kind: name for name, kind in ENTRY_TYPES.items()
}
