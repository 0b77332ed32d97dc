"""Which topics are there? The one file that remembers: names, ids, partitions and configs.

JSON, because people look into it. Written as a whole before a change takes effect, so that after a
crash a topic either is there or is not. The same file reserves producer ids, which must never be
given out twice. Kafka's counterpart: the topic, config and producer id records of the metadata log.
"""

import json
from typing import Final, Protocol
from uuid import UUID

from msgspec import Struct, field

from protocol.names import TopicId, TopicName
from storage.api import Corrupt

FORMAT: Final = 1


class CatalogFile(Protocol):
    """A small file that is read once and always written as a whole."""

    def load(self) -> bytes | None:
        """The content as last saved; None if it never was."""

    def save(self, content: bytes) -> None:
        """Replace the content: atomically, and durably before it returns. Raises OSError."""


class TopicEntry(Struct, frozen=True):
    name: TopicName
    topic_id: TopicId
    partitions: int
    configs: dict[str, str] = field(default_factory=dict)


class Catalog(Struct):
    topics: list[TopicEntry] = field(default_factory=list)
    deleting: list[TopicId] = field(default_factory=list)
    """Topics that are gone, whose folders may still be there after a crash."""
    next_producer_id: int = 0

    def dump(self) -> bytes:
        document = {
            "format": FORMAT,
            "topics": [
                {
                    "name": topic.name,
                    "id": str(topic.topic_id),
                    "partitions": topic.partitions,
                    "configs": topic.configs,
                }
                for topic in self.topics
            ],
            "deleting": [str(topic_id) for topic_id in self.deleting],
            "next_producer_id": self.next_producer_id,
        }
        return json.dumps(document, indent=1).encode()

    @classmethod
    def read(cls, content: bytes) -> "Catalog":
        """The catalog in a file; raises Corrupt, for to go on without it would lose topics."""
        try:
            document = json.loads(content)
            if document["format"] != FORMAT:
                raise Corrupt("topic catalog", 0, f"format {document['format']} is not known")
            return cls(
                [
                    TopicEntry(
                        TopicName(topic["name"]),
                        UUID(topic["id"]),
                        int(topic["partitions"]),
                        dict(topic["configs"]),
                    )
                    for topic in document["topics"]
                ],
                [UUID(topic_id) for topic_id in document["deleting"]],
                int(document["next_producer_id"]),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as fault:
            raise Corrupt("topic catalog", 0, f"{type(fault).__name__}: {fault}") from fault
