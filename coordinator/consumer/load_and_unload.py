"""Load and unload of consumer groups: timers after a load.

No request of a consumer group is parked, so nothing has to be refused when a partition is closed.
Kafka's counterpart: `GroupMetadataManager.onLoaded`.
"""

from coordinator.consumer.delayed import ConsumerOp
from coordinator.consumer.group import ConsumerGroup
from coordinator.settings import GroupSettings
from seams.now import Now


def start_consumer_after_load(
    group: ConsumerGroup, now: Now, settings: GroupSettings
) -> list[ConsumerOp]:
    """A full session for each member, and a full rebalance timeout for those who revoke."""
    raise NotImplementedError
