"""IncrementalAlterConfigs, AlterConfigs, DescribeConfigs: a broker's dynamic configs, its loggers.

The scenarios of the profile are played side by side: each changes keys of its own.
"""

from tests.compare.scenarios.group_configs import (
    APPEND,
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    DELETE,
    SET,
    SUBTRACT,
    TOPIC,
    alter,
    describe,
    replace_all,
)
from tests.compare.script import Script, scenario

PROFILE = "broker configs"


@scenario(PROFILE)
def a_broker_is_given_configs_in_every_version(script: Script) -> None:
    a = script.client("a")
    key = "log.cleaner.backoff.ms"
    describe(script, a, BROKER, "1", key)
    for version in (0, 1):
        alter(a, (BROKER, "", [(key, SET, f"1400{version}")]), version=version)
        describe(script, a, BROKER, "", key)
        alter(a, (BROKER, "1", [(key, SET, f"1300{version}")]), version=version)
        describe(script, a, BROKER, "1", key)
    alter(a, (BROKER, "1", [(key, SET, "1")]), validate_only=True)
    alter(a, (BROKER, "", [(key, DELETE, None)]))
    describe(script, a, BROKER, "1", key)
    alter(a, (BROKER, "1", [(key, DELETE, None)]))
    describe(script, a, BROKER, "1", key)


@scenario(PROFILE)
def broker_configs_show_in_topics(script: Script) -> None:
    a = script.client("a")
    topic = script.topic()
    own = script.topic("own", retention_ms="60000")
    keys = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
    for name, edit in (
        ("", ("log.retention.ms", SET, "777000")),
        ("1", ("log.retention.ms", SET, "888000")),
        ("1", ("log.retention.ms", DELETE, None)),
        ("", ("log.retention.ms", SET, "-7")),
        ("", ("log.retention.ms", DELETE, None)),
    ):
        alter(a, (BROKER, name, [edit]))
        describe(script, a, BROKER, "1", *keys)
        describe(script, a, BROKER, "", *keys)
        describe(script, a, TOPIC, topic, "retention.ms")
        describe(script, a, TOPIC, own, "retention.ms")


@scenario(PROFILE)
def other_broker_configs_show_in_topics(script: Script) -> None:
    a = script.client("a")
    topic = script.topic()
    for key, of_topic, value in (
        ("message.max.bytes", "max.message.bytes", "2000000"),
        ("log.segment.bytes", "segment.bytes", "2097152"),
        ("log.roll.ms", "segment.ms", "100000"),
        ("log.roll.jitter.ms", "segment.jitter.ms", "17"),
        ("log.cleanup.policy", "cleanup.policy", "compact,delete"),
        ("log.cleaner.delete.retention.ms", "delete.retention.ms", "17"),
        ("log.index.interval.bytes", "index.interval.bytes", "1700"),
        ("log.index.size.max.bytes", "segment.index.bytes", "170000"),
        ("log.flush.interval.messages", "flush.messages", "17"),
        ("log.flush.interval.ms", "flush.ms", "17"),
        ("log.segment.delete.delay.ms", "file.delete.delay.ms", "17"),
        ("log.cleaner.min.cleanable.ratio", "min.cleanable.dirty.ratio", "0.25"),
        ("log.cleaner.min.compaction.lag.ms", "min.compaction.lag.ms", "17"),
        ("log.cleaner.max.compaction.lag.ms", "max.compaction.lag.ms", "1700"),
        ("log.message.timestamp.type", "message.timestamp.type", "LogAppendTime"),
        ("log.message.timestamp.before.max.ms", "message.timestamp.before.max.ms", "17"),
        ("log.message.timestamp.after.max.ms", "message.timestamp.after.max.ms", "17"),
        ("log.retention.bytes", "retention.bytes", "1700"),
        ("compression.type", "compression.type", "zstd"),
        ("compression.gzip.level", "compression.gzip.level", "4"),
        ("compression.lz4.level", "compression.lz4.level", "4"),
        ("compression.zstd.level", "compression.zstd.level", "4"),
    ):
        alter(a, (BROKER, "1", [(key, SET, value)]))
        describe(script, a, BROKER, "1", key)
        describe(script, a, TOPIC, topic, of_topic)
        alter(a, (BROKER, "1", [(key, DELETE, None)]))
        describe(script, a, BROKER, "1", key)


@scenario(PROFILE)
def broker_configs_without_use_show_in_topics(script: Script) -> None:
    a = script.client("a")
    topic = script.topic()
    for key, of_topic, value in (
        ("log.preallocate", "preallocate", "true"),
        ("log.local.retention.ms", "local.retention.ms", "1"),
        ("log.local.retention.bytes", "local.retention.bytes", "1"),
        ("unclean.leader.election.enable", "unclean.leader.election.enable", "true"),
    ):
        alter(a, (BROKER, "", [(key, SET, value)]))
        describe(script, a, BROKER, "1", key)
        describe(script, a, TOPIC, topic, of_topic)
        alter(a, (BROKER, "", [(key, DELETE, None)]))
        describe(script, a, BROKER, "", key)


