"""Offset events: what happened to a group's committed offsets.

offsets/evolve.py applies them; log lines, metrics and the history are derived from them. Times:
`at_ms` is the wall clock. An event also carries the offsets that are gone, or that a commit from
outside the group replaced: the history shows both. An ordinary member's commit carries the new
offsets alone, for speed.
Kafka's counterpart: the log lines of `OffsetMetadataManager`.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from coordinator.group import CommittedOffset
from protocol.names import GenerationId, GroupId, MemberId, ProducerId, TopicName

OffsetsOfTopics = Sequence[tuple[TopicName, Mapping[int, CommittedOffset]]]
"""Topic by topic: partition -> offset. A topic may stand there twice; the later one counts."""


PartitionsOfTopics = Sequence[tuple[TopicName, Sequence[int]]]

NO_PRODUCER: Final = ProducerId(-1)


class DeletionCause(StrEnum):
    """Why offsets, or a whole group, are gone."""

    REQUESTED = "requested"  # OffsetDelete or DeleteGroups
    EXPIRED = "expired"  # KIP-211: nobody used them for offsets.retention.minutes
    TOPIC_DELETED = "topic_deleted"


class OffsetsCommitted(Struct, frozen=True):
    """`generation_id` -1: by a simple consumer or a tool, not by a member; only then `replaced` has
    the offsets from before, and `principal` who asked. With a producer: its transaction was
    committed just now.
    """

    group_id: GroupId
    at_ms: int
    generation_id: GenerationId
    member_id: MemberId
    client_id: str
    client_host: str
    offsets: OffsetsOfTopics
    replaced: OffsetsOfTopics = ()
    producer_id: ProducerId = NO_PRODUCER
    principal: str | None = None


class OffsetsDeleted(Struct, frozen=True):
    """`offsets` are those that are gone; the client is the one that asked, if one did."""

    group_id: GroupId
    at_ms: int
    cause: DeletionCause
    offsets: OffsetsOfTopics
    client_id: str = ""
    client_host: str = ""
    principal: str | None = None


class OffsetsPending(Struct, frozen=True):
    """A commit in a transaction: it becomes visible when a marker commits that.

    `first_offset` is the offset of the first of its records; one follows the other.
    """

    group_id: GroupId
    at_ms: int
    generation_id: GenerationId
    member_id: MemberId
    client_id: str
    client_host: str
    producer_id: ProducerId
    producer_epoch: int
    first_offset: int
    offsets: OffsetsOfTopics
    principal: str | None = None


class PendingOffsetsEnded(Struct, frozen=True):
    """A marker ended the transaction of these pending offsets of the group.

    Committed, those became visible that `OffsetsCommitted` has, which comes before; the others were
    superseded by later commits.
    """

    group_id: GroupId
    at_ms: int
    producer_id: ProducerId
    producer_epoch: int
    is_commit: bool
    offsets: OffsetsOfTopics
    client_id: str = ""
    client_host: str = ""
    principal: str | None = None


class PendingOffsetsDeleted(Struct, frozen=True):
    """They were deleted before their transaction ended."""

    group_id: GroupId
    at_ms: int
    cause: DeletionCause
    partitions: PartitionsOfTopics


PendingOffsetEvent = OffsetsPending | PendingOffsetsEnded | PendingOffsetsDeleted

OffsetEvent = OffsetsCommitted | OffsetsDeleted
