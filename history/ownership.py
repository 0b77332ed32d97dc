"""Which partitions went to somebody else in a rebalance, and how long did nobody read them?

Only consumers' assignments can be read (protocol/consumer_protocol.py); of other groups nothing is
said. What counts as "without an owner" (docs/history.md has it for people):

- a partition counts only if it had an owner in the generation before;
- it loses its owner when that member rejoins without saying that it still owns it (an eager member
  revokes all first), when it leaves, when it is dropped, or, if it expired or was replaced by
  another process, at its last sign of life: nobody can know when it really died;
- a cooperative member that rejoins keeps what it says it owns; what its next assignment leaves out
  is without an owner from the moment that it is told so, into the next rebalance if need be;
- it has an owner again when the member that it is assigned to has its SyncGroup answer; one that
  nobody is assigned any more, because nobody subscribes to its topic, is not missed.

Owners are named by instance id, or else by member id: a static member that comes back with a new
member id is the same owner. Nothing is parsed before the new assignments are known: until then a
rebalance costs a few dictionary entries for each member.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from protocol.consumer_protocol import read_assignment, read_subscription
from protocol.primitives import Malformed

TopicPartition = tuple[str, int]

NOTHING: Final = frozenset[TopicPartition]()

SUBSCRIPTION_BYTES_MAX: Final = 128 << 10
"""Of one member; some 5,000 topics, about a millisecond to read, 15 ms at the very worst. It is
read in the turn of a JoinGroup, while nobody else is served; of a larger one nothing is said."""


class Moved(NamedTuple):
    topic: str
    partition: int
    from_owner: str
    to_owner: str


class Held(NamedTuple):
    """Who had a partition, and since when it has no owner; None: that owner had it still."""

    owner: str
    since_ms: int | None = None


Holdings = Mapping[TopicPartition, Held]


def offered(offers: Iterable[tuple[str, bytes]], protocol_name: str | None) -> bytes:
    """A member's metadata for the group's protocol, or for the first that it offers."""
    first: bytes | None = None
    for name, metadata in offers:
        if name == protocol_name:
            return metadata
        if first is None:
            first = metadata
    return first or b""


def owned_by_subscription(subscription: bytes) -> frozenset[TopicPartition] | None:
    """What a member that joins says that it still owns; an eager one says nothing.

    None: the subscription is too large to be read in the turn of a JoinGroup.
    """
    if len(subscription) > SUBSCRIPTION_BYTES_MAX:
        return None
    try:
        read = read_subscription(subscription)
    except Malformed:
        return NOTHING
    return frozenset(
        (one.topic, index) for one in read.owned_partitions for index in one.partitions
    )


def partitions_of(assignment: bytes) -> list[TopicPartition]:
    """The partitions of one member; none if the bytes are empty. Raises Malformed."""
    if not assignment:
        return []
    return [
        (one.topic, index)
        for one in read_assignment(assignment).assigned_partitions
        for index in one.partitions
    ]


def count_of(assignment: bytes, most: int) -> int | None:
    """How many partitions; None if the bytes are too many, or no consumer's assignment."""
    if len(assignment) > most:
        return None
    try:
        return len(partitions_of(assignment))
    except Malformed:
        return None


