"""Events: what happened to groups of any type, and to the partitions that hold them.

Facts in the past tense, made by decisions and applied to the group by the `evolve` of its type.
Events of one type stand in its package (classic/events.py), those of offsets in offsets/events.py;
here are the events that all types share, and the unions of all. Log lines, metrics and the group
history are derived from events (broker/observe/observer.py).
Times: `at_ms` is the wall clock (Unix epoch).
"""

from msgspec import Struct

from coordinator.classic.events import ClassicEvent
from coordinator.consumer.events import ConsumerEvent
from coordinator.group import GroupType
from coordinator.offsets.events import (
    DeletionCause,
    OffsetEvent,
    OffsetsOfTopics,
    PendingOffsetEvent,
)
from coordinator.stored_records import RecordSkipped
from protocol.names import GroupId


class GroupCreated(Struct, frozen=True):
    """`simple`: by a commit of a consumer without a group, not by a member."""

    group_id: GroupId
    at_ms: int
    simple: bool
    group_type: GroupType = GroupType.CLASSIC


class GroupDeleted(Struct, frozen=True):
    """The group is gone, and with it `offsets`, the last ones that it had."""

    group_id: GroupId
    at_ms: int
    cause: DeletionCause
    offsets: OffsetsOfTopics
    client_id: str = ""
    client_host: str = ""
    principal: str | None = None


class GroupConverted(Struct, frozen=True):
    """A group without members of the new type takes its place, and its offsets.

    The events that bring its members follow in the same turn. `had_members`: the old one.
    """

    group_id: GroupId
    at_ms: int
    from_type: GroupType
    to_type: GroupType
    reason: str
    had_members: bool = True


class ConversionRefused(Struct, frozen=True):
    """The group keeps its type: a member of the other protocol came, or the last one of it left."""

    group_id: GroupId
    at_ms: int
    from_type: GroupType
    to_type: GroupType
    reason: str


class PartitionLoaded(Struct, frozen=True):
    """A partition is served from now on. `skipped` are records without a meaning here."""

    partition: int
    at_ms: int
    groups: int
    members: int
    next_offset: int
    skipped: tuple[RecordSkipped, ...]


class PartitionLoadFailed(Struct, frozen=True):
    partition: int
    reason: str


class PartitionClosed(Struct, frozen=True):
    """A partition is not served any more: another broker has it, or something failed."""

    partition: int
    at_ms: int
    groups: int


TypedEvent = ClassicEvent | ConsumerEvent
"""What happens to a group of one type."""

ConversionEvent = GroupConverted | ConversionRefused

Event = (
    GroupCreated | GroupDeleted | ConversionEvent | TypedEvent | OffsetEvent | PendingOffsetEvent
)
"""What happens to one group: all that a decision may yield."""

PartitionEvent = PartitionLoaded | PartitionLoadFailed | PartitionClosed

AnyEvent = Event | PartitionEvent
"""All that an observer receives."""
