"""What can be wrong with a group, and what does a verdict on it say? The detectors' vocabulary.

A `Trouble` is a verdict: what is wrong and with whom, the numbers that show it, and what to change.
`GroupFacts` is what a detector sees of a group at one moment; what happened before is in
past.py. Detectors are pure functions of the two and of `TroubleLimits`, and are gathered
in verdicts.py. docs/verdicts.md has each rule and its limits for people.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from history.entries import Who
from history.lag.window import Window
from history.text.rebalance_json import duration

Key = tuple[str, int]
"""Topic and partition."""

NAMED_MAX: Final = 10
"""Members or partitions that a verdict names; of more it says how many."""


class TroubleKind(StrEnum):
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


class TroubleLimits(Struct, frozen=True):
    """Where trouble begins; the defaults and their reasons are config/keys.py's."""

    window_ms: int = 600_000
    flapping_returns: int = 3
    loop_rebalances: int = 5
    slow_join_ms: int = 10_000
    stuck_ms: int = 15_000
    settle_ms: int = 60_000
    no_progress_ms: int = 120_000
    commits_per_second: int = 100
    skew_percent: int = 200


class Trouble(Struct, frozen=True):
    """`subject` tells two troubles of one kind apart; `evidence` holds numbers, members, times."""

    group_id: str
    kind: TroubleKind
    subject: str
    summary: str
    remedy: str
    evidence: Mapping[str, object] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, TroubleKind, str]:
        return self.group_id, self.kind, self.subject


class MemberFacts(Struct, frozen=True):
    """A member as it stands. `topics`, `assigned`: None where its bytes are not a consumer's."""

    who: Who
    session_timeout_ms: int = 0
    rebalance_timeout_ms: int = 0
    silent_ms: int = 0  # since it was last heard
    has_rejoined: bool = False  # its JoinGroup waits for the others
    waits_for_sync: bool = False  # its SyncGroup waits for the leader
    is_to_sync: bool = False  # it has not come for its assignment
    protocols: tuple[str, ...] = ()
    topics: frozenset[str] | None = None
    assigned: tuple[Key, ...] | None = None


class CommitRate(Struct, frozen=True):
    """`client`: a member's id, or who committed without being one."""

    client: str
    commits_per_second: float
    partitions: int  # in one commit
    bytes_per_second: float
    client_id: str = ""
    host: str = ""


class GroupFacts(Struct, frozen=True):
    """A group at one moment. `partition_counts`: of the topics that its members subscribe to."""

    group_id: str
    at_ms: int
    state: str
    state_since_ms: int
    generation: int
    protocol_type: str | None = None
    protocol: str | None = None
    leader_id: str = ""
    members: Sequence[MemberFacts] = ()
    pending_member_ids: Sequence[str] = ()
    partition_counts: Mapping[str, int] = field(default_factory=dict)
    windows: Mapping[Key, Window] = field(default_factory=dict)
    still_since_ms: int = 0  # since when some partition has had lag and no other offset; 0: none
    commit_rates: Sequence[CommitRate] = ()

    @property
    def state_ms(self) -> int:
        """How long it has been in this state."""
        return max(self.at_ms - self.state_since_ms, 0)

    @property
    def is_stable(self) -> bool:
        return self.state == "Stable"

    @property
    def lag(self) -> int | None:
        known = [window.lag for window in self.windows.values() if window.lag is not None]
        return sum(known) if known else None


def name_of(who: Who) -> str:
    """A member for a sentence: what an operator can find it by."""
    name = who.group_instance_id or who.client_id or who.member_id
    return f"{name} at {who.host.lstrip('/')}" if who.host else name


def identity_of(who: Who) -> str:
    """What stays when a member comes back with a new id: its instance, or its client and host."""
    return who.group_instance_id or f"{who.client_id}@{who.host.lstrip('/')}"


def who_is(who: Who) -> dict[str, object]:
    """A member for a program."""
    return {
        "member_id": who.member_id,
        "group_instance_id": who.group_instance_id,
        "client_id": who.client_id,
        "host": who.host,
    }


def partitions_named(keys: Sequence[Key]) -> str:
    """`orders-0, orders-3 and 7 more`."""
    named = ", ".join(f"{topic}-{index}" for topic, index in sorted(keys)[:NAMED_MAX])
    more = len(keys) - NAMED_MAX
    return f"{named} and {more} more" if more > 0 else named


def seconds(ms: float) -> str:
    """As everywhere in `why` and `history`."""
    return duration(ms)
