"""Ownership change: which partitions a rebalance moves, and for how long they have no owner.

Only consumers' assignments can be read (protocol/consumer_protocol.py); other groups have no such
numbers. What counts as "without an owner" (docs/history.md explains it for users):

- a partition counts only if it had an owner in the generation before;
- it loses its owner when that member rejoins without it in its owned partitions (an eager member
  revokes all first), when the member leaves, when it is dropped, or, if it expired or was replaced
  by another process, at its last sign of life: nobody can know when it really died;
- a cooperative member that rejoins keeps its owned partitions; those that its next assignment
  omits are without an owner from its SyncGroup answer on, into the next rebalance if need be;
- it has an owner again when the member that it is assigned to has its SyncGroup answer; a
  partition that is not assigned any more (no member subscribes to its topic) does not count.

Owners are named by instance id, or else by member id: a static member with a new member id is the
same owner. A member's assignment is decoded when it rejoins, so that the turn of the leader's
SyncGroup need not decode those of all members; the others are decoded when they are asked for.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from struct import Struct, unpack_from
from typing import Final, NamedTuple, cast

from history.lag.model import PartitionKey
from protocol.compiled_codec import function_in_c
from protocol.consumer_protocol import read_assignment, read_subscription
from protocol.primitives import STRING_MAX_BYTES, Malformed

NO_PARTITIONS: Final = frozenset[PartitionKey]()

SUBSCRIPTION_BYTES_MAX: Final = 128 << 10
"""Of one member: some 5,000 topics, about a millisecond to read, 15 ms at worst. It is read in the
turn of a JoinGroup, which blocks the loop; a larger one is not read."""


KEPT_BYTES_MAX: Final = 512
KEPT_SUBSCRIPTIONS: Final = 256
"""Small subscriptions that are not read again: eager members of a group send the same bytes, and
each of them joins every generation."""


_INT32: Final = Struct(">i")
_KNOWN_VERSIONS: Final = (b"\0\0", b"\0\1", b"\0\2", b"\0\3")
_NO_USER_DATA: Final = (b"\xff\xff\xff\xff", b"\0\0\0\0")
_SHORTEST: Final = 2 + 2 * _INT32.size


class OwnerMove(NamedTuple):
    topic: str
    partition: int
    from_owner: str
    to_owner: str


class LastOwner:
    """The last owner of a partition, and since when it has none; None: it still had it.

    No NamedTuple: one is made for each member of a generation, and those are made in Python.
    """

    __slots__ = ("owner", "since_ms")

    def __init__(self, owner: str, since_ms: int | None = None) -> None:
        self.owner = owner
        self.since_ms = since_ms


Holdings = Mapping[PartitionKey, LastOwner]


def chosen_metadata(offers: Iterable[tuple[str, bytes]], protocol_name: str | None) -> bytes:
    """A member's metadata for the group's protocol, or for the first that it offers."""
    first: bytes | None = None
    for name, metadata in offers:
        if name == protocol_name:
            return metadata
        if first is None:
            first = metadata
    return first or b""


def owned_by_subscription(subscription: bytes) -> frozenset[PartitionKey] | None:
    """The owned partitions in a subscription; an eager member sends none.

    None: the subscription is too large to be read in the turn of a JoinGroup.
    """
    if len(subscription) > SUBSCRIPTION_BYTES_MAX:
        return None
    if len(subscription) > KEPT_BYTES_MAX:
        return _owned(subscription)
    return _kept_owned(subscription)


def _owned(subscription: bytes) -> frozenset[PartitionKey]:
    try:
        read = read_subscription(subscription)
    except Malformed:
        return NO_PARTITIONS
    return frozenset(
        (owned.topic, index) for owned in read.owned_partitions for index in owned.partitions
    )


_kept_owned: Final = lru_cache(KEPT_SUBSCRIPTIONS)(_owned)


_PARTITIONS_IN_C: Final = function_in_c("usual_partitions")
_OWNERS_IN_C: Final = function_in_c("usual_owners")


def partitions_of(assignment: bytes) -> list[PartitionKey]:
    """The partitions of one member; none if the bytes are empty. Raises Malformed."""
    if not assignment:
        return []
    usual: list[PartitionKey] | None
    if _PARTITIONS_IN_C is None:
        usual = _usual_partitions(assignment)
    else:
        usual = _PARTITIONS_IN_C(assignment)
    if usual is not None:
        return usual
    return [
        (assigned.topic, index)
        for assigned in read_assignment(assignment).assigned_partitions
        for index in assigned.partitions
    ]


def _usual_partitions(assignment: bytes) -> list[PartitionKey] | None:
    """The same where the bytes are as most assignors write them, in a third of the time.

    None: they are not, and the declared reader decides. No user data, versions that are known.
    """
    size = len(assignment)
    if size < _SHORTEST or not assignment.startswith(_KNOWN_VERSIONS):
        return None
    if not assignment.endswith(_NO_USER_DATA):
        return None
    end = size - _INT32.size  # of the topics
    partitions: list[PartitionKey] = []
    pos = 2 + _INT32.size
    try:
        for _ in range(int.from_bytes(assignment[2:pos], "big")):
            text_at = pos + 2
            count_at = text_at + int.from_bytes(assignment[pos:text_at], "big")
            pos = count_at + _INT32.size
            if pos > end or count_at - text_at > STRING_MAX_BYTES:
                return None  # so each round takes some of the bytes
            topic = assignment[text_at:count_at].decode("ascii")
            count = int.from_bytes(assignment[count_at:pos], "big")
            if count > (end - pos) // _INT32.size:
                return None
            for index in unpack_from(f">{count}i", assignment, pos):
                partitions.append((topic, index))  # noqa: PERF401  a loop in C
            pos += count * _INT32.size
    except UnicodeDecodeError:
        return None
    return partitions if pos == end else None


def owners_of_partitions(assignments: Mapping[str, bytes]) -> dict[PartitionKey, str]:
    """Who owns what by these assignments, by owner; of two the first. Raises Malformed."""
    if _OWNERS_IN_C is not None:
        usual: dict[PartitionKey, str] | None = _OWNERS_IN_C(assignments)
        if usual is not None:
            return usual
    return _owners(assignments)


def _owners(assignments: Mapping[str, bytes]) -> dict[PartitionKey, str]:
    owners: dict[PartitionKey, str] = {}
    for owner, assignment in assignments.items():
        for partition in partitions_of(assignment):
            owners.setdefault(partition, owner)
    return owners


def count_partitions(assignment: bytes, most: int) -> int | None:
    """How many partitions; None if the assignment is too large or not a consumer's."""
    if len(assignment) > most:
        return None
    try:
        return len(partitions_of(assignment))
    except Malformed:
        return None


