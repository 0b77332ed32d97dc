"""Assignor: the interface of a server-side assignor, its input and its result.

An assignor is a pure function: it reads its input, changes nothing of it, and uses no clock, no
chance and no I/O. The coordinator may call it in another thread, and once more with the same input.
Kafka's counterpart: `ConsumerGroupPartitionAssignor`, `GroupSpec`, `SubscribedTopicDescriber`.
"""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from protocol.names import MemberId, TopicId

Partitions = frozenset[int]
Assignment = Mapping[TopicId, Partitions]
"""Partitions by topic. A topic without partitions has no entry."""


class AssignorMember(Struct, frozen=True, gc=False):
    """A member as an assignor sees it: thousands at once, which are in no cycle."""

    rack_id: str | None
    instance_id: str | None
    subscribed_topic_ids: frozenset[TopicId]
    """Its names and the topics of its regular expression, as far as these topics exist."""
    assigned: Assignment
    """Its current target assignment: best a dict, which is the fastest to read.

    It may have topics that are gone or no longer subscribed, but no topic without partitions, no
    partition that its topic does not have, and none that another member has too.
    """


class AssignorTopic(Struct, frozen=True):
    """A topic as an assignor sees it."""

    partitions: int
    """How many partitions the topic has: 0 to n - 1."""
    racks: tuple[frozenset[str], ...] | None
    """The racks of each partition's replicas; None when no racks are known."""


class AssignorInput(Struct, frozen=True):
    """What an assignment is made from."""

    members: Mapping[MemberId, AssignorMember]
    topics: Mapping[TopicId, AssignorTopic]
    """At least the topics that members subscribe to."""
    is_homogeneous: bool
    """Whether all members subscribe to the same topics. Kafka compares the names, also of topics
    that do not exist."""


class Assignor(Protocol):
    """A way to assign partitions to members."""

    @property
    def name(self) -> str:
        """The name by which members and `group.consumer.assignors` select it."""
        ...

    def assign(self, given: AssignorInput) -> Mapping[MemberId, Assignment]:
        """The new target assignment. A member that is not named in it is assigned nothing.

        `uniform` returns the very object of `assigned` where nothing changes.
        """
        ...


class AssignorFailed(Exception):
    """The assignor cannot assign. Kafka's counterpart: `PartitionAssignorException`."""
