"""Causes: the closed lists of words in which the history says why something happened.

Records, JSON and metrics hold these values: none is ever changed or given another meaning.
"""

from enum import StrEnum


class Cause(StrEnum):
    """Why a group rebalanced. The one list that people, JSON, metrics and verdicts speak of."""

    MEMBER_JOINED = "member_joined"
    MEMBER_LEFT = "member_left"
    SESSION_EXPIRED = "session_expired"
    REBALANCE_TIMEOUT = "rebalance_timeout"  # a member did not rejoin in time and was dropped
    SYNC_TIMEOUT = "sync_timeout"  # a member did not come for its assignment in time
    SUBSCRIPTION_CHANGED = "subscription_changed"  # a member offers other metadata or protocols
    LEADER_REJOINED = "leader_rejoined"
    ASSIGNMENT_NOT_STORED = "assignment_not_stored"  # too large, or the disk took too long
    PARTITIONS_CHANGED = "partitions_changed"
    STATIC_MEMBER_REPLACED = "static_member_replaced"
    COORDINATOR_MOVED = "coordinator_moved"  # the group was loaded: a restart, an election
    OPERATOR = "operator"  # somebody else than the members asked for it
    REGULAR_EXPRESSION_CHANGED = "regular_expression_changed"  # it matches other topics now
    GROUP_CONVERTED = "group_converted"  # from one group type to another


class End(StrEnum):
    """How a rebalance ended; RUNNING: it has not."""

    RUNNING = "running"
    STABLE = "stable"  # the assignments were handed out
    EMPTY = "empty"  # nobody is left in the group
    OVERTAKEN = "overtaken"  # the next one began before its assignments were handed out
    INTERRUPTED = "interrupted"  # the coordinator stopped, or moved
    KEPT = "kept"  # nobody had to rejoin: the generation goes on


class WaitEnd(StrEnum):
    """How the waiting for a member ended."""

    WAITING = "waiting"  # it has not
    REJOINED = "rejoined"
    LEFT = "left"
    EXPIRED = "expired"  # its session ran out
    DROPPED = "dropped"  # at the rebalance timeout
    REPLACED = "replaced"  # another process came with its instance id
    ABSENT = "absent"  # a static member that did not come, and stays a member
    INTERRUPTED = "interrupted"  # the rebalance ended before
    REVOKED = "revoked"  # consumer groups: it has given its partitions back


class Removal(StrEnum):
    """Why members are gone."""

    LEFT = "left"
    OPERATOR = "operator"
    SESSION_EXPIRED = "session_expired"
    NEW_MEMBER_TIMED_OUT = "new_member_timed_out"  # its first join waited for too long
    REBALANCE_TIMEOUT = "rebalance_timeout"
    SYNC_TIMEOUT = "sync_timeout"
    GROUP_FULL = "group_full"


class OffsetsBy(StrEnum):
    """By what offsets were moved; members' ordinary commits are not history."""

    COMMIT = "commit"  # of nobody in the group (generation -1): a tool's reset, a simple consumer
    DELETION = "deletion"  # OffsetDelete
    EXPIRY = "expiry"  # offsets.retention.minutes
    TOPIC_DELETION = "topic_deletion"
    GROUP_DELETION = "group_deletion"
    GROUP_EXPIRY = "group_expiry"  # with its last offset the group went
    IMPORT = "import"  # `rollcall offsets import` into the directory of a stopped daemon
