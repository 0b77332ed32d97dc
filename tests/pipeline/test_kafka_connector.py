"""Kafka connector: Spark reads from a live daemon what its segments have."""

import time

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

import pipeline.session as session
from pipeline.ingest import ingest
from pipeline.jobs import JOBS, JobInput
from pipeline.lake import Lake
from pipeline.read.broker_log_ends import measure_broker
from pipeline.read.brokers import Broker, NoBroker
from pipeline.read.sources import PipelineSource
from pipeline.tables import COMMITS, TABLES
from protocol.names import LAG_TOPIC
from tests.broker.daemon import Daemon
from tests.pipeline.kafka_connector import require_connector

pytestmark = pytest.mark.xdist_group("spark")

TIMEOUT_S = 60
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "3",
    "rollcall.lag.interval.ms": "1000",
}


@pytest.fixture
def live(start_daemon) -> Daemon:
    """With a topic of two partitions."""
    require_connector()
    daemon = start_daemon(SETTINGS)
    admin = AdminClient({"bootstrap.servers": daemon.bootstrap})
    for done in admin.create_topics([NewTopic("orders", 2)]).values():
        done.result()
    producer = Producer({"bootstrap.servers": daemon.bootstrap})
    for n in range(20):
        producer.produce("orders", b"x", partition=n % 2)
    producer.flush()
    return daemon


def commit(daemon: Daemon, group: str, *offsets: int) -> None:
    consumer = Consumer(
        {"bootstrap.servers": daemon.bootstrap, "group.id": group, "enable.auto.commit": False}
    )
    for offset in offsets:
        places = [TopicPartition("orders", partition, offset) for partition in (0, 1)]
        consumer.commit(offsets=places, asynchronous=False)
    consumer.close()


def a_member_comes_and_goes(daemon: Daemon) -> None:
    consumer = Consumer({"bootstrap.servers": daemon.bootstrap, "group.id": "members"})
    consumer.subscribe(["orders"])
    until(lambda: consumer.poll(0.1) is not None or bool(consumer.assignment()))
    consumer.close()


def until(is_so) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not is_so():
        assert time.monotonic() < deadline


def test_the_connector_and_the_segments_give_the_same_rows(
    spark: SparkSession, live: Daemon
) -> None:
    commit(live, "simple", 1, 2, 3)
    a_member_comes_and_goes(live)
    watcher = Consumer({"bootstrap.servers": live.bootstrap, "group.id": "-"})
    until(lambda: watcher.get_watermark_offsets(TopicPartition(LAG_TOPIC, 0), 10)[1] > 0)
    watcher.close()

    source = PipelineSource(spark, f"kafka://{live.bootstrap}")
    tables = [table for table in TABLES.values() if table.topic is not None]
    brought = {table.name: source.table(table).collect() for table in tables}
    ends = {table.name: source.log(str(table.topic)).ends for table in tables}
    assert live.stop() == 0

    segments = PipelineSource(spark, str(live.data_dir))
    for table in tables:
        log = segments.log(str(table.topic))
        log.ends = ends[table.name]  # the daemon has written on meanwhile
        rows = log.rows(table, {}).collect()
        assert sorted(map(str, brought[table.name])) == sorted(map(str, rows)), table.name
    filled = {name for name, rows in brought.items() if rows}
    assert filled >= {"commits", "group_metadata", "group_events", "lag_samples"}


def test_runs_on_a_broker_take_up_where_the_last_one_ended(
    spark: SparkSession, live: Daemon, tmp_path
) -> None:
    lake, where = Lake(spark, str(tmp_path / "lake")), f"kafka://{live.bootstrap}"

    runs = []
    for offsets in ([1, 2], [], [3]):
        commit(live, "simple", *offsets)
        runs.append(ingest(PipelineSource(spark, where), lake).rows)

    assert [rows["commits"] for rows in runs] == [4, 0, 2]
    assert [rows["undecodable"] for rows in runs] == [0, 0, 0]
    landed = lake.table(COMMITS).select("partition", "committed_offset").collect()
    assert sorted(map(tuple, landed)) == [(p, n) for p in (0, 1) for n in (1, 2, 3)]


def test_a_broker_is_asked_where_the_logs_end(
    spark: SparkSession, live: Daemon, tmp_path, monkeypatch
) -> None:
    """As at a Kafka: without lag samples."""
    has = PipelineSource.has
    monkeypatch.setattr(
        PipelineSource, "has", lambda self, topic: topic != LAG_TOPIC and has(self, topic)
    )
    where, lake = f"kafka://{live.bootstrap}", Lake(spark, str(tmp_path / "lake"))
    commit(live, "simple", 4)
    asked = measure_broker(Broker(spark, where))
    found = asked.of([("orders", 0), ("orders", 1), ("orders", 7), ("gone", 0)])
    assert [row[:2] + row[3:5] + row[6:] for row in found] == [
        ("gone", 0, None, None, "topic deleted"),
        ("orders", 0, 0, 10, None),
        ("orders", 1, 0, 10, None),
        ("orders", 7, None, None, "no such partition"),
    ]

    assert ingest(PipelineSource(spark, where), lake).rows["log_ends"] == 2
    producer = Producer({"bootstrap.servers": live.bootstrap})
    for _ in range(5):
        producer.produce("orders", b"x", partition=0)
    producer.flush()
    assert ingest(PipelineSource(spark, where), lake).rows["log_ends"] == 2

    job_input = JobInput(PipelineSource(spark, lake.path), 0, 1 << 52, keep=True)
    rows = JOBS["group_health"].run(job_input)["group_health"].orderBy("at_ms").collect()
    assert [(row["status"], row["total_lag"], row["max_lag"]) for row in rows] == [
        ("OK", 12, 6),
        ("OK", 17, 11),
    ]
    assert "broker at" in job_input.log_ends_text()
    job_input.forget()
    live.stop()
    broker = Broker(spark, where, {"kafka.default.api.timeout.ms": "1000"})
    (unknown,) = measure_broker(broker).of([("orders", 0)])
    assert unknown.log_end_offset is None
    assert unknown.problem


def test_a_topic_or_a_broker_that_is_not_there(spark: SparkSession, live: Daemon) -> None:
    where = f"kafka://{live.bootstrap}"
    assert not PipelineSource(spark, where).has("__no_such_topic")
    live.stop()

    with pytest.raises(NoBroker, match=live.bootstrap):
        Broker(spark, where, {"kafka.default.api.timeout.ms": "1000"}).extents("orders")


def test_the_connector_is_asked_for_where_nobody_named_jars(tmp_path, monkeypatch) -> None:
    (tmp_path / "jars").mkdir()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert not session.names_jars({"spark.executor.memory": "1g"})
    assert session.names_jars({"spark.jars": "a.jar"})
    (tmp_path / "spark-defaults.conf").write_text("spark.master local\nspark.jars.packages a:b:1\n")
    assert session.names_jars({})
    (tmp_path / "spark-defaults.conf").unlink()
    (tmp_path / "jars" / "spark-sql-kafka-0-10_2.13-4.0.0.jar").touch()
    assert session.names_jars({})
    assert session.connector_coordinates().startswith("org.apache.spark:spark-sql-kafka-0-10_2.13:")
