"""Cluster view: this node as clients see it, by the listener that they came through.

Metadata, FindCoordinator and DescribeCluster name this node by the address that is advertised for
the client's own listener; DescribeConfigs shows the effective configuration with its origins.
Implements `topics.cluster.ClusterView`.
"""

from collections.abc import Sequence
from typing import Final

from broker.net.request import PendingRequest
from config.keys import Config, keys
from config.types import BrokerKey
from protocol.config_def import ConfigValue, convert_to_string
from protocol.names import ConfigSource
from seams.reply_token import ReplyToken
from topics.cluster import BrokerConfig, Node

_NULL_BY_DEFAULT: Final = frozenset(
    ("advertised.listeners", "broker.rack", "controller.listener.names", "log.dirs")
)
"""Keys whose default is null in Kafka and empty here."""

_INTERNAL: Final = frozenset(
    ("group.consumer.regex.refresh.interval.ms", "producer.id.expiration.check.interval.ms")
)
"""Keys that Kafka defines as internal: they can be set, and DescribeConfigs does not show them."""


class ClusterOfOne:
    """A cluster of this node alone."""

    def __init__(self, config: Config, cluster_id: str) -> None:
        self._config = config
        self.cluster_id = cluster_id
        self.node_id = config.node_id
        self.rack = config.broker_rack or None

    def endpoint(self, token: ReplyToken) -> Node:
        assert isinstance(token, PendingRequest)
        listener = token.connection.listener
        return Node(self.node_id, listener.advertised_host, listener.advertised_port)

    def broker_configs(self) -> Sequence[BrokerConfig]:
        return [self._shown(key) for key in keys().values() if key.name not in _INTERNAL]

    def _shown(self, key: BrokerKey) -> BrokerConfig:
        is_set = key.name in self._config.origins
        is_null = key.name in _NULL_BY_DEFAULT
        default = None if is_null else _text(key.default)
        return BrokerConfig(
            key.name,
            None if is_null and not is_set else _text(self._config.value(key)),
            key.type,
            ConfigSource.STATIC_BROKER_CONFIG if is_set else ConfigSource.DEFAULT_CONFIG,
            default,
            key.documentation,
        )


def _text(value: ConfigValue | None) -> str | None:
    return None if value is None else convert_to_string(value)