class Shift:
    """One rebalance's change of hands. Times are monotonic ms."""

    __slots__ = ("_answered_ms", "_before", "_gone_ms", "_held", "_kept", "_new", "_released_ms")

    def __init__(self, before: Mapping[str, bytes], left_over: Holdings | None = None) -> None:
        """`before`: the assignments of the generation that ends, by owner."""
        self._before = dict(before)
        self._held = dict(left_over or {})
        self._released_ms: dict[str, int] = {}
        self._kept: dict[str, frozenset[TopicPartition]] = {}
        self._gone_ms: dict[str, int] = {}
        self._answered_ms: dict[str, int] = {}
        self._new: dict[TopicPartition, str] | None = None

    def release(self, owner: str, at_ms: int, kept: frozenset[TopicPartition] = NOTHING) -> None:
        """The owner rejoined, and keeps only these. The first time counts."""
        self._released_ms.setdefault(owner, at_ms)
        self._kept.setdefault(owner, kept)

    def is_released(self, owner: str) -> bool:
        return owner in self._released_ms

    def gone(self, owner: str, at_ms: int) -> None:
        """The owner will not come back; this was the last time that it can have read anything."""
        self._gone_ms.setdefault(owner, at_ms)

    def answered(self, owner: str, at_ms: int) -> None:
        """The owner has its new assignment."""
        self._answered_ms.setdefault(owner, at_ms)

    def assign(self, assignments: Mapping[str, bytes]) -> list[Moved]:
        """The leader's assignments are known; what moved by them. Raises Malformed."""
        held = self._holdings()
        new: dict[TopicPartition, str] = {}
        for owner, assignment in assignments.items():
            for partition in partitions_of(assignment):
                new.setdefault(partition, owner)
        self._new = new
        return [
            Moved(*partition, held[partition].owner, owner)
            for partition, owner in sorted(new.items())
            if partition in held and held[partition].owner != owner
        ]

    @property
    def partitions(self) -> int:
        """How many partitions the new assignments hold."""
        return len(self._new or ())

    def partitions_of(self, topic: str) -> int:
        """How many of this topic."""
        return sum(one == topic for one, _ in self._new or ())

    def unowned_ms(self, now_ms: int) -> int:
        """Milliseconds without an owner, all partitions together. Raises Malformed."""
        total = 0
        for partition, held in self._holdings().items():
            since_ms = self._lost_ms(partition, held)
            if since_ms is not None and self._is_wanted(partition, held):
                total += max(0, self._found_ms(partition, now_ms) - since_ms)
        return total

    def left_over(self, now_ms: int) -> dict[TopicPartition, Held]:
        """What was told to be given up and nobody has yet: for the next rebalance, from now on.

        Raises Malformed.
        """
        return {
            partition: Held(held.owner, now_ms)
            for partition, held in self._holdings().items()
            if self._is_passed_on(partition, held)
        }

    def handed_on(self, now_ms: int) -> "Shift":
        """The next rebalance began before these assignments were told: it goes on from here.

        Raises Malformed.
        """
        return Shift(
            {},
            {
                partition: Held(
                    held.owner, None if self._lost_ms(partition, held) is None else now_ms
                )
                for partition, held in self._holdings().items()
            },
        )

    # ------------------------------------------------------------ partition by partition

    def _holdings(self) -> dict[TopicPartition, Held]:
        while self._before:
            owner, assignment = self._before.popitem()
            for partition in partitions_of(assignment):
                self._held[partition] = Held(owner)
        return self._held

    def _lost_ms(self, partition: TopicPartition, held: Held) -> int | None:
        """Since when its old owner does not have it; None if it has it still."""
        owner = held.owner
        if held.since_ms is not None:
            return held.since_ms
        if owner in self._released_ms and partition not in self._kept[owner]:
            return self._released_ms[owner]
        if owner in self._gone_ms:
            return self._gone_ms[owner]
        if self._new is None or self._new.get(partition) == owner:
            return None
        return self._answered_ms.get(owner)  # it was told to give it up

    def _is_wanted(self, partition: TopicPartition, held: Held) -> bool:
        """Is somebody to read it still? Not if its topic's last subscriber went elsewhere."""
        known = self._new is None or partition in self._new
        return known or held.since_ms is not None or self._is_passed_on(partition, held)

    def _is_passed_on(self, partition: TopicPartition, held: Held) -> bool:
        """Was its owner told to give it up, though nobody was told yet to take it?"""
        owner = held.owner
        is_free = self._new is not None and partition not in self._new
        kept = owner not in self._released_ms or partition in self._kept[owner]
        is_told = owner in self._answered_ms and owner not in self._gone_ms
        return is_free and kept and is_told and held.since_ms is None

    def _holder(self, partition: TopicPartition) -> str | None:
        """Who has it by its new assignment, once it knows."""
        owner = None if self._new is None else self._new.get(partition)
        return owner if owner in self._answered_ms else None

    def _found_ms(self, partition: TopicPartition, now_ms: int) -> int:
        holder = self._holder(partition)
        return now_ms if holder is None else self._answered_ms[holder]
