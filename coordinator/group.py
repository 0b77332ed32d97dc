"""Group values: the type of a group, and an offset committed under its id.

Kafka's counterpart: `GroupType`, and `OffsetAndMetadata`.
"""

from enum import StrEnum

from msgspec import Struct

from protocol.names import ZERO_TOPIC_ID, TopicId


class GroupType(StrEnum):
    """As ListGroups and the tools print it."""

    CLASSIC = "classic"
    CONSUMER = "consumer"


class CommittedOffset(Struct, frozen=True, gc=False):
    """The last commit for one partition. Times in ms, Unix epoch; `expire_at_ms` -1 means none."""

    committed_offset: int
    leader_epoch: int = -1
    metadata: str = ""
    committed_at_ms: int = -1
    expire_at_ms: int = -1
    topic_id: TopicId = ZERO_TOPIC_ID
