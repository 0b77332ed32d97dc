"""Committed offsets: what a group committed for the partitions of a topic.

A dict; in the compiled build rows in C that behave like one and have no object for each offset
(native/committed_offsets.pxi). Kafka's counterpart: the maps of `OffsetMetadataManager.Offsets`.
"""

from collections.abc import Callable, Mapping, MutableMapping
from typing import Final

from coordinator.group import CommittedOffset
from protocol.compiled_codec import function_in_c
from protocol.names import TopicName

CommittedOffsets = MutableMapping[int, CommittedOffset]
"""By partition, in the order in which the partitions were added."""

OffsetsByTopic = dict[TopicName, CommittedOffsets]

offsets_by_partition: Final[Callable[[Mapping[int, CommittedOffset]], CommittedOffsets]] = (
    function_in_c("CommittedOffsets") or dict
)
"""With the content of a mapping, which stays as it is."""
