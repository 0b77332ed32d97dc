"""Shard context: what all shards of one coordinator share, as one value.

The coordinator makes it once; shards, their group stores and their restores read it.
"""

from collections.abc import Callable
from typing import NamedTuple

from coordinator.classic.decide.join_group import NewMemberId
from coordinator.consumer.assignment_job import AssignmentJob
from coordinator.consumer.context import ConsumerContext
from coordinator.events import AnyEvent
from coordinator.group_counts import GroupCounts
from coordinator.history_sink import HistorySink
from coordinator.pending_answers import Send
from coordinator.settings import GroupSettings
from protocol.names import TopicId
from seams.next_deadline import NextDeadline
from seams.topics_view import TopicsView
from storage.api import Position


class ShardContext(NamedTuple):
    """`topic_done`: a partition has deleted a topic's offsets, and that is stored.

    `compute` makes an assignment outside of a turn; it ends in a turn of the partition's shard.
    `first_unstable_changed`: where the oldest open transaction of a partition begins, or that there
    is none.
    """

    settings: GroupSettings
    new_member_id: NewMemberId
    topics: TopicsView
    reply: Send
    observe: Callable[[AnyEvent], None]
    group_counts: GroupCounts
    next_deadline: NextDeadline
    topic_done: Callable[[int, TopicId], None]
    consumer: ConsumerContext
    compute: Callable[[int, AssignmentJob], None]
    first_unstable_changed: Callable[[int, Position | None], None]
    history_sink: HistorySink | None = None
