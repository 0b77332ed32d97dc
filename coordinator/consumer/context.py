"""Consumer group context: what decisions about consumer groups are made with, as one value."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from coordinator.consumer.assignors.assignor import Assignor
from coordinator.settings import GroupSettings
from protocol.names import MemberId
from seams.topics_view import TopicsView


class ConsumerContext(Struct, frozen=True):
    """`assignors` in the order of `group.consumer.assignors`: the first one is the default.

    `new_member_id` makes the id of a member of ConsumerGroupHeartbeat v0, which has none yet.
    """

    settings: GroupSettings
    topics: TopicsView
    assignors: Mapping[str, Assignor]
    new_member_id: Callable[[], MemberId]
