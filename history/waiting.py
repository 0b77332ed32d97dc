"""What does a group wait for at this moment? For people who find it stuck: whom, until when, what
would end it. Facts only; rebalance_text.py has the words, and broker/history_log/view.py asks the
group.
"""

from enum import StrEnum

from msgspec import Struct

from coordinator.member_identity import MemberIdentity


class For(StrEnum):
    """What would have to come."""

    JOINS = "joins"  # JoinGroup of every member
    MORE_MEMBERS = "more_members"  # the initial delay: whoever else comes
    ASSIGNMENT = "assignment"  # the leader's SyncGroup
    DISK = "disk"  # the leader's assignment is being stored
    SYNCS = "syncs"  # SyncGroup of those that have not fetched their assignment


class Awaited(Struct, frozen=True):
    """A member that has to come. `session_ends_at_ms`: when it is gone if it stays silent."""

    member: MemberIdentity
    session_ends_at_ms: int | None = None


class Waiting(Struct, frozen=True):
    """`until_ms`: when it is not waited for any longer; wall clock, None if only they end it.

    `handed_out`: ids that were given to new members, whose JoinGroup with that id is awaited too.
    """

    state: str
    waits_for: For
    since_ms: int
    until_ms: int | None = None
    members: tuple[Awaited, ...] = ()
    joined: int = 0
    handed_out: int = 0
