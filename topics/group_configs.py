"""Group configs: the keys that a group may set, their ranges, and the values in effect.

A group's value is its own or the broker's. The broker's keys also limit what a group may set. A
value that was valid when it was set, and is outside of the limits of this start, counts as the
nearest limit. Keys of share and streams groups are kept and shown, for Kafka's tools.
Kafka's counterpart: `GroupConfig` and `ControllerConfigurationValidator.validateGroup`.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from msgspec import Struct

from protocol.config_def import (
    ConfigException,
    ConfigKey,
    ConfigType,
    ConfigValue,
    Range,
    Validator,
    ValidString,
    convert_to_string,
    reject_value,
)
from protocol.java_text import LONG_MAX
from protocol.names import ConfigSource
from topics.broker_properties import BrokerProperties, ConfigSynonym

SESSION_TIMEOUT: Final = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL: Final = "consumer.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL: Final = "consumer.assignment.interval.ms"

_BY_DURATION: Final = "by_duration:"
_DURATION: Final = (
    r"(?P<sign>[-+])?P(?:(?P<days>[-+]?\d{1,19})D)?"
    r"(?:T(?=[-+\d])(?:(?P<hours>[-+]?\d{1,19})H)?(?:(?P<minutes>[-+]?\d{1,19})M)?"
    r"(?:(?P<seconds>[-+]?\d{1,19})(?:[.,]\d{0,9})?S)?)?"
)
_SECONDS: Final = {"days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}


class OffsetReset(Struct, frozen=True):
    """latest, earliest, or a duration that is not negative, as ISO 8601 writes it."""

    def ensure_valid(self, name: str, value: ConfigValue) -> None:
        if value not in ("latest", "earliest") and not _is_by_duration(str(value)):
            reject_value(
                name,
                value,
                f"Invalid value `{value}` for configuration {name}. The value must be either "
                f"'earliest', 'latest' or of the format '{_BY_DURATION}<PnDTnHnMn.nS>'.",
            )

    def __str__(self) -> str:
        return f"latest, earliest, {_BY_DURATION}PnDTnHnMn.nS"


def _is_by_duration(text: str) -> bool:
    """As `Duration.parse` reads it."""
    if not text.startswith(_BY_DURATION):
        return False
    match = re.fullmatch(_DURATION, text.removeprefix(_BY_DURATION), re.ASCII | re.IGNORECASE)
    parts = {} if match is None else {unit: match[unit] for unit in _SECONDS if match[unit]}
    if match is None or not parts:
        return False
    seconds = sum(int(number) * _SECONDS[unit] for unit, number in parts.items())
    return 0 <= (-seconds if match["sign"] == "-" else seconds) <= LONG_MAX


class GroupConfigKey(ConfigKey, frozen=True):
    default: str
    synonym: str | None = None
    """The broker's key that has the default of groups."""
    limits: tuple[tuple[str, int], ...] = ()
    """The broker's keys that have the least and the greatest value, with Kafka's defaults."""

    @property
    def least(self) -> tuple[str, int] | None:
        return self.limits[0] if len(self.limits) > 1 else None

    @property
    def most(self) -> tuple[str, int] | None:
        return self.limits[-1] if self.limits else None


def _key(
    name: str,
    config_type: ConfigType,
    default: str,
    documentation: str,
    validator: Validator | None,
) -> GroupConfigKey:
    return GroupConfigKey(name, config_type, documentation, validator, default)


def _number(
    name: str,
    default: int,
    documentation: str,
    *,
    at_least: int,
    limits: tuple[int, ...] = (),
) -> GroupConfigKey:
    """A whole number. `limits`: Kafka's defaults of the broker's least and greatest value."""
    kind, _, rest = name.partition(".")
    # Kafka's name for the limit of standby replicas is irregular.
    limited = rest.removeprefix("num.")
    words = ("min", "max")[-len(limits) :] if limits else ()
    return GroupConfigKey(
        name,
        ConfigType.INT,
        documentation,
        Range(at_least),
        str(default),
        f"group.{name}",
        tuple(
            (f"group.{kind}.{word}.{limited}", limit)
            for word, limit in zip(words, limits, strict=True)
        ),
    )


