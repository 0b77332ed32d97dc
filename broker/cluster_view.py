"""Cluster view: this node as clients see it, by the listener that they came through.

Metadata, FindCoordinator and DescribeCluster name this node by the address that is advertised for
the client's own listener; DescribeConfigs shows the effective configuration with its origins.
Implements `topics.cluster.ClusterView`.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from broker.net.request import PendingRequest
from config.dynamic_keys import (
    DYNAMIC_KEYS,
    default_text,
    dynamic_key,
    synonyms,
)
from config.keys import Config, keys
from config.types import BrokerKey
from protocol.config_def import ConfigType, ConfigValue, convert_to_string
from protocol.names import ConfigSource
from seams.reply_token import ReplyToken
from topics.broker_properties import BrokerProperties, ConfigSynonym
from topics.cluster import BrokerConfig, LogDirSpace, Node

_NULL_BY_DEFAULT: Final = frozenset(
    ("advertised.listeners", "broker.rack", "controller.listener.names", "log.dirs")
)
"""Keys whose default is null in Kafka and empty here."""

_INTERNAL: Final = frozenset(
    (
        "group.consumer.assignor.offload.enable",
        "group.consumer.regex.refresh.interval.ms",
        "producer.id.expiration.check.interval.ms",
    )
)
"""Keys that Kafka defines as internal: they can be set, and DescribeConfigs does not show them."""


class ClusterOfOne:
    """A cluster of this node alone."""

    def __init__(self, config: Config, cluster_id: str) -> None:
        self._config = config
        self.cluster_id = cluster_id
        self.node_id = config.node_id
        self.rack = config.broker_rack or None
        self.log_dir = str(config.data_dir.absolute())

    @property
    def transaction_version(self) -> int:
        return self._config.rollcall_transaction_version

    def log_dir_space(self) -> LogDirSpace:
        volume = os.statvfs(self.log_dir)
        return LogDirSpace(volume.f_blocks * volume.f_frsize, volume.f_bavail * volume.f_frsize)

    def endpoint(self, token: ReplyToken) -> Node:
        assert isinstance(token, PendingRequest)
        listener = token.connection.listener
        return Node(self.node_id, listener.advertised_host, listener.advertised_port)

    def broker_configs(self, properties: BrokerProperties) -> Sequence[BrokerConfig]:
        own = [self._shown(key, properties) for key in keys().values() if key.name not in _INTERNAL]
        others = [name for name in properties.dynamic if name not in keys()]
        return own + [_shown_stored(name, properties) for name in others]

    def cluster_configs(self, properties: BrokerProperties) -> Sequence[BrokerConfig]:
        alone = BrokerProperties(cluster=properties.cluster)
        return [
            _without_default(
                self._shown(keys()[name], alone) if name in keys() else _shown_stored(name, alone)
            )
            for name in properties.cluster
        ]

    def _shown(self, key: BrokerKey, properties: BrokerProperties) -> BrokerConfig:
        names = synonyms(key.name)
        found = _from(key.name, [*properties.synonyms(names), *self._default(names)])
        text = properties.dynamic.get(key.name) if key.name in DYNAMIC_KEYS else None
        is_null = key.name in _NULL_BY_DEFAULT and key.name not in self._config.origins
        value = _text(self._config.value(key)) if text is None else _text(key.parse(text))
        return BrokerConfig(
            key.name,
            None if is_null else value,
            key.type,
            tuple(found),
            key.documentation,
            is_read_only=key.name not in DYNAMIC_KEYS,
            is_sensitive=key.type is ConfigType.PASSWORD,
        )

    def _default(self, names: Sequence[str]) -> Iterator[ConfigSynonym]:
        """The default of a value; of its names only the coarsest has one."""
        for name in names:
            default = None if name in _NULL_BY_DEFAULT else _text(keys()[name].default)
            if default is not None:
                yield ConfigSynonym(name, default, ConfigSource.DEFAULT_CONFIG)


def _shown_stored(name: str, properties: BrokerProperties) -> BrokerConfig:
    """A dynamic config that is not in the table; one that is not known may be a secret."""
    names = synonyms(name)
    found = _from(name, [*properties.synonyms(names)])
    key = dynamic_key(names[-1])
    if key is None:
        return BrokerConfig(name, None, ConfigType.UNKNOWN, tuple(found), is_sensitive=True)
    value = _text(key.parse(found[0].text or ""))
    default = default_text(names[-1])
    if default is not None:
        found.append(ConfigSynonym(names[-1], default, ConfigSource.DEFAULT_CONFIG))
    # As Kafka, which can change a listener's own value all the same.
    is_read_only = names[-1] != name
    return BrokerConfig(name, value, key.type, tuple(found), is_read_only=is_read_only)


def _from(name: str, found: list[ConfigSynonym]) -> list[ConfigSynonym]:
    """As Kafka: synonyms from the first one of this name on."""
    while found and found[0].name != name:
        found.pop(0)
    return found


def _without_default(config: BrokerConfig) -> BrokerConfig:
    own = [s for s in config.synonyms if s.source is not ConfigSource.DEFAULT_CONFIG]
    return replace(config, synonyms=tuple(own))


def _text(value: ConfigValue | None) -> str | None:
    return None if value is None else convert_to_string(value)
