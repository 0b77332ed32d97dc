"""Dynamic rules: whether the broker's configs may be changed so, and the configuration with them.

The broker's dynamic configs stand above its static configuration: `applied` returns the `Config` in
effect. The checks, their order and their words are Kafka's. A key that cannot be honoured and must
not be ignored is refused, as in a configuration file (`kafka_names.py`).
Implements `topics.broker_config_store.BrokerConfigRules`.
Kafka's counterpart: `DynamicBrokerConfig.validate`, `KafkaConfig.validateValues`.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from msgspec.structs import replace

from config.dynamic_keys import (
    DYNAMIC_KEYS,
    LISTENER_KEYS,
    SECURITY_KEYS,
    default_text,
    dynamic_key,
    is_per_broker,
    is_static,
    is_store_of_listener,
    without_listener,
)
from config.kafka_names import is_listener_limit, refusal_reason, split_listener_limit
from config.keys import Config, keys
from config.limits import ListenerLimits
from config.listener_security import security_key, security_keys
from protocol.config_def import (
    ConfigException,
    ConfigType,
    ConfigValue,
    convert_to_string,
    parse_type,
)
from topics.broker_properties import BrokerProperties

DEDUPE_BUFFER_BYTES_MIN: Final = 1_048_576
"""Kafka's buffer must be larger than this for each cleaner thread; here there is one."""

_SERVED_BY_ONE_NODE: Final = "min.insync.replicas"
"""Refused in a configuration file. Topics may have it: it counts as one, as in Kafka."""


class Conflict(NamedTuple):
    """A value that does not fit the other values."""

    name: str
    text: str


