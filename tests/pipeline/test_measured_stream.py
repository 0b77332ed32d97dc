"""Measured stream: batches at a Kafka, where log ends are asked for; deletions in any stream."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from coordinator.records import offset_commit_key
from history.lag.records import Sample, encode_sample
from history.lag.window import SampledCommit
from pipeline.read.brokers import Broker
from pipeline.read.log_ends import LogEndReading, MeasuredLog
from pipeline.stream.health_stream import (
    STREAM_INTERVAL_MS,
    HealthStream,
    StreamOrder,
    running_stream,
)
from pipeline.stream.state import State
from protocol.names import LAG_TOPIC, OFFSETS_TOPIC, GroupId, TopicName
from storage.api import Record
from tests.pipeline.kafka_connector import require_connector
from tests.pipeline.logs import NOON_MS, commit

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(900)]

MINUTE = 60_000
BEGIN_MS = NOON_MS // STREAM_INTERVAL_MS * STREAM_INTERVAL_MS
_SCHEMA = "key binary, value binary, topic string, partition int, offset long, timestamp timestamp"


def records(spark: SparkSession, *rows: tuple[str, int, int, Record]) -> object:
    """(topic, offset, time, record), as the connector brings them."""
    made = [
        (bytearray(record.key), None if record.value is None else bytearray(record.value), topic, 0,
         offset, at_ms)
        for topic, offset, at_ms, record in rows
    ]  # fmt: skip
    schema = _SCHEMA.replace("timestamp timestamp", "at_ms long")
    frame = spark.createDataFrame(made, schema)
    return frame.selectExpr("* EXCEPT (at_ms)", "timestamp_millis(at_ms) AS timestamp")


def gone(group: str, partition: int) -> Record:
    return Record(offset_commit_key(GroupId(group), TopicName("t"), partition), None)


def health(spark: SparkSession, out: Path) -> list[tuple[object, ...]]:
    rows = spark.read.parquet(str(out / "group_health")).orderBy("at_ms").collect()
    return [(row["group"], row["at_ms"], row["status"], row["total_lag"]) for row in rows]


class Ends:
    """In a broker's place: each answer is of the next minute."""

    def __init__(self, ends: Sequence[int | None]) -> None:
        self.left = list(ends)
        self.now_ms = BEGIN_MS

    def __call__(self) -> LogEndReading:
        self.now_ms += MINUTE
        end = self.left.pop(0)
        row = MeasuredLog("t", 0, self.now_ms, 0, end, "broker", None)
        return LogEndReading("broker", self.now_ms, {("t", 0): row}, lambda _: {})


def test_each_batch_measures_and_a_repeated_one_says_the_same(
    spark: SparkSession, tmp_path: Path
) -> None:
    ends = Ends([7, 9, None, 9])
    stream = HealthStream(State(spark, str(tmp_path)), str(tmp_path), None, ends)
    at = BEGIN_MS + 1_000

    stream.batch(records(spark, (OFFSETS_TOPIC, 0, at, commit("g", "t", 0, 5, at))), 0)
    stream.batch(records(spark), 1)
    stream.batch(records(spark), 1)  # it was cut off before Spark had noted it
    stream.batch(records(spark), 2)  # no leader
    stream.batch(records(spark, (OFFSETS_TOPIC, 1, at + 3 * MINUTE, gone("g", 0))), 3)

    assert health(spark, tmp_path) == [
        ("g", BEGIN_MS + MINUTE, "OK", 2),
        ("g", BEGIN_MS + 2 * MINUTE, "OK", 4),
    ]
    assert ends.left == []


def test_a_group_that_stands_still_stalls_after_ten_batches(
    spark: SparkSession, tmp_path: Path
) -> None:
    stream = HealthStream(State(spark, str(tmp_path)), str(tmp_path), None, Ends([9] * 11))
    at = BEGIN_MS + 1_000

    stream.batch(records(spark, (OFFSETS_TOPIC, 0, at, commit("g", "t", 0, 5, at))), 0)
    for batch in range(1, 11):
        stream.batch(records(spark), batch)

    assert [status for _, _, status, _ in health(spark, tmp_path)] == ["OK"] * 9 + ["ERR"] * 2


def test_a_deleted_group_has_no_health_any_more(spark: SparkSession, tmp_path: Path) -> None:
    """In a stream with lag samples."""
    stream = HealthStream(State(spark, str(tmp_path)), str(tmp_path), None)

    def sample(minute: int, group: str) -> tuple[str, int, int, Record]:
        at = BEGIN_MS + minute * MINUTE + 1_000
        said = Sample(group, "t", at, False, {0: (SampledCommit(at, 5, 3),)})
        return LAG_TOPIC, minute, at, Record(*encode_sample(said))

    stream.batch(records(spark, sample(0, "gone"), sample(0, "there")), 0)
    deleted_ms = BEGIN_MS + 3 * MINUTE + 1
    stream.batch(
        records(spark, (OFFSETS_TOPIC, 0, deleted_ms, gone("gone", 0)), sample(5, "there")), 1
    )
    stream.batch(records(spark, sample(9, "there")), 2)

    rows = health(spark, tmp_path)
    minutes = {
        group: [(at_ms - BEGIN_MS) // MINUTE for of, at_ms, *_ in rows if of == group]
        for group in ("gone", "there")
    }
    assert minutes == {"gone": [1, 2, 3], "there": [1, 2, 3, 4, 5, 6, 7, 8]}


def test_a_stream_without_samples_has_a_batch_without_commits(
    spark: SparkSession, start_daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_connector()
    daemon = start_daemon({"offsets.topic.num.partitions": "1"})
    admin = AdminClient({"bootstrap.servers": daemon.bootstrap})
    for done in admin.create_topics([NewTopic("t", 1)]).values():
        done.result()
    producer = Producer({"bootstrap.servers": daemon.bootstrap})
    consumer = Consumer({"bootstrap.servers": daemon.bootstrap, "group.id": "g"})
    consumer.commit(offsets=[TopicPartition("t", 0, 2)], asynchronous=False)
    consumer.close()
    extents = Broker.extents
    monkeypatch.setattr(
        Broker, "extents", lambda self, topic: {} if topic == LAG_TOPIC else extents(self, topic)
    )
    order = StreamOrder(f"kafka://{daemon.bootstrap}", str(tmp_path / "out"))

    for _ in range(2):
        for _ in range(3):
            producer.produce("t", b"x")
        producer.flush()
        with running_stream(spark, order) as query:
            query.awaitTermination()

    assert [(group, lag) for group, _, _, lag in health(spark, tmp_path / "out")] == [
        ("g", 1),
        ("g", 4),
    ]
