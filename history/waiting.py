"""Group wait: what a group waits for now, which members, until when.

Values only: history/text/rebalance_text.py writes the text, and broker/history_log/view.py reads
the group.
"""

from enum import StrEnum

from msgspec import Struct

from coordinator.member_identity import MemberIdentity


class WaitReason(StrEnum):
    """Which requests the group waits for."""

    JOINS = "joins"  # JoinGroup of every member
    MORE_MEMBERS = "more_members"  # the initial rebalance delay
    ASSIGNMENT = "assignment"  # the leader's SyncGroup
    DISK = "disk"  # the leader's assignment is being stored
    SYNCS = "syncs"  # SyncGroup of those that have not fetched their assignment
    TARGET = "target"  # consumer groups: the target assignment of the group epoch
    REVOCATIONS = "revocations"  # consumer groups: members that are to give partitions back
    RECONCILIATION = "reconciliation"  # consumer groups: members that are not at the target yet


class AwaitedMember(Struct, frozen=True):
    """An awaited member. `session_ends_at_ms`: when it is removed if it stays silent."""

    member: MemberIdentity
    session_ends_at_ms: int | None = None


class GroupWait(Struct, frozen=True):
    """`until_ms`: when the wait ends at the latest; wall clock, None: no limit.

    `assigned_ids`: member ids given to new members whose JoinGroup is awaited too.
    """

    state: str
    waits_for: WaitReason
    since_ms: int
    until_ms: int | None = None
    members: tuple[AwaitedMember, ...] = ()
    joined: int = 0
    assigned_ids: int = 0
