"""Who are we, in the words of the listener that a client came through?

Metadata, FindCoordinator and DescribeCluster name this node by the address that is advertised for
the client's own listener; DescribeConfigs shows the effective configuration with its origins.
Implements `topics.cluster.ClusterView`.
"""

from collections.abc import Sequence
from typing import Final

from broker.config import Config, keys
from broker.config_key import Key, Kind, as_text
from broker.request import PendingRequest
from protocol.reply_token import ReplyToken
from topics.cluster import BrokerConfig, Endpoint
from topics.config_values import ConfigSource, ConfigType

_TYPES: Final = {
    Kind.BOOLEAN: ConfigType.BOOLEAN,
    Kind.INT: ConfigType.INT,
    Kind.LONG: ConfigType.LONG,
    Kind.DOUBLE: ConfigType.DOUBLE,
    Kind.STRING: ConfigType.STRING,
    Kind.LIST: ConfigType.LIST,
}


class ClusterOfOne:
    """This node alone."""

    def __init__(self, config: Config, cluster_id: str) -> None:
        self._config = config
        self.cluster_id = cluster_id
        self.node_id = config.node_id
        self.rack = config.broker_rack or None

    def endpoint(self, token: ReplyToken) -> Endpoint:
        assert isinstance(token, PendingRequest)
        listener = token.connection.listener
        return Endpoint(self.node_id, listener.advertised_host, listener.advertised_port)

    def broker_configs(self) -> Sequence[BrokerConfig]:
        return [self._shown(key) for key in keys().values()]

    def _shown(self, key: Key) -> BrokerConfig:
        value = self._config.value(key)
        is_set = key.name in self._config.origins
        return BrokerConfig(
            key.name,
            None if value is None else as_text(value),
            _TYPES[key.rule.kind],
            ConfigSource.STATIC_BROKER_CONFIG if is_set else ConfigSource.DEFAULT_CONFIG,
            None if key.default is None else as_text(key.default),
            key.rule.doc,
        )