_SHARE: Final = "Kept for Kafka's tools; share groups are not served."
_STREAMS: Final = "Kept for Kafka's tools; streams groups are not served."

# In the order of Kafka's declarations: of two unreadable values the first one is reported.
GROUP_CONFIG_KEYS: Final[Mapping[str, GroupConfigKey]] = {
    key.name: key
    for key in (
        _number(
            SESSION_TIMEOUT, 45_000,
            "A member that is silent for so long leaves the group.",
            at_least=1, limits=(45_000, 60_000),
        ),
        _number(
            HEARTBEAT_INTERVAL, 5_000,
            "How often members send heartbeats.",
            at_least=1, limits=(5_000, 15_000),
        ),
        _number(
            ASSIGNMENT_INTERVAL, 1_000,
            "Time between two assignments of the group.",
            at_least=0, limits=(0, 15_000),
        ),
        _number("share.session.timeout.ms", 45_000, _SHARE, at_least=1, limits=(45_000, 60_000)),
        _number("share.heartbeat.interval.ms", 5_000, _SHARE, at_least=1, limits=(5_000, 15_000)),
        _number(
            "share.record.lock.duration.ms", 30_000, _SHARE, at_least=1_000, limits=(15_000, 60_000)
        ),
        _number("share.delivery.count.limit", 5, _SHARE, at_least=2, limits=(2, 10)),
        _number(
            "share.partition.max.record.locks", 2_000, _SHARE, at_least=100, limits=(100, 4_000)
        ),
        _key("share.auto.offset.reset", ConfigType.STRING, "latest", _SHARE, OffsetReset()),
        _key(
            "share.isolation.level", ConfigType.STRING, "read_uncommitted", _SHARE,
            ValidString(("read_committed", "read_uncommitted")),
        ),
        _key("share.renew.acknowledge.enable", ConfigType.BOOLEAN, "true", _SHARE, None),
        _number("share.assignment.interval.ms", 1_000, _SHARE, at_least=0, limits=(0, 15_000)),
        _number(
            "streams.session.timeout.ms", 45_000, _STREAMS, at_least=1, limits=(45_000, 60_000)
        ),
        _number(
            "streams.heartbeat.interval.ms", 5_000, _STREAMS, at_least=1, limits=(5_000, 15_000)
        ),
        _number("streams.num.standby.replicas", 0, _STREAMS, at_least=0, limits=(2,)),
        _number("streams.initial.rebalance.delay.ms", 3_000, _STREAMS, at_least=0),
        _number("streams.assignment.interval.ms", 1_000, _STREAMS, at_least=0, limits=(0, 15_000)),
    )
}  # fmt: skip

# In the order in which Kafka checks them against the broker's limits.
_LIMITED: Final = (
    HEARTBEAT_INTERVAL,
    SESSION_TIMEOUT,
    ASSIGNMENT_INTERVAL,
    "share.heartbeat.interval.ms",
    "share.session.timeout.ms",
    "share.record.lock.duration.ms",
    "share.delivery.count.limit",
    "share.partition.max.record.locks",
    "share.assignment.interval.ms",
    "streams.heartbeat.interval.ms",
    "streams.session.timeout.ms",
    "streams.num.standby.replicas",
    "streams.assignment.interval.ms",
)


class GroupConfigEntry(Struct, frozen=True):
    """A value as it is shown, and its synonyms, the strongest first: (name, text, source)."""

    key: GroupConfigKey
    text: str | None
    synonyms: tuple[ConfigSynonym, ...]


