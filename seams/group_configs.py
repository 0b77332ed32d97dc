"""Group configs: the dynamic configs of consumer groups, as the coordinator reads them.

Each answer is the group's own value within the broker's limits, or else the broker's value. Kafka's
counterpart: `GroupConfigManager`.
"""

from typing import NamedTuple, Protocol

from protocol.names import GroupId


class GroupConfigs(Protocol):
    def session_timeout_ms(self, group_id: GroupId, /) -> int:
        """`consumer.session.timeout.ms`."""

    def heartbeat_interval_ms(self, group_id: GroupId, /) -> int:
        """`consumer.heartbeat.interval.ms`."""

    def assignment_interval_ms(self, group_id: GroupId, /) -> int:
        """`consumer.assignment.interval.ms`."""


class BrokerGroupConfigs(NamedTuple):
    """The broker's values, for all groups: where no group has configs of its own."""

    broker_session_timeout_ms: int = 45_000  # group.consumer.session.timeout.ms
    broker_heartbeat_interval_ms: int = 5_000  # group.consumer.heartbeat.interval.ms
    broker_assignment_interval_ms: int = 1_000  # group.consumer.assignment.interval.ms

    def session_timeout_ms(self, _group_id: GroupId, /) -> int:
        return self.broker_session_timeout_ms

    def heartbeat_interval_ms(self, _group_id: GroupId, /) -> int:
        return self.broker_heartbeat_interval_ms

    def assignment_interval_ms(self, _group_id: GroupId, /) -> int:
        return self.broker_assignment_interval_ms
