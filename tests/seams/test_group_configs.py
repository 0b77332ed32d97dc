"""Group configs: where no group has configs of its own, the broker's values count."""

from coordinator.settings import GroupSettings
from protocol.names import GroupId
from seams.group_configs import BrokerGroupConfigs, GroupConfigs

GROUP = GroupId("g")


def test_the_defaults_are_the_coordinators() -> None:
    settings = GroupSettings()
    assert BrokerGroupConfigs() == BrokerGroupConfigs(
        settings.group_consumer_session_timeout_ms,
        settings.group_consumer_heartbeat_interval_ms,
        settings.group_consumer_assignment_interval_ms,
    )


def test_every_group_has_the_brokers_values() -> None:
    configs: GroupConfigs = BrokerGroupConfigs(7, 8, 9)
    assert configs.session_timeout_ms(GROUP) == 7
    assert configs.heartbeat_interval_ms(GROUP) == 8
    assert configs.assignment_interval_ms(GROUP) == 9