class DynamicRules:
    """The rules of one broker, by its static configuration."""

    def __init__(
        self, config: Config, check_security: Callable[[Config], None] | None = None
    ) -> None:
        """`check_security` reads the key and trust stores of a changed configuration. It raises
        ConfigException where they cannot be used."""
        self._static = config
        self._check_security = check_security

    def check(self, properties: BrokerProperties, *, per_broker: bool) -> None:
        """Check the level that was changed, and the values that are in effect with it.

        Raises ConfigException.
        """
        changed = properties.broker if per_broker else properties.cluster
        static = [name for name in changed if is_static(name)]
        _refuse(static, "Cannot update these configs dynamically")
        _refuse(
            [name for name in changed if name in SECURITY_KEYS],
            "These security configs can be dynamically updated only per-listener using the "
            "listener prefix",
        )
        for name, text in changed.items():
            self.check_value(name, text)
        if not per_broker:
            _refuse(
                [name for name in changed if is_per_broker(name)],
                "Cannot update these configs at default cluster level, broker id must be specified",
            )
        listeners = [
            name
            for name in changed
            if without_listener(name) in LISTENER_KEYS or _is_static_security(name)
        ]
        _refuse(listeners, "Cannot update these configs dynamically")
        for name, text in changed.items():
            reason = refusal_reason(name, text)
            if reason is not None and name != _SERVED_BY_ONE_NODE:
                raise ConfigException(f"{name}: {reason}")
        for conflict in self.conflicts(properties):
            raise ConfigException(conflict.text)
        if self._check_security is not None and any(map(is_store_of_listener, changed)):
            self._check_security(self.applied(properties))

    def check_value(self, name: str, text: str) -> None:
        """One value by itself. Raises ConfigException."""
        bare = without_listener(name)
        key = security_key(name) if is_store_of_listener(name) else dynamic_key(bare)
        if key is None:
            return
        _check_requirement(bare, text, key.type)
        key.parse(text)

    def conflicts(self, properties: BrokerProperties) -> Iterator[Conflict]:
        """Values, each valid by itself, that do not fit together."""
        config = self.applied(properties)
        if config.retention_ms == 0:
            yield Conflict(
                "log.retention.ms",
                "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or "
                "equal to 1",
            )
        try:
            overrides = config.connections_by_address
        except ValueError as fault:
            name = "max.connections.per.ip.overrides"
            yield Conflict(name, f"Error parsing configuration property '{name}': {fault}")
        else:
            if config.max_connections_per_ip == 0 and not overrides:
                yield Conflict(
                    "max.connections.per.ip",
                    "requirement failed: max.connections.per.ip can be set to zero only if "
                    "max.connections.per.ip.overrides property is set.",
                )
        name, parts = "group.consumer.assignment.interval.ms", ("min", "max")
        low, high = (f"group.consumer.{part}.assignment.interval.ms" for part in parts)
        interval_ms = config.group_consumer_assignment_interval_ms
        if interval_ms < config.group_consumer_min_assignment_interval_ms:
            yield Conflict(name, f"{name} must be greater than or equal to {low}")
        if interval_ms > config.group_consumer_max_assignment_interval_ms:
            yield Conflict(name, f"{name} must be less than or equal to {high}")

    def applied(self, properties: BrokerProperties) -> Config:
        """The configuration in effect; its `origins` are those of the static one."""
        values: dict[str, ConfigValue] = {}
        for name, text in properties.dynamic.items():
            if name in DYNAMIC_KEYS:
                values[keys()[name].field] = dynamic_value(name, text)
        # The field names come from the table, so the types are those of the table's keys.
        config = replace(self._static, **values)
        stores: dict[str, ConfigValue] = {}
        for name, text in properties.dynamic.items():
            key = security_key(name) if is_store_of_listener(name) else None
            if key is not None:
                stores[name] = key.parse(text)
        return replace(
            config,
            listener_limits=self._listener_limits(properties),
            security_overrides={**self._static.security_overrides, **stores},
        )

    def _listener_limits(self, properties: BrokerProperties) -> Mapping[str, ListenerLimits]:
        """Of listeners that there are: `listener.name.NAME.max.connections` and the rate."""
        names = {listener.name.lower(): listener.name for listener in self._static.endpoints}
        limits = dict(self._static.listener_limits)
        for key, text in properties.dynamic.items():
            split = split_listener_limit(key)
            if split is not None and split[0] in names:
                listener, name = names[split[0]], keys()[split[1]]
                present = limits.get(listener, ListenerLimits())
                changes = {name.field: name.parse(text)}
                limits[listener] = replace(present, **changes)
        return limits

    def unused(self, names: Mapping[str, str]) -> list[str]:
        """The names among these that Rollcall has no use for."""
        return [
            name
            for name in names
            if name not in DYNAMIC_KEYS
            and not is_listener_limit(name)
            and not is_store_of_listener(name)
        ]

    def list_default(self, name: str) -> str | None:
        """The default of a list, for APPEND and SUBTRACT; None for a key of another type.

        Raises KeyError for an unknown name.
        """
        served = keys().get(name)
        if served is not None:
            return convert_to_string(served.default) if served.type is ConfigType.LIST else None
        key = dynamic_key(name)
        if key is None:
            raise KeyError(name)
        return default_text(name) or "" if key.type is ConfigType.LIST else None


def _is_static_security(name: str) -> bool:
    """Kafka changes some of these while it runs; here only the stores of a listener can be."""
    is_security = name in security_keys() or security_key(name) is not None
    return is_security and not is_store_of_listener(name)


def dynamic_value(name: str, text: str) -> ConfigValue:
    """The typed value of a dynamic key that is served. Raises ConfigException."""
    return keys()[name].parse(text)


def _check_requirement(name: str, text: str, config_type: ConfigType) -> None:
    """What Kafka checks after the types, in other words than a range's. Raises ConfigException."""
    if name == "log.roll.ms":
        least, words = 1, "must be greater than or equal to 1"
    elif name == "log.roll.jitter.ms":
        least, words = 0, "must be greater than or equal to 0"
    elif name == "log.cleaner.dedupe.buffer.size":
        least, words = DEDUPE_BUFFER_BYTES_MIN + 1, "must be at least 1MB per cleaner thread."
    else:
        return
    value = parse_type(name, text, config_type)
    assert isinstance(value, int)
    if value < least:
        raise ConfigException(f"requirement failed: {name} {words}")


def _refuse(names: list[str], text: str) -> None:
    if names:
        raise ConfigException(f"{text}: [{', '.join(names)}]")
