"""Loaded record: what a load of a group coordinator's partition reads in a log, and applies.

Most of it is commits, a batch at a time; `stored_commits.py` reads them. Kafka's counterpart:
`CoordinatorRecord`, which is always one record.
"""

from msgspec import Struct

from coordinator.offsets.committed_offsets import CommittedOffsets
from protocol.names import GroupId, TopicName
from storage.api import LoggedRecord


class StoredCommits(Struct, frozen=True, gc=False):
    """The commits of one group to one topic in one batch, in the order of their records."""

    group_id: GroupId
    topic: TopicName
    commits: CommittedOffsets
    """The last one for each partition. A group that has none for the topic yet keeps the object."""
    timestamp_ms: int
    """Of the batch: since when a group is there that begins with these."""


LoadedRecord = LoggedRecord | StoredCommits
"""What a load applies, in the order of the log."""
