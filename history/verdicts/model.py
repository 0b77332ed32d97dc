"""Verdict: what is wrong with a group, with evidence and remedy. The value types of the detectors.

A `Verdict` says what is wrong and with which member, the numbers that show it, and what to change.
`ObservedGroup` is a group as observed at one moment; recent_activity.py has what happened before.
Detectors are pure functions of both and of `VerdictLimits`; detect.py lists them. docs/verdicts.md
describes each rule and its limits for users.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from coordinator.member_identity import MemberIdentity, shared_text
from history.lag.model import PartitionKey
from history.lag.window import LagWindow
from seams.text import first_of

VERDICT_NAMES_MAX: Final = 10
"""Members or partitions that a verdict names; the others are counted."""

MEMBERS_PER_STEP: Final = 200
"""Members that a detector looks at between two pauses: less than half a millisecond."""

PARTITIONS_PER_STEP: Final = 1_000
"""Likewise partitions."""


class VerdictKind(StrEnum):
    FLAPPING_MEMBER = "flapping_member"
    REBALANCE_LOOP = "rebalance_loop"
    MIXED_SUBSCRIPTIONS = "mixed_subscriptions"
    MIXED_PROTOCOLS = "mixed_protocols"
    SLOW_JOINER = "slow_joiner"
    STUCK_GROUP = "stuck_group"
    COMMIT_STORM = "commit_storm"
    NO_PROGRESS = "no_progress"
    TWO_OWNERS = "two_owners"
    ORPHAN_PARTITIONS = "orphan_partitions"
    SKEWED_ASSIGNMENT = "skewed_assignment"
    NEEDLESS_MOVES = "needless_moves"
    UNREVOKED_PARTITIONS = "unrevoked_partitions"
    HUNG_PRODUCER = "hung_producer"


class VerdictLimits(Struct, frozen=True):
    """When a verdict holds: `rollcall.trouble.*`; config/keys.py explains the defaults."""

    window_ms: int = 600_000
    flapping_returns: int = 3
    loop_rebalances: int = 5
    slow_join_ms: int = 10_000
    stuck_ms: int = 15_000
    grace_ms: int = 60_000
    no_progress_ms: int = 120_000
    commits_per_second: int = 100
    skew_percent: int = 200


class Verdict(Struct, frozen=True):
    """`subject` distinguishes two verdicts of one kind; `evidence` has numbers, members, times."""

    group_id: str
    kind: VerdictKind
    subject: str
    summary: str
    remedy: str
    evidence: Mapping[str, object] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, VerdictKind, str]:
        return self.group_id, self.kind, self.subject


VerdictSteps = Iterator[Verdict | None]
"""What a detector yields: verdicts, and a None at each pause, at which other work may run."""


class ObservedMember(Struct, frozen=True):
    """A member at one moment. `topics`, `assigned`: None if its bytes are not a consumer's."""

    identity: MemberIdentity
    session_timeout_ms: int = 0
    rebalance_timeout_ms: int = 0
    silent_ms: int = 0  # since it was last heard
    has_rejoined: bool = False  # its JoinGroup waits for the others
    waits_for_sync: bool = False  # its SyncGroup waits for the leader
    is_to_sync: bool = False  # it has not fetched its assignment
    protocols: tuple[str, ...] = ()
    topics: frozenset[str] | None = None
    assigned: tuple[PartitionKey, ...] | None = None
    member_epoch: int | None = None  # this and the next ones: consumer groups
    is_reconciled: bool = True  # it has reached the target assignment
    revoking: tuple[PartitionKey, ...] = ()  # it is to give these back
    revoking_ms: int = 0  # for so long
    unreleased: tuple[PartitionKey, ...] = ()  # of its target, that other members still own


class CommitRate(Struct, frozen=True):
    """`client`: a member id, or the client id of a client that is not a member."""

    client: str
    commits_per_second: float
    partitions: int  # in one commit
    bytes_per_second: float
    client_id: str = ""
    client_host: str = ""


class ObservedGroup(Struct, frozen=True):
    """A group at one moment. `partition_counts`: of the topics that its members subscribe to."""

    group_id: str
    at_ms: int
    state: str
    state_since_ms: int
    generation: int
    protocol_type: str | None = None
    protocol: str | None = None
    leader_id: str = ""
    members: Sequence[ObservedMember] = ()
    pending_member_ids: Sequence[str] = ()
    partition_counts: Mapping[str, int] = field(default_factory=dict)
    windows: Mapping[PartitionKey, LagWindow] = field(default_factory=dict)
    still_since_ms: int = 0  # since when a partition has lag and the same offset; 0: none
    commit_rates: Sequence[CommitRate] = ()
    group_type: str = ""  # "consumer"; "": classic. `generation` is then the group epoch

    @property
    def state_ms(self) -> int:
        """For how long it has been in this state."""
        return max(self.at_ms - self.state_since_ms, 0)

    @property
    def is_stable(self) -> bool:
        return self.state == "Stable"

    def members_in_parts(self) -> Iterator[Sequence[ObservedMember]]:
        """The members, some at a time: a pause belongs between two parts."""
        for at in range(0, len(self.members), MEMBERS_PER_STEP):
            yield self.members[at : at + MEMBERS_PER_STEP]

    @property
    def lag(self) -> int | None:
        known = [window.lag for window in self.windows.values() if window.lag is not None]
        return sum(known) if known else None


def member_name(member: MemberIdentity) -> str:
    """A member in a sentence: by what an operator can find it."""
    name = member.group_instance_id or member.client_id or member.member_id
    if member.principal:
        name = f"{name} as {member.principal}"
    return f"{name} at {member.client_host.lstrip('/')}" if member.client_host else name


def member_key(member: MemberIdentity) -> str:
    """What stays when a member rejoins with a new id: its instance id, or client id and host."""
    key = member.group_instance_id or f"{member.client_id}@{member.client_host.lstrip('/')}"
    return shared_text(key)  # it is kept for each member, and clients of one host are many


def member_json(member: MemberIdentity) -> dict[str, object]:
    """A member in the JSON of a verdict."""
    return {
        "member_id": member.member_id,
        "group_instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "host": member.client_host,
        "principal": member.principal,
    }


def format_partitions(keys: Sequence[PartitionKey]) -> str:
    """`orders-0, orders-3 and 7 more`."""
    names = [f"{topic}-{index}" for topic, index in sorted(keys)[:VERDICT_NAMES_MAX]]
    return first_of(names, VERDICT_NAMES_MAX, len(keys))
