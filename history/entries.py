"""What can a group's history tell? Typed facts in the past tense, as `__group_history` keeps them.

One record of the topic is one of these, encoded by `encoding.py`: a map of the fields below under
the type's name (`ENTRY_TYPES`). The writer (broker/history_log/writer.py) makes them from the
coordinator's
events, in the turn that decided them; the console, `rollcall why`, the verdicts and Spark read
them. docs/history.md describes each field for people.

Times: `*_at_ms` is the wall clock (ms, Unix epoch), `*_ms` a duration. Lists of members and of
partitions are cut at the limits of the writer; `*_left_out` says how many more there were.
Every field but `group_id` and `at_ms` has a default, so that a record from before the field was
added can be read. Kafka's counterpart: none; KIP-1314 asks for one.
"""

from typing import Final, NamedTuple

from msgspec import Struct

from coordinator.member_identity import MemberIdentity
from history.causes import Cause, End, OffsetsBy, Removal, WaitEnd
from protocol.names import NO_GENERATION

NO_MEMBER: Final = MemberIdentity()


class RequestClient(NamedTuple):
    """The client whose request it was."""

    client_id: str = ""
    client_host: str = ""


class MemberWait(NamedTuple):
    """A member that a rebalance waited for.

    `join_delay_ms`: from the beginning of the rebalance to its JoinGroup; None when none came.
    """

    member: MemberIdentity
    join_delay_ms: int | None = None
    end: WaitEnd = WaitEnd.WAITING


class JoinedMember(NamedTuple):
    """A member of a new generation, and how long after the rebalance began it joined."""

    member: MemberIdentity
    join_delay_ms: int = 0


class MemberRemoval(NamedTuple):
    """`reason` is the client's own; `silent_ms` since its last sign of life, if it expired."""

    member: MemberIdentity
    reason: str | None = None
    silent_ms: int | None = None
    session_timeout_ms: int | None = None  # its own, if it expired


class AlsoCaused(NamedTuple):
    """What would have begun the rebalance too, if it had not been running already."""

    cause: Cause
    member: MemberIdentity | None = None
    at_ms: int = 0


class PartitionMove(NamedTuple):
    """A partition that went from one member to another."""

    topic: str
    partition: int
    from_member: str
    to_member: str


class TopicPartitionCounts(NamedTuple):
    """A topic whose partitions changed: how many it had, and has. None: not known; 0: no topic."""

    topic: str
    before: int | None = None
    now: int | None = None


class StandbyTasks(NamedTuple):
    """What a Kafka Streams client was told to run, beside what its assignment lists: `standby`
    tasks are standbys and warm-ups, which the assignment does not tell apart."""

    member: MemberIdentity
    active: int = 0
    standby: int = 0


class OffsetChange(NamedTuple):
    """None: there was no offset, or there is none any more."""

    topic: str
    partition: int
    old: int | None = None
    new: int | None = None


class Rebalance(Struct, frozen=True):
    """One rebalance, as a whole: what `rollcall why --json` lists, and what the verdicts read.

    `generation_after <= generation_before`: no generation came of it (see `end`), and the group
    went on with this one, which after a crash may be an older one. While it runs
    `duration_ms` and `generation_after` are None. The numbers about partitions are None where the
    assignments are not a consumer's, or were not seen.
    """

    cause: Cause
    began_at_ms: int
    trigger: MemberIdentity | None = None
    reason: str = ""  # Kafka's sentence for its beginning
    client_reason: str = ""  # what the client itself said (KIP-800), if it did
    began_by: Cause | None = None  # what began it, where `cause` is what lies behind that
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
    with_trigger: tuple[
        MemberIdentity, ...
    ] = ()  # who went together with the trigger, in one instant
    replaced: MemberIdentity | None = None  # the process whose place the trigger took
    note: str = ""  # what else is known of its cause, in words
    silent_ms: int | None = None  # of the trigger, if it expired
    session_timeout_ms: int | None = None  # likewise
    topics: tuple[TopicPartitionCounts, ...] = ()  # whose partitions changed
    moves: tuple[PartitionMove, ...] = ()  # the first ones of `partitions_moved`
    held: tuple[StandbyTasks, ...] = ()  # Kafka Streams
    described: str = ""  # what was assigned, of groups that are no consumers', in words
    away_ms: int | None = None  # how long the coordinator was away, at most
    stopped: str = ""  # "killed", "stopped": how it had ended; "": it had not
    protocol_type: str = ""


NO_REBALANCE: Final = Rebalance(Cause.MEMBER_JOINED, 0)


class GroupCreatedEntry(Struct, frozen=True):
    """`simple`: by a commit of a consumer without a group, not by a member."""

    group_id: str
    at_ms: int
    simple: bool = False


