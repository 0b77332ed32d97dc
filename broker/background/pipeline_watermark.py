"""How far has the pipeline read `__consumer_offsets`? What the log cleaner may not clean yet.

`rollcall pipeline run ingest --acknowledge` commits, as any consumer would, where the next run will
begin: offsets of the group `rollcall-pipeline` on the partitions of the topic itself. While they
are there, a sealed segment that the pipeline has not read is kept from the cleaner, until it is
older than `rollcall.pipeline.keep.ms` or `rollcall.pipeline.keep.bytes` lie behind it: a pipeline
that died must not fill the disk. Without such a group nothing is kept. Kafka has nothing like it.
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
    """As if no pipeline had ever acknowledged anything."""
    return {}


def pipeline_marks(coordinator: GroupCoordinator, *, keep_ms: int, keep_bytes: int) -> Marks:
    """Reads the group's offsets; on the event loop."""

    def marks(logs: Iterable[TopicPartition]) -> Mapping[TopicPartition, Unread]:
        if not coordinator.knows(PIPELINE_GROUP):
            return {}
        group = coordinator.group(PIPELINE_GROUP)
        # While the group's own partition loads nobody knows: then nothing counts as read.
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
