"""Broker properties: the broker's keys that are set, as text, and by which level.

A key has the value of the strongest level that sets it: the broker's own dynamic configs, those of
the whole cluster, or the static configuration. The configs of topics and groups that set nothing
themselves are derived from these.
Kafka's counterpart: the maps of `DynamicBrokerConfig`, `ConfigHelper.configSynonyms`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from protocol.names import ConfigSource


class ConfigSynonym(NamedTuple):
    """A key that sets a value, and where."""

    name: str
    text: str | None
    source: ConfigSource


class BrokerProperties(Struct, frozen=True):
    """The keys that are set on each level; key -> text."""

    static: Mapping[str, str] = field(default_factory=dict)
    cluster: Mapping[str, str] = field(default_factory=dict)
    broker: Mapping[str, str] = field(default_factory=dict)

    @property
    def dynamic(self) -> Mapping[str, str]:
        """The keys that were set while the broker ran."""
        return {**self.cluster, **self.broker}

    @property
    def in_effect(self) -> Mapping[str, str]:
        return {**self.static, **self.cluster, **self.broker}

    def synonyms(self, names: Sequence[str]) -> Iterator[ConfigSynonym]:
        """Where these names of one value are set, the strongest first."""
        for level, source in (
            (self.broker, ConfigSource.DYNAMIC_BROKER_CONFIG),
            (self.cluster, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
            (self.static, ConfigSource.STATIC_BROKER_CONFIG),
        ):
            for name in names:
                if name in level:
                    yield ConfigSynonym(name, level[name], source)

    def source(self, name: str) -> ConfigSource:
        """The level that sets a key."""
        found = next(self.synonyms((name,)), None)
        return ConfigSource.DEFAULT_CONFIG if found is None else found.source
