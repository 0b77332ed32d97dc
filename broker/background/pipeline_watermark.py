"""Pipeline watermark: how far the pipeline has read `__consumer_offsets`.

`rollcall pipeline run ingest --acknowledge` commits, as any consumer would, where the next run will
begin: offsets of the group `rollcall-pipeline` on the partitions of the topic itself. While they
exist, a sealed segment that the pipeline has not read is not cleaned until it is older than
`rollcall.pipeline.keep.ms` or more than `rollcall.pipeline.keep.bytes` follow it: a pipeline that
does not run any more must not fill the disk. Without such a group nothing is kept. Kafka's
counterpart: none.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from coordinator.coordinator import GroupCoordinator
from protocol.names import OFFSETS_TOPIC, GroupId, TopicName
from storage.api import TopicPartition
from storage.cleaner.selection import Unread

PIPELINE_GROUP: Final = GroupId("rollcall-pipeline")

Marks = Callable[[Iterable[TopicPartition]], Mapping[TopicPartition, Unread]]


def no_marks(_: Iterable[TopicPartition]) -> Mapping[TopicPartition, Unread]:
    """Of a node whose pipeline never acknowledged anything."""
    return {}


def pipeline_marks(coordinator: GroupCoordinator, *, keep_ms: int, keep_bytes: int) -> Marks:
    """Reads the group's offsets; on the event loop."""

    def marks(logs: Iterable[TopicPartition]) -> Mapping[TopicPartition, Unread]:
        if not coordinator.knows(PIPELINE_GROUP):
            return {}
        group = coordinator.group(PIPELINE_GROUP)
        # While the group's own partition loads this is not known: nothing counts as read.
        commits = {} if group is None else group.offsets.get(TopicName(OFFSETS_TOPIC), {})
        if group is not None and not commits:
            return {}
        return {
            key: Unread(
                commits[key.partition].committed_offset if key.partition in commits else 0,
                keep_ms,
                keep_bytes,
            )
            for key in logs
            if key.topic == OFFSETS_TOPIC
        }

    return marks