@scenario(PROFILE)
def static_configs_of_a_broker_cannot_be_changed(script: Script) -> None:
    a = script.client("a")
    for name in ("", "1"):
        for edits in (
            [("node.id", SET, "2")],
            [("log.retention.hours", SET, "2")],
            [("log.dirs", SET, "/x")],
            [("num.partitions", SET, "3"), ("log.cleaner.io.buffer.size", SET, "x")],
            [("num.partitions", DELETE, None)],
            [("offsets.retention.minutes", SET, "x")],
        ):
            alter(a, (BROKER, name, edits))
    replace_all(a, BROKER, "1", ("num.partitions", "3"))


@scenario(PROFILE)
def values_of_broker_configs_are_checked(script: Script) -> None:
    a = script.client("a")
    for key, values in (
        ("log.cleaner.dedupe.buffer.size", ("x", "", "-1", "1", "1048576", "9223372036854775808")),
        ("log.retention.bytes", ("x",)),
        ("max.connections", ("-1", "x")),
        ("max.connections.per.ip", ("-1", "0", "100")),
        ("max.connections.per.ip.overrides", ("127.0.0.9:77", "")),
        ("max.connection.creation.rate", ("-1", "100")),
        ("log.segment.bytes", ("100",)),
        ("compression.type", ("brotli",)),
        ("compression.gzip.level", ("0", "10")),
        ("log.cleanup.policy", ("none", "", "compact,compact")),
        ("log.cleaner.min.cleanable.ratio", ("1.1", "x")),
        ("log.cleaner.io.max.bytes.per.second", ("x",)),
        ("log.message.timestamp.type", ("x",)),
        ("log.preallocate", ("x",)),
        ("num.io.threads", ("0", "x")),
        ("num.network.threads", ("0",)),
        ("log.cleaner.threads", ("-1",)),
        ("log.cleaner.io.buffer.size", ("-1",)),
        ("background.threads", ("0",)),
        ("producer.id.expiration.ms", ("0", "x")),
        ("transaction.partition.verification.enable", ("x",)),
        ("group.consumer.assignment.interval.ms", ("-1", "15001", "x")),
        ("log.retention.ms", ("0",)),
        ("log.local.retention.ms", ("-3", "0")),
        ("log.roll.ms", ("0",)),
        ("min.insync.replicas", ("0", "x")),
        ("message.max.bytes", ("-1",)),
    ):
        for value in values:
            alter(a, (BROKER, "1", [(key, SET, value)]), validate_only=True)
            alter(a, (BROKER, "", [(key, SET, value)]), validate_only=True)


@scenario(PROFILE)
def lists_of_broker_configs_grow_and_shrink(script: Script) -> None:
    a = script.client("a")
    key = "metric.reporters"
    for edit in (
        ("log.retention.bytes", APPEND, "1"),
        ("no.such", APPEND, "1"),
        ("no.such", SUBTRACT, "1"),
        (key, SUBTRACT, "x"),
        ("num.partitions", APPEND, "1"),
        ("log.cleanup.policy", 9, "1"),
        ("log.cleanup.policy", SET, None),
    ):
        alter(a, (BROKER, "", [edit]), validate_only=True)
        alter(a, (BROKER, "1", [edit]), validate_only=True)


@scenario(PROFILE)
def unknown_broker_configs_are_stored(script: Script) -> None:
    a = script.client("a")
    alter(a, (BROKER, "", [("no.such.config", SET, "1")]))
    alter(a, (BROKER, "1", [("no.other.config", SET, "2"), ("", SET, "3")]))
    describe(script, a, BROKER, "", "no.such.config", "no.other.config")
    describe(script, a, BROKER, "1", "no.such.config", "no.other.config", "")
    alter(a, (BROKER, "", [("no.such.config", DELETE, None)]))
    alter(a, (BROKER, "1", [("no.other.config", DELETE, None), ("", DELETE, None)]))
    describe(script, a, BROKER, "1", "no.such.config", "no.other.config", "")


@scenario(PROFILE)
def configs_of_one_broker_are_not_for_all(script: Script) -> None:
    a = script.client("a")
    for key, value in (
        ("listeners", "PLAINTEXT://127.0.0.1:1"),
        ("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT"),
        ("ssl.keystore.location", "/x"),
        ("listener.name.plaintext.ssl.keystore.location", "/x"),
        ("listener.name.plaintext.max.connections", "77"),
        ("leader.replication.throttled.rate", "-1"),
        ("leader.replication.throttled.rate", "100"),
    ):
        alter(a, (BROKER, "", [(key, SET, value)]), validate_only=True)
    for key in ("ssl.keystore.location", "listener.name.plaintext.num.io.threads"):
        alter(a, (BROKER, "1", [(key, SET, "/x")]), validate_only=True)


