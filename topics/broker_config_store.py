"""Broker config store: the dynamic configs of the broker, the subscriptions of client metrics, and
the file that has them.

The file is written as a whole before a change takes effect: a change that was answered survives a
crash. A change is an operation of the admin queue: it yields its disk work. Then the listeners are
called, so a change is in effect when it is answered. A name that neither Kafka nor Rollcall knows
is stored too, as in Kafka, where plug-ins may have keys of their own.
Kafka's counterpart: `ConfigurationControlManager` for the table, `DynamicBrokerConfig`.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, Protocol

from msgspec.structs import replace

from protocol.config_def import ConfigException
from storage.api import Corrupt
from topics.admin_queue import Steps
from topics.broker_properties import BrokerProperties
from topics.catalog import CatalogFile
from topics.checked_json import JsonDocument, dump_checked
from topics.client_metrics import CLIENT_METRICS_SUBSCRIPTIONS_MAX, validate_subscription
from topics.configs import MAX_VALUE_LENGTH
from topics.events import (
    BrokerConfigIgnored,
    BrokerConfigsChanged,
    BrokerConfigsLost,
    ClientMetricsChanged,
    SaveFailed,
    TopicEvent,
)
from topics.stored_document import StoredDocument

BROKER_CONFIGS_FORMAT: Final = 1

BROKER_CONFIGS_MAX: Final = 1_000
"""Dynamic configs of the broker, or of the cluster: names are free, and the file is read whole."""

_Level = dict[str, str]


class BrokerConfigsDamaged(Corrupt):
    """Without the file, the broker would silently have its static configs."""

    remedy = (
        "restore the file from a copy, or start once with --repair, which keeps it as "
        "*.damaged: the broker then has its static configs until the dynamic ones are set again"
    )


class BrokerConfigRules(Protocol):
    """What a broker's configs may be; `config/dynamic_rules.py` implements it."""

    def check(self, properties: BrokerProperties, *, per_broker: bool) -> None:
        """Whether a level may be changed so. Raises ConfigException."""

    def check_value(self, name: str, text: str) -> None:
        """One value by itself. Raises ConfigException."""

    def conflicts(self, properties: BrokerProperties) -> Iterator[tuple[str, str]]:
        """(name, reason) of values that do not fit together."""

    def unused(self, names: Mapping[str, str]) -> list[str]:
        """The names that have no effect."""

    def list_default(self, name: str) -> str | None:
        """The default of a list; None for a key of another type. Raises KeyError."""


