"""What does the coordinator know of a group and of its members?

`Group` and `Member` are the mutable truth, written by `evolve.py` alone (one exception, for speed:
a heartbeat moves `Member.session_deadline_ms`, see shard.py). `GroupView` and `MemberView` are the
same objects as decisions see them: read-only protocols, so that mypy refuses a decision that
writes. Kafka's counterpart: `ClassicGroup`, `ClassicGroupMember`, `OffsetAndMetadata`.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Final, Protocol

from msgspec import Struct

from coordinator.classic.generations import is_later
from coordinator.locks import GroupLock
from protocol.names import (
    UNKNOWN_MEMBER_ID,
    ZERO_TOPIC_ID,
    GenerationId,
    GroupId,
    GroupInstanceId,
    GroupState,
    MemberId,
    TopicId,
    TopicName,
)
from seams.reply_token import ReplyToken

Protocols = tuple[tuple[str, bytes], ...]
"""A member's offered protocols in its order of preference: (name, metadata)."""


SESSION_PAUSED: Final = 1 << 62
"""In place of a session deadline: nobody waits for this member to speak."""


class CommittedOffset(Struct, frozen=True, gc=False):
    """The last commit for one partition. Times in ms, Unix epoch; `expire_at_ms` -1 means none."""

    committed_offset: int
    leader_epoch: int = -1
    metadata: str = ""
    committed_at_ms: int = -1
    expire_at_ms: int = -1
    topic_id: TopicId = ZERO_TOPIC_ID


class MemberView(Protocol):
    @property
    def member_id(self) -> MemberId: ...
    @property
    def group_instance_id(self) -> GroupInstanceId | None: ...
    @property
    def client_id(self) -> str: ...
    @property
    def client_host(self) -> str: ...
    @property
    def caller_client_id(self) -> str: ...
    @property
    def caller_host(self) -> str: ...
    @property
    def session_timeout_ms(self) -> int: ...
    @property
    def rebalance_timeout_ms(self) -> int: ...
    @property
    def protocol_type(self) -> str: ...
    @property
    def protocols(self) -> Protocols: ...
    @property
    def assignment(self) -> bytes: ...
    @property
    def awaiting_join(self) -> ReplyToken | None: ...
    @property
    def awaiting_sync(self) -> ReplyToken | None: ...
    @property
    def is_new(self) -> bool: ...
    @property
    def session_deadline_ms(self) -> int: ...
    @property
    def lapsed_at_ms(self) -> int | None: ...
    @property
    def join_parked_at_ms(self) -> int: ...
    def metadata_for(self, protocol_name: str | None) -> bytes: ...


class GroupView(Protocol):
    @property
    def group_id(self) -> GroupId: ...
    @property
    def state(self) -> GroupState: ...
    @property
    def previous_state(self) -> GroupState: ...
    @property
    def state_since_ms(self) -> int: ...
    @property
    def generation_id(self) -> GenerationId: ...
    @property
    def newest_generation_id(self) -> GenerationId: ...
    @property
    def generation_recorded(self) -> bool: ...
    @property
    def protocol_type(self) -> str | None: ...
    @property
    def protocol_name(self) -> str | None: ...
    @property
    def leader_id(self) -> MemberId: ...
    @property
    def members(self) -> Mapping[MemberId, MemberView]: ...
    @property
    def static_members(self) -> Mapping[GroupInstanceId, MemberId]: ...
    @property
    def pending_member_ids(self) -> Mapping[MemberId, int]: ...
    @property
    def pending_sync_ids(self) -> AbstractSet[MemberId]: ...
    @property
    def awaiting_join_count(self) -> int: ...
    @property
    def new_member_added(self) -> bool: ...
    @property
    def assignment_is_stored_now(self) -> bool: ...
    @property
    def protocol_counts(self) -> Mapping[str, int]: ...
    @property
    def lapsed_member_ids(self) -> Mapping[MemberId, None]: ...
    @property
    def changed_topics(self) -> AbstractSet[TopicName]: ...
    @property
    def rebalance_id(self) -> int: ...
    @property
    def all_members_joined(self) -> bool: ...
    @property
    def rebalance_timeout_ms(self) -> int: ...
    @property
    def subscribed_topics(self) -> frozenset[TopicName] | None: ...
    @property
    def offsets(self) -> Mapping[TopicName, Mapping[int, CommittedOffset]]: ...


