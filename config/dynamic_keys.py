"""Dynamic keys: which of the broker's keys can be changed while it runs.

Those that Kafka changes and Rollcall has no use for are stored and shown.
Kafka's counterpart: the sets of `DynamicBrokerConfig`.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Final

from config.kafka_names import KafkaName, kafka_names
from config.keys import keys
from protocol.config_def import (
    ConfigKey,
    ConfigType,
    Range,
    Validator,
    ValidList,
    ValidString,
)
from protocol.java_text import LONG_MAX

DYNAMIC_KEYS: Final = frozenset(
    (
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.type",
        "compression.zstd.level",
        "group.consumer.assignment.interval.ms",
        "log.cleaner.backoff.ms",
        "log.cleaner.dedupe.buffer.size",
        "log.cleaner.delete.retention.ms",
        "log.cleaner.io.max.bytes.per.second",
        "log.cleaner.max.compaction.lag.ms",
        "log.cleaner.min.cleanable.ratio",
        "log.cleaner.min.compaction.lag.ms",
        "log.cleanup.policy",
        "log.flush.interval.messages",
        "log.flush.interval.ms",
        "log.index.interval.bytes",
        "log.index.size.max.bytes",
        "log.message.timestamp.after.max.ms",
        "log.message.timestamp.before.max.ms",
        "log.message.timestamp.type",
        "log.retention.bytes",
        "log.retention.ms",
        "log.roll.jitter.ms",
        "log.roll.ms",
        "log.segment.bytes",
        "log.segment.delete.delay.ms",
        "max.connection.creation.rate",
        "max.connections",
        "max.connections.per.ip",
        "max.connections.per.ip.overrides",
        "message.max.bytes",
        "min.insync.replicas",
        "producer.id.expiration.ms",
        "transaction.partition.verification.enable",
    )
)
"""Keys of `config/keys.py` that Kafka changes while it runs. A change takes effect at once."""

STORED_KEYS: Final = frozenset(
    (
        "background.threads",
        "cordoned.log.dirs",
        "follower.fetch.last.tiered.offset.enable",
        "group.coordinator.cached.buffer.max.bytes",
        "group.share.assignment.interval.ms",
        "group.streams.assignment.interval.ms",
        "log.cleaner.io.buffer.load.factor",
        "log.cleaner.io.buffer.size",
        "log.cleaner.threads",
        "log.local.retention.bytes",
        "log.local.retention.ms",
        "log.preallocate",
        "metric.reporters",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.fetchers",
        "remote.fetch.max.wait.ms",
        "remote.list.offsets.request.timeout.ms",
        "remote.log.index.file.cache.total.size.bytes",
        "remote.log.manager.copier.thread.pool.size",
        "remote.log.manager.copy.max.bytes.per.second",
        "remote.log.manager.expiration.thread.pool.size",
        "remote.log.manager.fetch.max.bytes.per.second",
        "remote.log.manager.follower.thread.pool.size",
        "remote.log.reader.threads",
        "share.coordinator.cached.buffer.max.bytes",
        "unclean.leader.election.enable",
    )
)
"""Dynamic keys of Kafka without use here: checked, stored and shown, as in a configuration file."""

QUOTA_KEYS: Final = frozenset(
    (
        "follower.replication.throttled.rate",
        "leader.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    )
)
"""Keys that Kafka takes as dynamic configs only; there are no replicas to throttle."""

LISTENER_KEYS: Final = frozenset(("listeners", "listener.security.protocol.map"))
"""Kafka can open listeners while it runs; here they are static."""

SECURITY_KEYS: Final = frozenset(
    (
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    )
)
"""Kafka takes them for one listener only: `listener.name.NAME.ssl.keystore.location`."""

OF_EACH_LISTENER: Final = frozenset(
    ("max.connection.creation.rate", "max.connections", "num.network.threads")
)
"""Keys that can be set for one listener cluster-wide too."""

LISTENER_PREFIX: Final = re.compile(r"listener\.name\.[^.]*\.(.*)", re.DOTALL)

SYNONYMS: Final[Mapping[str, tuple[str, ...]]] = {
    "log.roll.ms": ("log.roll.ms", "log.roll.hours"),
    "log.roll.jitter.ms": ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    "log.retention.ms": ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    "log.retention.minutes": ("log.retention.minutes", "log.retention.hours"),
}
"""Names of one value, the finest first: DynamicBrokerConfig.brokerConfigSynonyms."""

_TYPES: Final = {
    "boolean": ConfigType.BOOLEAN,
    "string": ConfigType.STRING,
    "int": ConfigType.INT,
    "short": ConfigType.SHORT,
    "long": ConfigType.LONG,
    "double": ConfigType.DOUBLE,
    "list": ConfigType.LIST,
    "class": ConfigType.CLASS,
    "password": ConfigType.PASSWORD,
}

_RANGE: Final = re.compile(r"(-?[0-9]+)\.\.(-?[0-9]+)?(?: or (-?[0-9]+))?")


def synonyms(name: str) -> tuple[str, ...]:
    bare = without_listener(name)
    return (name, bare) if bare != name else SYNONYMS.get(name, (name,))


def without_listener(name: str) -> str:
    """The key behind `listener.name.NAME.`."""
    match = LISTENER_PREFIX.fullmatch(name)
    return match[1] if match else name


def default_text(name: str) -> str | None:
    """Kafka's default of a stored key as text; None without one."""
    known = kafka_names("broker").get(name)
    return None if known is None else known.default


@cache
def stored_key(name: str) -> ConfigKey | None:
    """How the value of a stored key is read."""
    if name in QUOTA_KEYS:
        return ConfigKey(name, ConfigType.LONG, "", Range(0, LONG_MAX))
    if name in STORED_KEYS:
        known = kafka_names("broker")[name]
        return ConfigKey(name, _TYPES[known.kind], "", _validator(known))
    return None


def dynamic_key(name: str) -> ConfigKey | None:
    """The key, if it may be set while the broker runs."""
    return keys()[name] if name in DYNAMIC_KEYS else stored_key(name)


def is_static(name: str) -> bool:
    """Whether Kafka or Rollcall has the key, and cannot change it while it runs."""
    is_known = name in keys() or name in kafka_names("broker")
    return is_known and not _is_dynamic_in_kafka(name)


def is_per_broker(name: str) -> bool:
    """Whether Kafka takes the key for one broker only."""
    bare = without_listener(name)
    if bare != name:
        return bare not in OF_EACH_LISTENER
    return bare in LISTENER_KEYS or bare == "cordoned.log.dirs"


def is_store_of_listener(name: str) -> bool:
    """Whether it is a key or trust store of one listener: `listener.name.NAME.ssl.keystore...`."""
    bare = without_listener(name)
    return bare != name and bare in SECURITY_KEYS


def _is_dynamic_in_kafka(name: str) -> bool:
    return (
        name in DYNAMIC_KEYS
        or name in STORED_KEYS
        or name in QUOTA_KEYS
        or name in LISTENER_KEYS
        or name in ("config.providers", "principal.builder.class")
        or name.startswith(("ssl.", "sasl."))
    )


def _validator(known: KafkaName) -> Validator | None:
    match = _RANGE.fullmatch(known.range)
    if match:
        low, high, other = (None if part is None else int(part) for part in match.groups())
        assert low is not None
        return Range(low, high, other)
    words = tuple(known.range.split("|")) if "|" in known.range else ()
    if known.kind == "list":
        return ValidList(words)
    return ValidString(words) if words else None