class BrokerConfigStore:
    """A change raises OSError if the disk fails; then nothing changed."""

    def __init__(
        self,
        file: CatalogFile,
        rules: BrokerConfigRules,
        static: Mapping[str, str],
        observe: Callable[[TopicEvent], None],
        *,
        repair: bool = False,
    ) -> None:
        """Reads the file. With `repair` a damaged one is kept as a copy; then nothing is set.

        Raises Corrupt, NewerFormat, OSError.
        """
        self.rules = rules
        self.properties = BrokerProperties(static)
        self.was_repaired = False
        self._file = file
        self._observe = observe
        self._listeners: list[Callable[[BrokerProperties], None]] = []
        self._client_metrics: dict[str, _Level] = {}
        self._load(repair=repair)

    def subscribe(self, listener: Callable[[BrokerProperties], None]) -> None:
        """Call `listener` now and after every change."""
        self._listeners.append(listener)
        listener(self.properties)

    # Broker configs. `per_broker`: this broker's own ones, else those of the cluster.

    def configs(self, *, per_broker: bool) -> Mapping[str, str]:
        return self.properties.broker if per_broker else self.properties.cluster

    def validate(self, configs: Mapping[str, str], *, per_broker: bool) -> None:
        """Raises ConfigException."""
        self.rules.check(self._with(configs, per_broker=per_broker), per_broker=per_broker)

    def change(self, configs: Mapping[str, str], *, per_broker: bool) -> Steps[None]:
        """Replace all dynamic configs of a level by these, which are valid."""
        after = self._with(configs, per_broker=per_broker)
        if after == self.properties:
            return
        yield from self._save(after, self._client_metrics)
        self.properties = after
        for listener in self._listeners:
            listener(after)
        unused = tuple(self.rules.unused(configs))
        self._observe(BrokerConfigsChanged(dict(configs), per_broker, unused))

    def _with(self, configs: Mapping[str, str], *, per_broker: bool) -> BrokerProperties:
        if per_broker:
            return replace(self.properties, broker=configs)
        return replace(self.properties, cluster=configs)

    # Client metrics

    def subscription(self, name: str) -> Mapping[str, str]:
        return self._client_metrics.get(name, {})

    def subscriptions(self) -> Iterator[str]:
        return iter(self._client_metrics)

    def validate_subscription(self, name: str, configs: Mapping[str, str]) -> None:
        """Raises ConfigException, UnknownSubscriptionConfig."""
        validate_subscription(configs)
        check_lengths(configs)
        is_new = bool(configs) and name not in self._client_metrics
        if is_new and len(self._client_metrics) >= CLIENT_METRICS_SUBSCRIPTIONS_MAX:
            raise ConfigException(
                f"There are {CLIENT_METRICS_SUBSCRIPTIONS_MAX} subscriptions: no others can be "
                "added."
            )

    def change_subscription(self, name: str, configs: _Level) -> Steps[None]:
        """Replace the configs of a subscription by these, which are valid."""
        after = {**self._client_metrics, name: configs}
        if not configs:
            del after[name]
        if after == self._client_metrics:
            return
        yield from self._save(self.properties, after)
        self._client_metrics = after
        self._observe(ClientMetricsChanged(name, dict(configs)))

    # The file

    def _save(
        self, properties: BrokerProperties, client_metrics: Mapping[str, _Level]
    ) -> Steps[None]:
        content = _dump(properties, client_metrics)
        try:
            yield lambda: self._file.save(content)
        except OSError as fault:
            self._observe(SaveFailed("configs of the broker", str(fault)))
            raise

    def _load(self, *, repair: bool) -> None:
        if repair:
            found, self.was_repaired = _CONFIGS_FILE.load_or_repair(
                self._file,
                _dump(self.properties, {}),
                lambda kept_as: self._observe(BrokerConfigsLost(kept_as)),
            )
        else:
            found = _CONFIGS_FILE.load(self._file)
        if found is None:
            return
        cluster, broker, self._client_metrics = found
        self.properties = replace(
            self.properties, cluster=self._valid(cluster), broker=self._valid(broker)
        )
        self._drop_conflicts()

    def _valid(self, configs: _Level) -> _Level:
        """Those that this version accepts, by itself each."""
        kept = {}
        for name, text in configs.items():
            try:
                self.rules.check_value(name, text)
            except ConfigException as fault:
                self._observe(BrokerConfigIgnored(name, str(fault)))
            else:
                kept[name] = text
        return kept

    def _drop_conflicts(self) -> None:
        """The static configuration may have changed since the values were set."""
        for name, reason in list(self.rules.conflicts(self.properties)):
            self._observe(BrokerConfigIgnored(name, reason))
            cluster, broker = dict(self.properties.cluster), dict(self.properties.broker)
            cluster.pop(name, None)
            broker.pop(name, None)
            self.properties = replace(self.properties, cluster=cluster, broker=broker)


def check_lengths(configs: Mapping[str, str]) -> None:
    """Raises ConfigException."""
    if any(len(text) > MAX_VALUE_LENGTH for text in configs.values()):
        raise ConfigException(
            "The configuration value cannot be added because it exceeds the maximum value "
            f"size of {MAX_VALUE_LENGTH} bytes."
        )


def _dump(properties: BrokerProperties, client_metrics: Mapping[str, _Level]) -> bytes:
    document = {
        "cluster": properties.cluster,
        "broker": properties.broker,
        "client_metrics": client_metrics,
    }
    return dump_checked(document, BROKER_CONFIGS_FORMAT)


def _levels(document: JsonDocument) -> tuple[_Level, _Level, dict[str, _Level]]:
    """Raises ValueError and others of `StoredDocument`."""
    subscriptions = {
        name: _level(configs, name) for name, configs in document["client_metrics"].items()
    }
    cluster = _level(document["cluster"], "cluster")
    return cluster, _level(document["broker"], "broker"), subscriptions


def _level(configs: object, of: str) -> _Level:
    if isinstance(configs, dict) and all(isinstance(text, str) for text in configs.values()):
        return configs
    raise ValueError(f"the configs of {of!r} are no object of strings")


_CONFIGS_FILE: Final = StoredDocument(BROKER_CONFIGS_FORMAT, _levels, BrokerConfigsDamaged)
