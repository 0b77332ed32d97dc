"""Kafka's log ends: a real 4.3.1 is asked, and its directory read: the lag is what Kafka says.

`make long-pipeline-kafka` (PIPELINE_KAFKA=1) runs it.
"""

import os
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from pyspark.sql import SparkSession

from pipeline.job_notes import read_note
from pipeline.jobs import JOBS, JobInput
from pipeline.local.session import LocalSession, local_session
from pipeline.read.sources import PipelineSource
from pipeline.runner import run_job
from pipeline.stream.health_stream import StreamOrder, running_stream
from tests.interop.kafka_broker import KafkaBroker, kafka_broker
from tests.interop.kafka_tools import require_kafka_tools
from tests.pipeline.kafka_connector import require_connector

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.timeout(900),
    pytest.mark.skipif("PIPELINE_KAFKA" not in os.environ, reason="PIPELINE_KAFKA is not set"),
]

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
TOPICS = {"orders": 3, "gone": 1, "secret": 1}


def produce(bootstrap: str, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for n in range(count):
        producer.produce(topic, b"x", partition=n % TOPICS[topic])
    assert producer.flush(60) == 0


def read_all(bootstrap: str, count: int) -> None:
    """As the group `billing`, with a commit after every fifth record; then it ends."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "billing",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(list(TOPICS))
    seen = 0
    while seen < count:
        record = consumer.poll(60)
        assert record is not None
        assert record.error() is None
        seen += 1
        if seen % 5 == 0:
            consumer.commit(asynchronous=False)
    consumer.close()


def a_group_falls_behind(broker: KafkaBroker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    new = [NewTopic(name, count) for name, count in TOPICS.items()]
    for done in admin.create_topics(new).values():
        done.result(60)
    for topic, count in (("orders", 300), ("gone", 10), ("secret", 10)):
        produce(broker.bootstrap, topic, count)
    read_all(broker.bootstrap, 320)
    produce(broker.bootstrap, "orders", 90)
    for done in admin.delete_topics(["gone"]).values():
        done.result(60)
    hidden = AclBinding(
        ResourceType.TOPIC, "secret", ResourcePatternType.LITERAL, "User:ANONYMOUS", "*",
        AclOperation.DESCRIBE, AclPermissionType.DENY,
    )  # fmt: skip
    for done in admin.create_acls([hidden]).values():
        done.result(60)


def health(session: SparkSession | LocalSession, source: str, out: Path) -> tuple[dict, str]:
    """(partitions: lag, what the note says of log ends)"""
    opened = PipelineSource(session, source)
    measured = opened.log_ends()
    assert measured is not None
    job_input = JobInput(opened, 0, measured.sampled_at_ms + 1, keep=True)
    run_job(session, JOBS["group_health"], job_input, str(out))
    run_job(session, JOBS["lag_trend"], job_input, str(out))
    job_input.forget()
    rows = session.read.parquet(f"{out}/partition_health").collect()
    note = read_note(session, str(out), "group_health")
    assert note is not None
    return {(row["topic"], row["partition"]): row["lag"] for row in rows}, note.log_ends


def test_the_lag_of_a_group_at_a_real_kafka(spark: SparkSession, tmp_path: Path) -> None:
    require_connector()
    settings = {
        "authorizer.class.name": AUTHORIZER,
        "allow.everyone.if.no.acl.found": "true",
        "offsets.topic.num.partitions": 3,
    }
    behind = {("orders", partition): 30 for partition in range(3)}
    with kafka_broker(require_kafka_tools(), tmp_path / "kafka", **settings) as broker:
        a_group_falls_behind(broker)
        source = f"kafka://{broker.bootstrap}"

        lags, note = health(spark, source, tmp_path / "asked")
        assert lags == behind
        assert "log ends: broker at " in note
        assert (
            ", 3 partitions; 2 unknown: 1 no right to describe the topic, 1 topic deleted" in note
        )

        produce(broker.bootstrap, "orders", 30)
        with running_stream(spark, StreamOrder(source, str(tmp_path / "streamed"))) as query:
            query.awaitTermination()
        (group,) = spark.read.parquet(str(tmp_path / "streamed" / "group_health")).collect()
        assert (group["group"], group["total_lag"], group["max_lag"]) == ("billing", 120, 40)

        with local_session() as local:
            lags, note = health(local, str(broker.log_dir), tmp_path / "read")
        broker.stop()
        with local_session() as local:
            stopped, _ = health(local, str(broker.log_dir), tmp_path / "stopped")
    # No right is needed to read the files.
    assert lags == dict.fromkeys(behind, 40) | {("secret", 0): 0}
    assert stopped == lags
    assert "log ends: folders at " in note
