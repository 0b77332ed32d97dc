"""Topic configs: the keys that a topic may set, and the values in effect.

A topic's value is its own, or the broker's by one of the key's synonyms, or Kafka's default.
`TopicConfigs` resolves the configs of one topic: the values in effect (`effective`), and their
sources for DescribeConfigs and CreateTopics. Configs without use in Rollcall (tiered storage,
replication throttles) are kept and shown, as by a Kafka of one node without tiered storage.
Kafka's counterpart: `LogConfig`, `ServerTopicConfigSynonyms`, `KafkaConfigSchema`.
"""

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from protocol.config_def import (
    ConfigException,
    ConfigKey,
    ConfigType,
    ConfigValue,
    Range,
    Validator,
    ValidList,
    ValidString,
    convert_to_string,
    reject_value,
)
from protocol.java_text import LONG_MAX, trim
from protocol.names import ConfigSource
from storage.api import LogSettings
from topics.broker_properties import BrokerProperties, ConfigSynonym

MAX_VALUE_LENGTH: Final = 32_767
INTERNAL_SEGMENT_BYTES: Final = "internal.segment.bytes"

_HOUR_MS: Final = 3_600_000
_MINUTE_MS: Final = 60_000
_DAY_MS: Final = 86_400_000


class Synonym(Struct, frozen=True):
    """A broker's key that sets a topic's default; `factor` converts its unit to the topic's."""

    name: str
    factor: int = 1

    def converted(self, text: str) -> str:
        """The broker's value in the unit of the topic's key."""
        return text if self.factor == 1 else str(int(text) * self.factor)

    def unconverted(self, text: str) -> str:
        return text if self.factor == 1 else str(int(text) // self.factor)


class ThrottledReplicaList(Struct, frozen=True):
    """For the two throttles of replication: `*`, or pairs of partition and broker."""

    def ensure_valid(self, name: str, value: ConfigValue) -> None:
        assert isinstance(value, tuple), "a list"
        replicas = map(trim, value)
        if value != ("*",) and not all(re.fullmatch(r"([0-9]+:[0-9]+)?", r) for r in replicas):
            reject_value(name, value, f"{name} must be the literal '*' or {self}")

    def __str__(self) -> str:
        return (
            "a list of replicas in the following format: "
            "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        )


class TopicConfigKey(ConfigKey, frozen=True):
    default: str | None
    synonyms: tuple[Synonym, ...] = ()
    internal: bool = False  # shown only if it is set


def _key(
    name: str,
    config_type: ConfigType,
    default: str | int | None,
    documentation: str,
    *synonyms: str | Synonym,
    validator: Validator | None = None,
    internal: bool = False,
) -> TopicConfigKey:
    return TopicConfigKey(
        name,
        config_type,
        documentation,
        validator,
        None if default is None else str(default),
        tuple(s if isinstance(s, Synonym) else Synonym(s) for s in synonyms),
        internal,
    )


_T = ConfigType

# In the order of Kafka's declarations: of two invalid values the first one is reported.
KEYS: Final[Mapping[str, TopicConfigKey]] = {
    key.name: key
    for key in (
        _key(
            "segment.bytes", _T.INT, 1_073_741_824,
            "Size at which a file of the log is closed and a new one begun.",
            "log.segment.bytes", validator=Range(1_048_576),
        ),
        _key(
            "segment.ms", _T.LONG, 7 * _DAY_MS,
            "Age at which a file of the log is closed even though it is not full.",
            "log.roll.ms", Synonym("log.roll.hours", _HOUR_MS), validator=Range(1),
        ),
        _key(
            "segment.jitter.ms", _T.LONG, 0,
            "At most this much earlier than segment.ms, at random, a file is closed.",
            "log.roll.jitter.ms", Synonym("log.roll.jitter.hours", _HOUR_MS), validator=Range(0),
        ),
        _key(
            "segment.index.bytes", _T.INT, 10_485_760,
            "Largest index of a file; a full index closes its file.",
            "log.index.size.max.bytes", validator=Range(4),
        ),
        _key(
            "flush.messages", _T.LONG, LONG_MAX,
            "After so many records the log is fsynced before the producer is answered.",
            "log.flush.interval.messages", validator=Range(1),
        ),
        _key(
            "flush.ms", _T.LONG, LONG_MAX,
            "The log is fsynced once records have waited for so long.",
            "log.flush.interval.ms", "log.flush.scheduler.interval.ms", validator=Range(0),
        ),
        _key(
            "retention.bytes", _T.LONG, -1,
            "Size of a partition beyond which its oldest files are deleted; -1: no limit.",
            "log.retention.bytes",
        ),
        _key(
            "retention.ms", _T.LONG, 7 * _DAY_MS,
            "Age at which records may be deleted, by whole files; -1: never.",
            "log.retention.ms", Synonym("log.retention.minutes", _MINUTE_MS),
            Synonym("log.retention.hours", _HOUR_MS), validator=Range(-1),
        ),
        _key(
            "max.message.bytes", _T.INT, 1_048_588,
            "Largest record batch that is taken, as it comes from the producer.",
            "message.max.bytes", validator=Range(0),
        ),
        _key(
            "index.interval.bytes", _T.INT, 4_096,
            "Bytes of a file between two entries of its index.",
            "log.index.interval.bytes", validator=Range(0),
        ),
        _key(
            "delete.retention.ms", _T.LONG, _DAY_MS,
            "How long compaction keeps tombstones.",
            "log.cleaner.delete.retention.ms", validator=Range(0),
        ),
        _key(
            "min.compaction.lag.ms", _T.LONG, 0,
            "A record is not compacted before it has this age.",
            "log.cleaner.min.compaction.lag.ms", validator=Range(0),
        ),
        _key(
            "max.compaction.lag.ms", _T.LONG, LONG_MAX,
            "A record is not kept from compaction beyond this age.",
            "log.cleaner.max.compaction.lag.ms", validator=Range(1),
        ),
        _key(
            "file.delete.delay.ms", _T.LONG, 60_000,
            "A file that compaction has replaced leaves the disk after so long; others at once.",
            "log.segment.delete.delay.ms", validator=Range(0),
        ),
        _key(
            "min.cleanable.dirty.ratio", _T.DOUBLE, "0.5",
            "Share of uncompacted bytes from which a log is worth compacting.",
            "log.cleaner.min.cleanable.ratio", validator=Range(0, 1),
        ),
        _key(
            "cleanup.policy", _T.LIST, "delete",
            "What happens to old records: delete, compact, both, or nothing when empty.",
            "log.cleanup.policy", validator=ValidList(("compact", "delete")),
        ),
        _key(
            "unclean.leader.election.enable", _T.BOOLEAN, "false",
            "Kept for Kafka's tools; one node elects nobody.",
            "unclean.leader.election.enable",
        ),
        _key(
            "min.insync.replicas", _T.INT, 1,
            "Copies that acks=all waits for, at most as many as there are: one.",
            "min.insync.replicas", validator=Range(1),
        ),
        _key(
            "compression.type", _T.STRING, "producer",
            "Compression of stored batches; producer keeps each batch as it came.",
            "compression.type",
            validator=ValidString(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
        ),
        _key(
            "compression.gzip.level", _T.INT, -1, "Level used where compression.type is gzip.",
            "compression.gzip.level", validator=Range(1, 9, -1),
        ),
        _key(
            "compression.lz4.level", _T.INT, 9, "Level used where compression.type is lz4.",
            "compression.lz4.level", validator=Range(1, 17),
        ),
        _key(
            "compression.zstd.level", _T.INT, 3, "Level used where compression.type is zstd.",
            "compression.zstd.level", validator=Range(-131_072, 22),
        ),
        _key(
            "preallocate", _T.BOOLEAN, "false",
            "Kept for Kafka's tools; files grow as they are written.",
            "log.preallocate",
        ),
        _key(
            "message.timestamp.type", _T.STRING, "CreateTime",
            "Whose time a record bears: its producer's, or that of the append.",
            "log.message.timestamp.type", validator=ValidString(("CreateTime", "LogAppendTime")),
        ),
        _key(
            "message.timestamp.before.max.ms", _T.LONG, LONG_MAX,
            "How far a producer's time may lie in the broker's past.",
            "log.message.timestamp.before.max.ms", validator=Range(0),
        ),
        _key(
            "message.timestamp.after.max.ms", _T.LONG, _HOUR_MS,
            "How far a producer's time may lie in the broker's future.",
            "log.message.timestamp.after.max.ms", validator=Range(0),
        ),
        _key(
            "leader.replication.throttled.replicas", _T.LIST, "",
            "Kept for Kafka's tools; one node replicates nothing.",
            validator=ThrottledReplicaList(),
        ),
        _key(
            "follower.replication.throttled.replicas", _T.LIST, "",
            "Kept for Kafka's tools; one node replicates nothing.",
            validator=ThrottledReplicaList(),
        ),
        _key(
            "remote.storage.enable", _T.BOOLEAN, "false",
            "Tiered storage is not served: only false is taken.",
        ),
        _key(
            "local.retention.ms", _T.LONG, -2,
            "Kept for Kafka's tools; -2 stands for retention.ms.",
            "log.local.retention.ms", validator=Range(-2),
        ),
        _key(
            "local.retention.bytes", _T.LONG, -2,
            "Kept for Kafka's tools; -2 stands for retention.bytes.",
            "log.local.retention.bytes", validator=Range(-2),
        ),
        _key(
            "remote.log.copy.disable", _T.BOOLEAN, "false",
            "Kept for Kafka's tools; tiered storage is not served.",
        ),
        _key(
            "remote.log.delete.on.disable", _T.BOOLEAN, "false",
            "Kept for Kafka's tools; tiered storage is not served.",
        ),
        _key(
            INTERNAL_SEGMENT_BYTES, _T.INT, None,
            "Beats segment.bytes and may be smaller: for tests.", internal=True,
        ),
    )
}  # fmt: skip


class EffectiveConfig(Struct, frozen=True):
    """The values in effect, typed."""

    max_message_bytes: int
    segment_bytes: int
    compact: bool
    log_append_time: bool
    timestamp_before_max_ms: int
    timestamp_after_max_ms: int
    flush_messages: int
    flush_ms: int | None
    compression_type: str
    compression_level: int | None
    log: LogSettings


class ConfigEntry(Struct, frozen=True):
    """A value and its source."""

    key: TopicConfigKey
    text: str
    source: ConfigSource


class TopicConfigs:
    """Reads and resolves topic configs against one broker's properties."""

    def __init__(self, static: Mapping[str, str]) -> None:
        """`static`: the keys of the broker's static configuration that are set."""
        self.use(BrokerProperties(static))

    def use(self, properties: BrokerProperties) -> None:
        """Resolve against these from now on."""
        self._properties = properties
        in_effect = properties.in_effect
        self._defaults = {
            key.name: self._broker_value(key, in_effect)
            for key in KEYS.values()
            if not key.internal
        }

    def validate(self, overrides: Mapping[str, str]) -> None:
        """Raises ConfigException, with Kafka's message, for what Kafka refuses."""
        for name in overrides:
            if name not in KEYS:
                raise ConfigException(f"Unknown topic config name: {name}")
        if any(len(text) > MAX_VALUE_LENGTH for text in overrides.values()):
            raise ConfigException(
                "The configuration value cannot be added because it exceeds the maximum value "
                f"size of {MAX_VALUE_LENGTH} bytes."
            )
        values = self._values(overrides)
        least, most = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
        assert isinstance(least, int)
        assert isinstance(most, int)
        if least > most:
            raise ConfigException(
                f"conflict topic config setting min.compaction.lag.ms ({least}) > "
                f"max.compaction.lag.ms ({most})"
            )
        if values["remote.storage.enable"]:
            raise ConfigException(
                "Tiered Storage functionality is disabled in the broker. "
                "Topic cannot be configured with remote log storage."
            )

    def effective(self, overrides: Mapping[str, str]) -> EffectiveConfig:
        """The values in effect for a topic with these configs of its own, validated before."""
        return _effective(self._values(overrides))

    def entries(self, overrides: Mapping[str, str]) -> list[ConfigEntry]:
        """Every key with its value, by name."""
        found = []
        for name in sorted(KEYS):
            key = KEYS[name]
            if name in overrides:
                found.append(ConfigEntry(key, overrides[name], ConfigSource.TOPIC_CONFIG))
            elif not key.internal:
                found.append(ConfigEntry(key, *self._defaults[name]))
        return found

    def broker_synonyms(self, key: TopicConfigKey) -> list[ConfigSynonym]:
        """The broker's keys behind a topic's, the strongest first.

        As in Kafka, those before the first synonym are left out, so a value that only
        `log.retention.hours` sets has no synonym at all.
        """
        if not key.synonyms or key.default is None:
            return []
        found = list(self._properties.synonyms([synonym.name for synonym in key.synonyms]))
        coarsest = key.synonyms[-1]  # it has a default; the finer ones have none
        default = coarsest.unconverted(key.default)
        found.append(ConfigSynonym(coarsest.name, default, ConfigSource.DEFAULT_CONFIG))
        while found and found[0].name != key.synonyms[0].name:
            found.pop(0)
        return found

    def _values(self, overrides: Mapping[str, str]) -> dict[str, ConfigValue]:
        values: dict[str, ConfigValue] = {}
        for name, key in KEYS.items():
            text = overrides.get(name)
            if text is None and not key.internal:
                text = self._defaults[name][0]
            if text is not None:
                values[name] = key.parse(text)
        return values

    def _broker_value(
        self, key: TopicConfigKey, in_effect: Mapping[str, str]
    ) -> tuple[str, ConfigSource]:
        for synonym in key.synonyms:
            if synonym.name in in_effect:
                text = synonym.converted(in_effect[synonym.name])
                if key.name == "retention.ms" and int(text) < 0:
                    text = "-1"
                return text, self._properties.source(synonym.name)
        assert key.default is not None
        return key.default, ConfigSource.DEFAULT_CONFIG


def displayed_value(entry: ConfigEntry) -> str:
    """A value as DescribeConfigs shows it: parsed and written, so that ` 5` is `5`."""
    return convert_to_string(entry.key.parse(entry.text))


def _effective(values: Mapping[str, ConfigValue]) -> EffectiveConfig:
    def number(name: str) -> int:
        value = values[name]
        assert isinstance(value, int)
        return value

    policy = values["cleanup.policy"]
    assert isinstance(policy, tuple)
    compact = "compact" in policy
    compression_type = str(values["compression.type"])
    level = f"compression.{compression_type}.level"
    segment_bytes = number(
        INTERNAL_SEGMENT_BYTES if INTERNAL_SEGMENT_BYTES in values else "segment.bytes"
    )
    segment_ms = number("segment.ms")
    if compact:
        # The active segment is not compacted, so the lag limits its age too.
        segment_ms = min(segment_ms, number("max.compaction.lag.ms"))
    flush_ms = number("flush.ms")
    return EffectiveConfig(
        max_message_bytes=number("max.message.bytes"),
        segment_bytes=segment_bytes,
        compact=compact,
        log_append_time=values["message.timestamp.type"] == "LogAppendTime",
        timestamp_before_max_ms=number("message.timestamp.before.max.ms"),
        timestamp_after_max_ms=number("message.timestamp.after.max.ms"),
        flush_messages=number("flush.messages"),
        flush_ms=None if flush_ms == LONG_MAX else flush_ms,
        compression_type=compression_type,
        compression_level=number(level) if level in values else None,
        log=LogSettings(
            segment_bytes=segment_bytes,
            segment_ms=segment_ms,
            segment_jitter_ms=number("segment.jitter.ms"),
            segment_index_bytes=number("segment.index.bytes"),
            index_interval_bytes=number("index.interval.bytes"),
            retention_ms=number("retention.ms"),
            retention_bytes=number("retention.bytes"),
            cleanup_delete="delete" in policy,
            cleanup_compact=compact,
            min_cleanable_dirty_ratio=_ratio(values["min.cleanable.dirty.ratio"]),
            min_compaction_lag_ms=number("min.compaction.lag.ms"),
            max_compaction_lag_ms=number("max.compaction.lag.ms"),
            delete_retention_ms=number("delete.retention.ms"),
            file_delete_delay_ms=number("file.delete.delay.ms"),
        ),
    )


def _ratio(value: ConfigValue) -> float:
    assert isinstance(value, float)
    return value
