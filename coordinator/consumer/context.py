"""Consumer group context: what decisions about consumer groups are made with, as one value."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from coordinator.consumer.assignors.assignor import Assignor
from coordinator.consumer.topic_cache import TopicCache
from coordinator.settings import GroupSettings
from protocol.names import MemberId
from seams.authorizer import ALLOW_ALL, Authorizer
from seams.group_configs import BrokerGroupConfigs, GroupConfigs
from seams.stopwatch import Stopwatch, stopped
from seams.topics_view import TopicsView


class ConsumerContext(Struct, frozen=True):
    """`assignors` in the order of `group.consumer.assignors`: the first one is the default.

    `new_member_id` makes the id of a member of ConsumerGroupHeartbeat v0, which has none yet.
    `offloads`: large assignments are made outside of turns.
    """

    settings: GroupSettings
    topics: TopicCache
    assignors: Mapping[str, Assignor]
    new_member_id: Callable[[], MemberId]
    configs: GroupConfigs = BrokerGroupConfigs()
    authorizer: Authorizer = ALLOW_ALL
    stopwatch: Stopwatch = stopped
    offloads: bool = False


def consumer_context(
    settings: GroupSettings,
    topics: TopicsView,
    assignors: Mapping[str, Assignor],
    new_member_id: Callable[[], MemberId],
    configs: GroupConfigs | None = None,
    authorizer: Authorizer = ALLOW_ALL,
    stopwatch: Stopwatch = stopped,
    *,
    has_runner: bool = False,
) -> ConsumerContext:
    """`configs`: None where no group has configs of its own.

    `has_runner`: somebody can make assignments outside of turns.
    """
    of_broker = BrokerGroupConfigs(
        settings.group_consumer_session_timeout_ms,
        settings.group_consumer_heartbeat_interval_ms,
        settings.group_consumer_assignment_interval_ms,
    )
    return ConsumerContext(
        settings,
        TopicCache(topics),
        assignors,
        new_member_id,
        configs or of_broker,
        authorizer,
        stopwatch,
        offloads=has_runner and settings.group_consumer_assignor_offload_enable,
    )