class Member:
    """One member. `awaiting_join`, `awaiting_sync`: the request that is parked for it, if any.

    `client_id`, `client_host`: what Kafka stores and describes. A static member keeps those of its
    first process; `caller_*` name the process that really came last, until a restart.
    """

    __slots__ = (
        "assignment",
        "awaiting_join",
        "awaiting_sync",
        "caller_client_id",
        "caller_host",
        "client_host",
        "client_id",
        "group_instance_id",
        "is_new",
        "join_parked_at_ms",
        "lapsed_at_ms",
        "member_id",
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
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.caller_client_id = client_id
        self.caller_host = client_host
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.protocol_type = protocol_type
        self.protocols = protocols
        self.assignment = assignment
        self.awaiting_join: ReplyToken | None = None
        self.awaiting_sync: ReplyToken | None = None
        self.is_new = False  # until its first join is answered
        self.join_parked_at_ms = 0  # monotonic; since when its join waits, for the history
        # Monotonic. A DelayedHeartbeat is filed at this deadline or before it, unless the session
        # is paused: it ran out while a join or a sync was parked, whose answer starts it afresh.
        self.session_deadline_ms = SESSION_PAUSED
        self.lapsed_at_ms: int | None = None  # monotonic; rollcall.forgive.slow.member

    def metadata_for(self, protocol_name: str | None) -> bytes:
        """The metadata it offers for this protocol; empty when it does not offer it."""
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        return b""


# A group without members, of which there may be a hundred thousand, has no tables of its own for
# them: these stand for all of those, and stay empty (`Group.check`).
_NO_MEMBERS: Final[dict[MemberId, Member]] = {}
_NO_STATIC_MEMBERS: Final[dict[GroupInstanceId, MemberId]] = {}
_NO_PENDING_IDS: Final[dict[MemberId, int]] = {}
_NO_SYNC_IDS: Final[set[MemberId]] = set()
_NO_COUNTS: Final[dict[str, int]] = {}
_NO_LAPSED_IDS: Final[dict[MemberId, None]] = {}
_NO_TOPICS: Final[set[TopicName]] = set()


class Group:
    """One classic group, and the offsets committed under its id."""

    __slots__ = (
        "assignment_is_stored_now",
        "awaiting_join_count",
        "changed_topics",
        "generation_id",
        "generation_recorded",
        "group_id",
        "lapsed_member_ids",
        "leader_id",
        "lock",
        "members",
        "new_member_added",
        "newest_generation_id",
        "offsets",
        "offsets_position",
        "pending_member_ids",
        "pending_sync_ids",
        "position",
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
        self.group_id = group_id
        self.lock = GroupLock()
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
        self.members: dict[MemberId, Member] = _NO_MEMBERS
        self.static_members: dict[GroupInstanceId, MemberId] = _NO_STATIC_MEMBERS
        self.pending_member_ids: dict[MemberId, int] = _NO_PENDING_IDS  # -> session deadline, ms
        self.pending_sync_ids: set[MemberId] = _NO_SYNC_IDS
        self.awaiting_join_count = 0
        self.new_member_added = False
        self.assignment_is_stored_now = False  # the leader has synced, the disk has not answered
        self.protocol_counts: dict[str, int] = _NO_COUNTS  # how many members offer each protocol
        self.lapsed_member_ids: dict[MemberId, None] = _NO_LAPSED_IDS  # a dict for its order
        self.changed_topics: set[TopicName] = _NO_TOPICS  # rollcall.rebalance.on.partition.change
        self.rebalance_id = 0  # counts rebalances: one can end without a new generation
        self.subscribed_topics: frozenset[TopicName] | None = None  # None: unknown or opaque
        self.offsets: dict[TopicName, dict[int, CommittedOffset]] = {}
        # Answers about membership wait for `position`, answers about offsets for both: what a
        # client has seen must be there after a crash.
        self.position = 0
        self.offsets_position = 0

    def open_tables(self) -> None:
        """Tables of its own, before anything about members is entered in them."""
        if self.members is _NO_MEMBERS:
            self.members = {}
            self.static_members = {}
            self.pending_member_ids = {}
            self.pending_sync_ids = set()
            self.protocol_counts = {}
            self.lapsed_member_ids = {}
            self.changed_topics = set()

    def admit(self, member: Member) -> None:
        """Enter a member in every table; the first one decides the group's protocol type."""
        self.open_tables()
        if member.group_instance_id is not None:
            assert member.group_instance_id not in self.static_members, "two holders of an instance"
            self.static_members[member.group_instance_id] = member.member_id
        if not self.members:
            self.protocol_type = member.protocol_type
        if not self.leader_id:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self.count_protocols(member, +1)

    def dismiss(self, member_id: MemberId) -> Member:
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

    def count_protocols(self, member: Member, change: int) -> None:
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
        longest = max((member.rebalance_timeout_ms for member in self.members.values()), default=0)
        return max(longest, 0)

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


class GroupTable(Protocol):
    """What a load writes records into: a dict of groups by id, or what decodes them when asked."""

    def get(self, group_id: GroupId, /) -> Group | None: ...
    def __setitem__(self, group_id: GroupId, group: Group, /) -> None: ...
    def __delitem__(self, group_id: GroupId, /) -> None: ...
