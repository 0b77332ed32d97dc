"""What happened to a group's committed offsets?

The events of the offsets half, beside those of membership in `events.py`. `evolve.py`
writes them in; the log lines, the metrics and the history are derived from them. Times: `at_ms` is
the wall clock. Offsets that are gone, or that a commit from outside the group replaced, are carried
along: a history that says only "now 0" explains nothing. An ordinary member's commit carries the
new offsets alone, for speed.
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
    """`generation_id` -1: by nobody in the group, a simple consumer or a tool; `replaced` is what
    the group's offsets were before, and only filled in then.
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


class GroupDeleted(Struct, frozen=True):
    """The group is gone, and with it `offsets`, the last ones that it had."""

    group_id: GroupId
    at_ms: int
    cause: DeletionCause
    offsets: OffsetsOfTopics
    client_id: str = ""
    client_host: str = ""


OffsetEvent = OffsetsCommitted | OffsetsDeleted | GroupDeleted
