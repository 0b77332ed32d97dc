"""Offset events: what happened to a group's committed offsets.

offsets/evolve.py applies them; log lines, metrics and the history are derived from them. Times:
`at_ms` is the wall clock. An event also carries the offsets that are gone, or that a commit from
outside the group replaced: the history shows both. An ordinary member's commit carries the new
offsets alone, for speed.
Kafka's counterpart: the log lines of `OffsetMetadataManager`.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from coordinator.group import CommittedOffset
from protocol.names import GenerationId, GroupId, MemberId, TopicName

OffsetsOfTopics = Sequence[tuple[TopicName, Mapping[int, CommittedOffset]]]
"""Topic by topic: partition -> offset. A topic may stand there twice; the later one counts."""


class DeletionCause(StrEnum):
    """Why offsets, or a whole group, are gone."""

    REQUESTED = "requested"  # OffsetDelete or DeleteGroups
    EXPIRED = "expired"  # KIP-211: nobody used them for offsets.retention.minutes
    TOPIC_DELETED = "topic_deleted"


class OffsetsCommitted(Struct, frozen=True):
    """`generation_id` -1: by a simple consumer or a tool, not by a member; only then `replaced` has
    the offsets from before.
    """

    group_id: GroupId
    at_ms: int
    generation_id: GenerationId
    member_id: MemberId
    client_id: str
    client_host: str
    offsets: OffsetsOfTopics
    replaced: OffsetsOfTopics = ()


class OffsetsDeleted(Struct, frozen=True):
    """`offsets` are those that are gone; the client is the one that asked, if one did."""

    group_id: GroupId
    at_ms: int
    cause: DeletionCause
    offsets: OffsetsOfTopics
    client_id: str = ""
    client_host: str = ""


OffsetEvent = OffsetsCommitted | OffsetsDeleted
