"""Topic: one topic as the registry has it, and a validated one that is to be created.

`registry.py` alone changes them. Kafka's counterpart: `TopicImage`.
"""

from collections.abc import Mapping

from msgspec import Struct, field

from protocol.names import TopicId, TopicName
from topics.configs import EffectiveConfig
from topics.partition import Partition


class Topic(Struct):
    """One topic. `configs` are its own; `effective` has the values in effect with the broker's."""

    name: TopicName
    topic_id: TopicId
    configs: Mapping[str, str]
    effective: EffectiveConfig
    is_internal: bool
    partitions: list[Partition] = field(default_factory=list)


class NewTopic(Struct, frozen=True):
    """A validated topic to be created."""

    name: TopicName
    topic_id: TopicId
    partitions: int
    configs: dict[str, str] = field(default_factory=dict)