class OwnershipChange:
    """The ownership change of one rebalance. Times are monotonic ms."""

    __slots__ = ("_answered_ms", "_before", "_gone_ms", "_held", "_kept", "_new", "_released_ms")

    def __init__(self, before: Mapping[str, bytes], left_over: Holdings | None = None) -> None:
        """`before`: the assignments of the generation that ends, by owner."""
        self._before = dict(before)
        self._held = dict(left_over or {})
        self._released_ms: dict[str, int] = {}
        self._kept: dict[str, frozenset[PartitionKey]] = {}
        self._gone_ms: dict[str, int] = {}
        self._answered_ms: dict[str, int] = {}
        self._new: dict[PartitionKey, str] | None = None

    def release(
        self, owner: str, at_ms: int, kept: frozenset[PartitionKey] = NO_PARTITIONS
    ) -> None:
        """The owner rejoined and keeps only these partitions. The first call counts."""
        self._released_ms.setdefault(owner, at_ms)
        self._kept.setdefault(owner, kept)
        assignment = self._before.get(owner)
        if assignment is None:
            return
        try:
            self._hold(owner, assignment)
        except Malformed:
            return  # then it stays, and `_holdings` raises
        del self._before[owner]

    def is_released(self, owner: str) -> bool:
        return owner in self._released_ms

    def gone(self, owner: str, at_ms: int) -> None:
        """The owner is gone; `at_ms` is the last time that it can have read anything."""
        self._gone_ms.setdefault(owner, at_ms)

    def answered(self, owner: str, at_ms: int) -> None:
        """The owner has its new assignment."""
        self._answered_ms.setdefault(owner, at_ms)

    def assign(self, assignments: Mapping[str, bytes]) -> list[OwnerMove]:
        """The leader's assignments; returns the partitions that they move. Raises Malformed."""
        held = self._holdings()
        self._new = owners_of_partitions(assignments)
        moves: list[OwnerMove] = []
        if not held:  # a new group: nothing can move
            return moves
        new = cast("dict[object, str]", self._new)  # a compiled loop takes known tuples apart
        for partition, owner in new.items():
            last = cast("Mapping[object, LastOwner]", held).get(partition)
            if last is not None and last.owner != owner:
                topic, index = cast("PartitionKey", partition)
                moves.append(OwnerMove(topic, index, last.owner, owner))
        moves.sort()
        return moves

    @property
    def partitions(self) -> int:
        """How many partitions the new assignments hold."""
        return len(self._new or ())

    def partitions_of(self, topic: str) -> int:
        """How many of this topic."""
        return sum(assigned == topic for assigned, _ in self._new or ())

    def unowned_ms(self, now_ms: int) -> int:
        """Milliseconds without an owner, all partitions together. Raises Malformed."""
        total = 0
        for partition, held in self._holdings().items():
            since_ms = self._lost_ms(partition, held)
            if since_ms is not None and self._is_wanted(partition, held):
                total += max(0, self._found_ms(partition, now_ms) - since_ms)
        return total

    def left_over(self, now_ms: int) -> dict[PartitionKey, LastOwner]:
        """Partitions that were revoked and have no new owner: for the next rebalance, from now on.

        Raises Malformed.
        """
        return {
            partition: LastOwner(held.owner, now_ms)
            for partition, held in self._holdings().items()
            if self._is_passed_on(partition, held)
        }

    def handed_on(self, now_ms: int) -> "OwnershipChange":
        """The next rebalance began before these assignments were handed out: its starting point.

        Raises Malformed.
        """
        return OwnershipChange(
            {},
            {
                partition: LastOwner(
                    held.owner, None if self._lost_ms(partition, held) is None else now_ms
                )
                for partition, held in self._holdings().items()
            },
        )

    # ------------------------------------------------------------ partition by partition

    def _holdings(self) -> dict[PartitionKey, LastOwner]:
        while self._before:
            self._hold(*self._before.popitem())
        return self._held

    def _hold(self, owner: str, assignment: bytes) -> None:
        last = LastOwner(owner)
        for partition in partitions_of(assignment):
            self._held[partition] = last

    def _lost_ms(self, partition: PartitionKey, held: LastOwner) -> int | None:
        """Since when its old owner does not have it; None if it still has it."""
        owner = held.owner
        if held.since_ms is not None:
            return held.since_ms
        if owner in self._released_ms and partition not in self._kept[owner]:
            return self._released_ms[owner]
        if owner in self._gone_ms:
            return self._gone_ms[owner]
        if self._new is None or self._new.get(partition) == owner:
            return None
        return self._answered_ms.get(owner)  # it had to revoke it

    def _is_wanted(self, partition: PartitionKey, held: LastOwner) -> bool:
        """Whether it still counts: not if no member subscribes to its topic any more."""
        known = self._new is None or partition in self._new
        return known or held.since_ms is not None or self._is_passed_on(partition, held)

    def _is_passed_on(self, partition: PartitionKey, held: LastOwner) -> bool:
        """Whether its owner had to revoke it, and it is not assigned to another one yet."""
        owner = held.owner
        is_free = self._new is not None and partition not in self._new
        kept = owner not in self._released_ms or partition in self._kept[owner]
        has_answer = owner in self._answered_ms and owner not in self._gone_ms
        return is_free and kept and has_answer and held.since_ms is None

    def _holder(self, partition: PartitionKey) -> str | None:
        """The owner by the new assignment, once it has its answer."""
        owner = None if self._new is None else self._new.get(partition)
        return owner if owner in self._answered_ms else None

    def _found_ms(self, partition: PartitionKey, now_ms: int) -> int:
        holder = self._holder(partition)
        return now_ms if holder is None else self._answered_ms[holder]