class GroupLoadedEntry(Struct, frozen=True):
    """The coordinator of the group is this process from now on: it started, or was elected.

    Only told of groups that had members. `interrupted`: a rebalance was running before.
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


class GroupDeletedEntry(Struct, frozen=True):
    group_id: str
    at_ms: int
    expired: bool = False
    client: RequestClient | None = None


class MemberAddedEntry(Struct, frozen=True):
    """`entrance`: dynamic, pending (with an id that it was given), static."""

    group_id: str
    at_ms: int
    member: MemberIdentity = NO_MEMBER
    join_kind: str = ""
    generation: int = NO_GENERATION  # the group's, before
    reason: str = ""
    session_timeout_ms: int = 0
    rebalance_timeout_ms: int = 0


class MembersRemovedEntry(Struct, frozen=True):
    """`asker`: whose LeaveGroup it was; None where time removed them."""

    group_id: str
    at_ms: int
    cause: Removal = Removal.LEFT
    generation: int = NO_GENERATION
    members: tuple[MemberRemoval, ...] = ()
    members_left_out: int = 0
    client: RequestClient | None = None


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
    replaced: MemberIdentity | None = None  # the process that was there before
    silent_ms: int | None = None  # since that one was heard last
    partitions: int | None = None  # that it had; None if its assignment is not a consumer's


class MemberFencedEntry(Struct, frozen=True):
    """A request came from an id that another process has replaced."""

    group_id: str
    at_ms: int
    member_id: str = ""
    group_instance_id: str = ""
    current_member_id: str = ""
    request: str = ""


class MemberLapsedEntry(Struct, frozen=True):
    """A session ran out, and nobody was told yet (rollcall.forgive.slow.member)."""

    group_id: str
    at_ms: int
    member: MemberIdentity = NO_MEMBER
    generation: int = NO_GENERATION
    session_timeout_ms: int = 0


class LapseForgivenEntry(Struct, frozen=True):
    """A lapsed member was heard from in time, and stays."""

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
    members: int = 0  # before what began it: one that joins does not count, one that left does
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


class NobodyRejoinedEntry(Struct, frozen=True):
    """Only static members are left, and none of them came: the rebalance goes on waiting."""

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
    """The joins are answered; the assignment is still to come."""

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
    """The leader's assignments could not be stored; the group tries again."""

    group_id: str
    at_ms: int
    generation: int = NO_GENERATION
    leader_id: str = ""
    error: str = ""


class GroupEmptiedEntry(Struct, frozen=True):
    """The last member went; in one flush with the record of the group."""

    group_id: str
    at_ms: int
    generation: int = NO_GENERATION


class RebalanceEndedEntry(Struct, frozen=True):
    """The whole of a rebalance in one record: nothing else has to be read to know it."""

    group_id: str
    at_ms: int
    rebalance: Rebalance = NO_REBALANCE


class TopicsChangedEntry(Struct, frozen=True):
    """Partitions of subscribed topics came or went (rollcall.rebalance.on.partition.change)."""

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


class VerdictBegunEntry(Struct, frozen=True):
    """A verdict on live trouble holds from now on (docs/verdicts.md)."""

    group_id: str
    at_ms: int
    verdict: str = ""
    subject: str = ""
    summary: str = ""
    remedy: str = ""


class VerdictEndedEntry(Struct, frozen=True):
    """It does not hold any more."""

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
    | NobodyRejoinedEntry
    | LeaderChangedEntry
    | GenerationBegunEntry
    | AssignmentReceivedEntry
    | AssignmentRefusedEntry
    | GroupEmptiedEntry
    | RebalanceEndedEntry
    | TopicsChangedEntry
    | OffsetsMovedEntry
    | VerdictBegunEntry
    | VerdictEndedEntry
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
    "nobody_rejoined": NobodyRejoinedEntry,
    "leader_changed": LeaderChangedEntry,
    "generation_began": GenerationBegunEntry,
    "generation_assigned": AssignmentReceivedEntry,
    "assignment_refused": AssignmentRefusedEntry,
    "group_emptied": GroupEmptiedEntry,
    "rebalance_ended": RebalanceEndedEntry,
    "topics_changed": TopicsChangedEntry,
    "offsets_moved": OffsetsMovedEntry,
    "verdict_began": VerdictBegunEntry,
    "verdict_ended": VerdictEndedEntry,
}
"""The name under which a type is kept. Never changed, never given to another type."""

ENTRY_NAMES: Final[dict[type[HistoryEntry], str]] = {
    kind: name for name, kind in ENTRY_TYPES.items()
}
