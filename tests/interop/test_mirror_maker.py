"""MirrorMaker 2: copies between a Kafka and a Rollcall in both directions."""

from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from tests.broker.daemon import Daemon
from tests.interop.kafka_apps import (
    LONG_ONLY,
    MIRROR_MAKER,
    App,
    Reader,
    given_server,
    produce,
    running,
    wait_until,
)
from tests.interop.kafka_broker import kafka_broker
from tests.interop.kafka_tools import require_kafka_tools

pytestmark = LONG_ONLY

EXTRA = (
    "replication.factor = 1\n"
    "checkpoints.topic.replication.factor = 1\n"
    "heartbeats.topic.replication.factor = 1\n"
    "offset-syncs.topic.replication.factor = 1\n"
    "offset.storage.replication.factor = 1\n"
    "status.storage.replication.factor = 1\n"
    "config.storage.replication.factor = 1\n"
    # The defaults are made for clusters that run for years.
    "refresh.topics.interval.seconds = 2\n"
    "refresh.groups.interval.seconds = 2\n"
    "sync.topic.configs.interval.seconds = 2\n"
    "emit.checkpoints.interval.seconds = 2\n"
    "sync.group.offsets.enabled = true\n"
    "sync.group.offsets.interval.seconds = 2\n"
    "offset.lag.max = 0\n"
)

NO_GROUP_YET = "Error querying for consumer group group-of-"
"""A checkpoint task describes a group at the target before it has written offsets there."""


def test_topics_configs_and_offsets_both_ways(tmp_path: Path) -> None:
    tools = require_kafka_tools()
    with (
        kafka_broker(tools, tmp_path / "other") as kafka,
        given_server(tmp_path, {}) as server,
    ):
        clusters = {"kafka": kafka.bootstrap, "rollcall": server.bootstrap}
        config = tmp_path / "mm2.properties"
        config.write_text(
            "clusters = kafka, rollcall\n"
            + "".join(f"{name}.bootstrap.servers = {at}\n" for name, at in clusters.items())
            + "kafka->rollcall.enabled = true\nrollcall->kafka.enabled = true\n"
            + EXTRA
        )
        app = App(MIRROR_MAKER, tmp_path / "mm2.log", config)
        messages = {name: [f"{name} {n}" for n in range(50)] for name in clusters}
        for name, bootstrap in clusters.items():
            given_topic(bootstrap, f"orders-of-{name}")
            produce(bootstrap, f"orders-of-{name}", *messages[name])
            commit_end(bootstrap, f"orders-of-{name}", f"group-of-{name}")
        with running(app):
            for origin, target in (("kafka", "rollcall"), ("rollcall", "kafka")):
                bootstrap, topic = clusters[target], f"{origin}.orders-of-{origin}"
                admin = AdminClient({"bootstrap.servers": bootstrap})
                wait_until(
                    f"{topic} at {target}",
                    lambda a=admin, t=topic: t in a.list_topics(timeout=30).topics,
                    app,
                )
                reader = Reader(bootstrap, topic)
                wait_until(
                    f"the records of {topic}",
                    lambda r=reader, o=origin: sorted(r.values()) == sorted(messages[o]),
                    app,
                )
                reader.close()
                wait_until(
                    f"the configs of {topic}",
                    lambda a=admin, t=topic: described(a, t) == "7654321",
                    app,
                )
                group = f"group-of-{origin}"
                wait_until(
                    f"the offsets of {group} at {target}",
                    lambda b=bootstrap, g=group, t=topic: committed(b, g, t) > 0,
                    app,
                )
            # While it runs: one that is stopped may be in the middle of a call.
            warnings = app.warnings()
        if isinstance(server, Daemon):
            assert "Traceback" not in server.log()
        errors = [line for line in warnings if " ERROR " in line and NO_GROUP_YET not in line]
        assert not errors, errors[:10]


def given_topic(bootstrap: str, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = NewTopic(name, num_partitions=1, config={"retention.ms": "7654321"})
    admin.create_topics([new])[name].result(60)


def described(admin: AdminClient, topic: str) -> str | None:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    entry = admin.describe_configs([resource])[resource].result(60)["retention.ms"]
    value = entry.value
    return None if value is None else str(value)


def commit_end(bootstrap: str, topic: str, group: str) -> None:
    """Retried: a Kafka makes its offsets topic for the first group."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)

    def is_committed() -> bool:
        try:
            consumer.commit(offsets=[TopicPartition(topic, 0, end)], asynchronous=False)
        except KafkaException as failed:
            if failed.args[0].code() != KafkaError.NOT_COORDINATOR:
                raise
            return False
        return True

    wait_until(f"the commit of {group}", is_committed)
    consumer.close()


def committed(bootstrap: str, group: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=30)
    consumer.close()
    return int(found.offset)