class CappedConfig(NamedTuple):
    """A value outside of the broker's limits, and the one that counts."""

    name: str
    value: int
    in_effect: int


class GroupConfigRules:
    """Checks and resolves group configs against one broker's properties."""

    def __init__(self, static: Mapping[str, str]) -> None:
        """`static`: the keys of the broker's static configuration that are set."""
        self.use(BrokerProperties(static))

    def use(self, properties: BrokerProperties) -> None:
        """Check and resolve against these from now on."""
        self._levels = properties
        self._properties = properties.in_effect

    def validate(self, configs: Mapping[str, str]) -> None:
        """All configs of one group. Raises ConfigException, with Kafka's message."""
        for name in configs:
            if name not in GROUP_CONFIG_KEYS:
                raise ConfigException(f"Unknown group config name: {name}")
        values = {
            name: key.parse(configs[name])
            for name, key in GROUP_CONFIG_KEYS.items()
            if name in configs
        }
        for name in _LIMITED:
            if name in values:
                self._check_limits(GROUP_CONFIG_KEYS[name], values[name])
        for kind in ("consumer", "share", "streams"):
            session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
            if self._value(session, values) <= self._value(heartbeat, values):
                raise ConfigException(f"{session} must be greater than {heartbeat}")

    def in_effect(self, name: str, configs: Mapping[str, str]) -> int:
        """A number of a group with these configs, within the broker's limits."""
        key = GROUP_CONFIG_KEYS[name]
        text = configs.get(name)
        return self._broker_value(key) if text is None else self._capped(key, text)

    def capped(self, configs: Mapping[str, str]) -> Iterator[CappedConfig]:
        """The values that are outside of the broker's limits. Raises ConfigException."""
        for name, key in GROUP_CONFIG_KEYS.items():
            if name in configs and key.limits:
                value, in_effect = _integer(key, configs[name]), self._capped(key, configs[name])
                if value != in_effect:
                    yield CappedConfig(name, value, in_effect)

    def entries(self, configs: Mapping[str, str]) -> Iterator[GroupConfigEntry]:
        """Every key with its value."""
        for name, key in GROUP_CONFIG_KEYS.items():
            synonyms: list[ConfigSynonym] = []
            if name in configs:
                text = convert_to_string(key.parse(configs[name]))
                synonyms.append(ConfigSynonym(name, text, ConfigSource.GROUP_CONFIG))
            if key.synonym is not None:
                synonyms += self._levels.synonyms((key.synonym,))
            source = ConfigSource.DEFAULT_CONFIG
            synonyms.append(ConfigSynonym(key.synonym or name, key.default, source))
            yield GroupConfigEntry(key, synonyms[0].text, tuple(synonyms))

    def _check_limits(self, key: GroupConfigKey, value: ConfigValue) -> None:
        assert isinstance(value, int)
        if key.least is not None and value < self._limit(key.least):
            raise ConfigException(f"{key.name} must be greater than or equal to {key.least[0]}")
        if key.most is not None and value > self._limit(key.most):
            raise ConfigException(f"{key.name} must be less than or equal to {key.most[0]}")

    def _value(self, name: str, values: Mapping[str, ConfigValue]) -> int:
        value = values.get(name, self._broker_value(GROUP_CONFIG_KEYS[name]))
        assert isinstance(value, int)
        return value

    def _broker_value(self, key: GroupConfigKey) -> int:
        return int(self._properties.get(key.synonym or "", key.default))

    def _limit(self, limit: tuple[str, int]) -> int:
        name, default = limit
        return int(self._properties.get(name, default))

    def _capped(self, key: GroupConfigKey, text: str) -> int:
        value = _integer(key, text)
        if key.most is not None:
            value = min(value, self._limit(key.most))
        if key.least is not None:
            value = max(value, self._limit(key.least))
        return value


def _integer(key: GroupConfigKey, text: str) -> int:
    value = key.parse(text)
    assert isinstance(value, int)
    return value
