"""Classic group: one group of the classic protocol (JoinGroup, SyncGroup) and its members.

`ClassicGroup` and `ClassicMember` are the mutable state, written by classic/evolve.py alone (one
exception, for speed: a heartbeat moves `ClassicMember.session_deadline_ms`, see shard.py).
Decisions see them through the protocols of group_view.py. Kafka's counterpart: `ClassicGroup`,
`ClassicGroupMember`.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from coordinator.classic.decide.checks import check_member, fenced
from coordinator.classic.decide.sessions import extend_session
from coordinator.classic.events import ClassicEvent, Protocols
from coordinator.classic.generation_record import begun_part, end_generation_record
from coordinator.classic.generations import is_later
from coordinator.classic.group_view import SESSION_PAUSED
from coordinator.classic.subscriptions import CONSUMER
from coordinator.group import GroupType
from coordinator.group_base import Group
from coordinator.group_view import FROM_EACH_COMMIT, OffsetExpiration
from coordinator.member_identity import MemberIdentity
from coordinator.records import group_tombstone, member_part
from protocol.names import (
    UNKNOWN_MEMBER_ID,
    ApiKey,
    ErrorCode,
    GenerationId,
    GroupId,
    GroupInstanceId,
    GroupState,
    MemberId,
    TopicId,
    TopicName,
)
from seams.now import Now
from seams.reply_token import ReplyToken
from storage.api import RecordPair


class ClassicMember:
    """One member. `awaiting_join`, `awaiting_sync`: the request that is parked for it, if any.

    `client_id`, `client_host`: what Kafka stores and describes. A static member keeps those of its
    first process; `caller` names the process that really came last, until a restart.
    `held_assignment`: of a member that was in a consumer group and has not joined again since, what
    it owns besides its assignment; not stored.
    """

    __slots__ = (
        "assignment",
        "awaiting_join",
        "awaiting_sync",
        "caller",
        "client_host",
        "client_id",
        "group_instance_id",
        "held_assignment",
        "is_new",
        "join_parked_at_ms",
        "lapsed_at_ms",
        "member_id",
        "parts",
        "protocol_type",
        "protocols",
        "rebalance_timeout_ms",
        "session_deadline_ms",
        "session_timeout_ms",
    )

    def __init__(
        self,
        *,
        member_id: MemberId,
        group_instance_id: GroupInstanceId | None,
        client_id: str,
        client_host: str,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
        protocol_type: str,
        protocols: Protocols,
        assignment: bytes = b"",
        caller: MemberIdentity | None = None,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.held_assignment = b""
        # After a load its principal is not known.
        self.caller = caller or MemberIdentity(member_id, group_instance_id, client_id, client_host)
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.protocol_type = protocol_type
        self.protocols = protocols
        self.assignment = assignment
        self.awaiting_join: ReplyToken | None = None
        self.awaiting_sync: ReplyToken | None = None
        self.is_new = False  # until its first join is answered
        # While a rebalance runs: how the member stands in the record of the generation, and how it
        # begins in the group's record (`begun_part`, `member_part`).
        self.parts: tuple[bytes, bytes] | None = None
        self.join_parked_at_ms = 0  # monotonic; since when its join waits, for the history
        # Monotonic. A DelayedHeartbeat is filed at this deadline or before it, of a new member no
        # later than a session from now, unless the session is paused: it ran out while a join or a
        # sync was parked, whose answer starts it afresh.
        self.session_deadline_ms = SESSION_PAUSED
        self.lapsed_at_ms: int | None = None  # monotonic; rollcall.forgive.slow.member

    def metadata_for(self, protocol_name: str | None) -> bytes:
        """The metadata it offers for this protocol; empty when it does not offer it."""
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        return b""


# A group without members, of which there may be a hundred thousand, has no tables of its own for
# them, and one with members only those that have something in them: an empty set takes 216 bytes.
# These stand for all others, and stay empty (`Group.check`).
_NO_MEMBERS: Final[dict[MemberId, ClassicMember]] = {}
_NO_STATIC_MEMBERS: Final[dict[GroupInstanceId, MemberId]] = {}
_NO_PENDING_IDS: Final[dict[MemberId, MemberId]] = {}
_NO_SYNC_IDS: Final[set[MemberId]] = set()
_NO_COUNTS: Final[dict[str, int]] = {}
_NO_LAPSED_IDS: Final[dict[MemberId, None]] = {}
_NO_TOPICS: Final[set[TopicName]] = set()


class ClassicGroup(Group):
    """One classic group, with its offsets (`Group`)."""

    __slots__ = (
        "assignment_is_stored_now",
        "awaiting_join_count",
        "changed_topics",
        "generation_id",
        "generation_recorded",
        "lapsed_member_ids",
        "leader_id",
        "members",
        "new_member_added",
        "newest_generation_id",
        "pending_member_ids",
        "pending_sync_ids",
        "previous_state",
        "protocol_counts",
        "protocol_name",
        "protocol_type",
        "rebalance_id",
        "state",
        "state_since_ms",
        "static_members",
        "subscribed_topics",
    )

    def __init__(self, group_id: GroupId, state_since_ms: int) -> None:
        super().__init__(group_id)
        self.state = GroupState.EMPTY
        self.previous_state = GroupState.DEAD  # as in Kafka: it matters to the initial delay
        self.state_since_ms = state_since_ms  # wall clock; Kafka's currentStateTimestamp
        self.generation_id = GenerationId(0)
        # A generation may be spent that was never stored as the group's; see generation_record.py.
        self.newest_generation_id = GenerationId(0)
        self.generation_recorded = False  # is there such a record in the log?
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader_id: MemberId = UNKNOWN_MEMBER_ID
        self.members: dict[MemberId, ClassicMember] = _NO_MEMBERS
        self.static_members: dict[GroupInstanceId, MemberId] = _NO_STATIC_MEMBERS
        # Each is its own value: the member gets the text that its timer has, not the request's.
        self.pending_member_ids: dict[MemberId, MemberId] = _NO_PENDING_IDS
        self.pending_sync_ids: set[MemberId] = _NO_SYNC_IDS
        self.awaiting_join_count = 0
        self.new_member_added = False
        self.assignment_is_stored_now = False  # the leader has synced, the disk has not answered
        self.protocol_counts: dict[str, int] = _NO_COUNTS  # how many members offer each protocol
        self.lapsed_member_ids: dict[MemberId, None] = _NO_LAPSED_IDS  # a dict for its order
        self.changed_topics: set[TopicName] = _NO_TOPICS  # rollcall.rebalance.on.partition.change
        self.rebalance_id = 0  # counts rebalances: one can end without a new generation
        self.subscribed_topics: frozenset[TopicName] | None = None  # None: unknown or opaque

    def open_tables(self) -> None:
        """A table of its own for members, before one is entered in it."""
        if self.members is _NO_MEMBERS:
            self.members = {}
            self.protocol_counts = {}

    def open_pending(self) -> dict[MemberId, MemberId]:
        """`pending_member_ids`, to enter one."""
        if self.pending_member_ids is _NO_PENDING_IDS:
            self.pending_member_ids = {}
        return self.pending_member_ids

    def open_lapsed(self) -> dict[MemberId, None]:
        """`lapsed_member_ids`, to enter one."""
        if self.lapsed_member_ids is _NO_LAPSED_IDS:
            self.lapsed_member_ids = {}
        return self.lapsed_member_ids

    def open_changed_topics(self) -> set[TopicName]:
        """`changed_topics`, to add some."""
        if self.changed_topics is _NO_TOPICS:
            self.changed_topics = set()
        return self.changed_topics

    def close_tables(self) -> None:
        """Give up tables that are empty again: they stay as large as they once were."""
        self.pending_member_ids = self.pending_member_ids or _NO_PENDING_IDS
        self.pending_sync_ids = self.pending_sync_ids or _NO_SYNC_IDS
        self.lapsed_member_ids = self.lapsed_member_ids or _NO_LAPSED_IDS
        self.changed_topics = self.changed_topics or _NO_TOPICS

    def admit(self, member: ClassicMember) -> None:
        """Enter a member in every table; the first one decides the group's protocol type."""
        self.open_tables()
        if member.group_instance_id is not None:
            assert member.group_instance_id not in self.static_members, "two holders of an instance"
            if self.static_members is _NO_STATIC_MEMBERS:
                self.static_members = {}
            self.static_members[member.group_instance_id] = member.member_id
        if not self.members:
            self.protocol_type = member.protocol_type
        if not self.leader_id:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self.count_protocols(member, +1)

    def dismiss(self, member_id: MemberId) -> ClassicMember:
        """Take a member out of every table; any other one becomes the leader in its place."""
        member = self.members.pop(member_id)
        self.count_protocols(member, -1)
        if member.group_instance_id is not None:
            del self.static_members[member.group_instance_id]
        if member.awaiting_join is not None:
            self.awaiting_join_count -= 1
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), UNKNOWN_MEMBER_ID)
        self.pending_sync_ids.discard(member_id)
        self.lapsed_member_ids.pop(member_id, None)
        return member

    def count_protocols(self, member: ClassicMember, change: int) -> None:
        counts = self.protocol_counts
        for name in {name for name, _ in member.protocols}:
            left = counts.get(name, 0) + change
            if left:
                counts[name] = left
            else:
                del counts[name]

    @property
    def all_members_joined(self) -> bool:
        return len(self.members) == self.awaiting_join_count and not self.pending_member_ids

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long a rebalance waits: the longest that any member asked for; 0 without members."""
        longest = 0
        for member in self.members.values():
            longest = max(longest, member.rebalance_timeout_ms)
        return longest

    # ------------------------------------------------------------ for shared code: GroupView

    @property
    def group_type(self) -> GroupType:
        return GroupType.CLASSIC

    def is_subscribed_to(self, topic: TopicName) -> bool:
        """Consumers whose subscriptions cannot be read are taken to read every topic."""
        if self.subscribed_topics is None:
            return self.protocol_type == CONSUMER
        return topic in self.subscribed_topics

    def validate_offset_commit(
        self,
        member_id: MemberId,
        group_instance_id: GroupInstanceId | None,
        generation_id: GenerationId,
        _api_version: int,
    ) -> ErrorCode:
        """The first reason to refuse, in Kafka's order."""
        state = self.state
        if state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if generation_id < 0 and state is GroupState.EMPTY:
            return ErrorCode.NONE  # a simple consumer or a tool, whatever member id it sends
        if generation_id < 0 and not member_id and group_instance_id is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        error_code = check_member(self, member_id, group_instance_id)
        if error_code is not ErrorCode.NONE:
            return error_code
        if generation_id != self.generation_id:
            return ErrorCode.ILLEGAL_GENERATION
        if state is GroupState.COMPLETING_REBALANCE:
            # The member knows its generation but not yet its assignment: it has to sync first.
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def validate_txn_offset_commit(
        self,
        member_id: MemberId,
        group_instance_id: GroupInstanceId | None,
        generation_id: GenerationId,
    ) -> ErrorCode:
        """Older producers do not know the member, and one may commit before it has synced."""
        if self.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if generation_id < 0 and self.state is GroupState.EMPTY:
            return ErrorCode.NONE
        if generation_id < 0 and not member_id and group_instance_id is None:
            return ErrorCode.NONE
        error_code = check_member(self, member_id, group_instance_id)
        if error_code is not ErrorCode.NONE:
            return error_code
        if generation_id != self.generation_id:
            return ErrorCode.ILLEGAL_GENERATION
        return ErrorCode.NONE

    def validate_earlier_commit(
        self,
        _member_id: MemberId,
        _generation_id: GenerationId,
        _partitions: Iterable[tuple[TopicId, Iterable[int]]],
    ) -> ErrorCode:
        """A generation is one for all partitions."""
        return ErrorCode.ILLEGAL_GENERATION

    def validate_offset_fetch(self, _member_id: MemberId | None, _member_epoch: int) -> ErrorCode:
        """Its members name no epoch."""
        return ErrorCode.NONE

    def commit_accepted(self, member_id: MemberId, now: Now) -> Sequence[ClassicEvent]:
        """A commit by a member extends its session."""
        if self.state is GroupState.EMPTY:
            return ()
        return extend_session(self, self.members[member_id], now)

    def commit_refused(
        self,
        member_id: MemberId,
        group_instance_id: GroupInstanceId | None,
        error_code: ErrorCode,
        now: Now,
    ) -> Sequence[ClassicEvent]:
        if error_code is not ErrorCode.FENCED_INSTANCE_ID:
            return ()
        return (fenced(self, member_id, group_instance_id, ApiKey.OFFSET_COMMIT, now.wall_ms),)

    def validate_offset_delete(self) -> ErrorCode:
        if self.state is GroupState.DEAD:
            return ErrorCode.GROUP_ID_NOT_FOUND
        if self.state is not GroupState.EMPTY and self.protocol_type != CONSUMER:
            return ErrorCode.NON_EMPTY_GROUP  # opaque metadata: its members may read any topic
        return ErrorCode.NONE

    def validate_delete(self) -> ErrorCode:
        if self.state is GroupState.DEAD:
            return ErrorCode.GROUP_ID_NOT_FOUND
        return ErrorCode.NONE if self.state is GroupState.EMPTY else ErrorCode.NON_EMPTY_GROUP

    def offset_expiration(self) -> OffsetExpiration | None:
        """A simple group: from each commit. An empty one: since its last member left. A Stable one
        of consumers: from each commit, for topics they do not subscribe to.
        """
        state = self.state
        if state is GroupState.DEAD:
            return None
        if self.protocol_type is None:
            return FROM_EACH_COMMIT
        if state is GroupState.EMPTY:
            return OffsetExpiration(self.state_since_ms)  # -1 in a record of before Kafka 2.1
        readable = self.protocol_type == CONSUMER and self.subscribed_topics is not None
        return FROM_EACH_COMMIT if state is GroupState.STABLE and readable else None

    def tombstones(self) -> Sequence[RecordPair]:
        """A simple group has no record of its own: it gets a tombstone anyway, as in Kafka."""
        return (group_tombstone(self.group_id), *end_generation_record(self))

    # ------------------------------------------------------------ checks

    def check(self) -> None:
        """Assert what must hold between turns; called by tests and the simulator."""
        shared = (_NO_MEMBERS, _NO_STATIC_MEMBERS, _NO_PENDING_IDS, _NO_COUNTS, _NO_LAPSED_IDS)
        assert not any((*shared, _NO_SYNC_IDS, _NO_TOPICS)), "a table that all share was written to"
        newest_id = self.newest_generation_id
        assert not is_later(self.generation_id, than=newest_id), "a generation was not counted"
        parked = sum(1 for member in self.members.values() if member.awaiting_join is not None)
        assert parked == self.awaiting_join_count, "awaiting_join_count is off"
        for instance_id, member_id in self.static_members.items():
            assert self.members[member_id].group_instance_id == instance_id
        assert not (self.pending_member_ids.keys() & self.members.keys())
        assert self.pending_sync_ids <= self.members.keys(), "a stranger is to sync"
        counts: dict[str, int] = {}
        for member in self.members.values():
            for name in {name for name, _ in member.protocols}:
                counts[name] = counts.get(name, 0) + 1
            parts = begun_part(member), member_part(member)
            assert member.parts in (None, parts), "a member has changed since it was written"
        assert counts == self.protocol_counts, "protocol_counts is off"
        lapsed = {m.member_id for m in self.members.values() if m.lapsed_at_ms is not None}
        assert lapsed == self.lapsed_member_ids.keys(), "lapsed_member_ids is off"
        assert not lapsed or self.state is GroupState.STABLE, f"a member lapsed in {self.state}"
        if self.state is GroupState.EMPTY:
            assert not self.members, "an Empty group has members"
        elif self.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
            assert self.members, f"a group without members is {self.state}"
            assert self.leader_id in self.members, "the leader is not a member"
            assert parked == 0, f"a join is parked in {self.state}"
        if self.state is GroupState.STABLE:
            assert all(member.awaiting_sync is None for member in self.members.values())