@scenario(PROFILE)
def a_listener_has_limits_of_its_own(script: Script) -> None:
    a = script.client("a")
    bare = "max.connections"
    own, other = f"listener.name.plaintext.{bare}", f"listener.name.nosuch.{bare}"
    alter(a, (BROKER, "", [(own, SET, "1000"), (other, SET, "7")]))
    describe(script, a, BROKER, "", own, other)
    alter(a, (BROKER, "1", [(own, SET, "1001"), (bare, SET, "2000")]))
    describe(script, a, BROKER, "1", own, other, bare)
    alter(a, (BROKER, "1", [(own, DELETE, None), (bare, DELETE, None)]))
    describe(script, a, BROKER, "1", own, other, bare)
    for value in ("-1", "x"):
        alter(a, (BROKER, "1", [(own, SET, value)]))
    alter(a, (BROKER, "", [(own, DELETE, None), (other, DELETE, None)]))


@scenario(PROFILE)
def the_configs_of_a_broker_are_replaced(script: Script) -> None:
    a = script.client("a")
    size, factor = "log.cleaner.io.buffer.size", "log.cleaner.io.buffer.load.factor"
    alter(a, (BROKER, "1", [(size, SET, "600000")]), validate_only=True)
    replace_all(a, BROKER, "1", (size, None), validate_only=True)
    replace_all(a, BROKER, "1", (size, "x"), validate_only=True)
    replace_all(a, BROKER, "2", (size, "600000"), validate_only=True)
    replace_all(a, BROKER, "1", (size, "600000"), (factor, "0.8"), validate_only=True)
    for version in (0, 1, 2):
        replace_all(a, BROKER, "1", (size, "600000"), validate_only=True, version=version)


@scenario(PROFILE)
def levels_of_loggers_are_changed(script: Script) -> None:
    a = script.client("a")
    alter(a, (BROKER_LOGGER, "1", [("root", SET, "INFO")]))
    for edit in (
        ("root", SET, "DEBUG"),
        ("root", SET, "debug"),
        ("root", SET, "LOUD"),
        ("root", SET, "OFF"),
        ("root", SET, ""),
        ("root", SET, None),
        ("root", DELETE, None),
        ("root", APPEND, "INFO"),
        ("root", SUBTRACT, "INFO"),
        ("root", 9, "INFO"),
        ("no.such.logger", SET, "INFO"),
        ("no.such.logger", DELETE, None),
        ("", SET, "INFO"),
    ):
        alter(a, (BROKER_LOGGER, "1", [edit]), validate_only=True)
    for name in ("", "2", "x", "01"):
        alter(a, (BROKER_LOGGER, name, [("root", SET, "INFO")]), validate_only=True)
        describe(script, a, BROKER_LOGGER, name, "root")
    for level in ("DEBUG", "TRACE", "WARN", "ERROR", "FATAL", "INFO"):
        alter(a, (BROKER_LOGGER, "1", [("root", SET, level)]))
        describe(script, a, BROKER_LOGGER, "1", "root")
    replace_all(a, BROKER_LOGGER, "1", ("root", "INFO"))
    describe(script, a, BROKER_LOGGER, "1", "no.such.logger")
    level = (BROKER_LOGGER, "1", [("root", SET, "INFO")])
    alter(a, level, (TOPIC, "nowhere", [("retention.ms", SET, "1")]))


@scenario(PROFILE)
def subscriptions_of_client_metrics_are_stored(script: Script) -> None:
    a = script.client("a")
    g = script.group
    describe(script, a, CLIENT_METRICS, g)
    describe(script, a, CLIENT_METRICS, "")
    for edit in (
        ("interval.ms", SET, "99"),
        ("interval.ms", SET, "3600001"),
        ("interval.ms", SET, "x"),
        ("interval.ms", APPEND, "1"),
        ("no.such", SET, "1"),
        ("no.such", DELETE, None),
        ("match", SET, "client_id"),
        ("match", SET, "client_id=["),
        ("match", SET, "no_such=x"),
        ("match", SET, "client_id=a,client_id=b"),
        ("match", SET, ""),
        ("metrics", SET, ""),
        ("metrics", APPEND, "org.apache.kafka.consumer."),
        ("metrics", SUBTRACT, "x"),
        ("match", SET, " client_id = a.* , client_software_name=x"),
        ("interval.ms", SET, " 1000 "),
        ("interval.ms", 9, "1000"),
    ):
        alter(a, (CLIENT_METRICS, g, [edit]))
    describe(script, a, CLIENT_METRICS, g)
    alter(a, (CLIENT_METRICS, g, [("interval.ms", DELETE, None)]))
    replace_all(a, CLIENT_METRICS, g, ("interval.ms", "2000"))
    describe(script, a, CLIENT_METRICS, g)
    replace_all(a, CLIENT_METRICS, g, ("interval.ms", "1"))
    replace_all(a, CLIENT_METRICS, "", ("interval.ms", "1"))
    alter(a, (CLIENT_METRICS, "", [("interval.ms", SET, "1000")]))
    alter(a, (CLIENT_METRICS, f"{g}.v", [("interval.ms", SET, "1000")]), validate_only=True)
    describe(script, a, CLIENT_METRICS, f"{g}.v")
    replace_all(a, CLIENT_METRICS, g)
    describe(script, a, CLIENT_METRICS, g)
