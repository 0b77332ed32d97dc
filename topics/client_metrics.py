"""Client metrics subscriptions: their keys and checks.

A subscription says which clients report which metrics. Rollcall stores and shows subscriptions, as
a Kafka without a telemetry reporter; no client is asked for metrics.
Kafka's counterpart: `ClientMetricsConfigs`.
"""

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from protocol.config_def import ConfigException, ConfigType, convert_to_string, parse_type
from protocol.java_text import split_list, trim
from protocol.names import ConfigSource
from topics.broker_properties import ConfigSynonym

CLIENT_METRICS_SUBSCRIPTIONS_MAX: Final = 1_000
"""Their file is written as a whole at each change. Each client asks for all that match it."""

INTERVAL_MS_MIN: Final = 100
INTERVAL_MS_MAX: Final = 3_600_000


class UnknownSubscriptionConfig(ValueError):
    """What Kafka answers with INVALID_REQUEST instead of INVALID_CONFIG."""


class SubscriptionKey(Struct, frozen=True):
    name: str
    type: ConfigType
    default: str


_INTERVAL: Final = SubscriptionKey("interval.ms", ConfigType.INT, "300000")
_MATCH: Final = SubscriptionKey("match", ConfigType.LIST, "")
_METRICS: Final = SubscriptionKey("metrics", ConfigType.LIST, "")

CLIENT_METRICS_KEYS: Final[Mapping[str, SubscriptionKey]] = {
    key.name: key for key in (_INTERVAL, _MATCH, _METRICS)
}

_SELECTORS: Final = frozenset(
    (
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    )
)


class SubscriptionEntry(Struct, frozen=True):
    """A value as it is shown."""

    key: SubscriptionKey
    text: str
    synonyms: tuple[ConfigSynonym, ...]


def validate_subscription(configs: Mapping[str, str]) -> None:
    """All configs of one subscription. Raises ConfigException, UnknownSubscriptionConfig."""
    for name in configs:
        if name not in CLIENT_METRICS_KEYS:
            raise UnknownSubscriptionConfig(f"Unknown client metrics configuration: {name}")
    if _INTERVAL.name in configs:
        interval = parse_type(_INTERVAL.name, configs[_INTERVAL.name], _INTERVAL.type)
        assert isinstance(interval, int)
        if not INTERVAL_MS_MIN <= interval <= INTERVAL_MS_MAX:
            raise UnknownSubscriptionConfig(
                f"Invalid value {interval} for {_INTERVAL.name}, interval must be between "
                f"{INTERVAL_MS_MIN} and {INTERVAL_MS_MAX} (1 hour)"
            )
    for pattern in split_list(configs.get(_MATCH.name, "")):
        if not _is_selector(pattern):
            raise ConfigException(f"Illegal client matching pattern: {pattern}")


def subscription_entries(configs: Mapping[str, str]) -> list[SubscriptionEntry]:
    """Every key with its value; a default has no synonyms."""
    found = []
    for name, key in CLIENT_METRICS_KEYS.items():
        if name not in configs:
            found.append(SubscriptionEntry(key, key.default, ()))
            continue
        text = convert_to_string(parse_type(name, configs[name], key.type))
        synonym = ConfigSynonym(name, text, ConfigSource.CLIENT_METRICS_CONFIG)
        found.append(SubscriptionEntry(key, text, (synonym,)))
    return found


def _is_selector(pattern: str) -> bool:
    """`name=expression`. Kafka compiles expressions by Java's rules, which differ in details."""
    name, equals, expression = pattern.partition("=")
    if not equals or trim(name) not in _SELECTORS:
        return False
    try:
        re.compile(trim(expression))
    except (re.error, RecursionError, OverflowError):
        return False
    return True
