"""Spark Structured Streaming: a query from a topic to another one, and one that goes on after it.

`make long-spark-streaming` (SPARK_STREAMING=1) runs it.
"""

import os
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from tests.broker.daemon import Daemon
from tests.interop.kafka_apps import Reader
from tests.pipeline.kafka_connector import require_connector

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.skipif("SPARK_STREAMING" not in os.environ, reason="SPARK_STREAMING is not set"),
]

SOURCE, TARGET = "words", "shouted"
PARTITIONS = 2


def write(bootstrap: str, *, aborted: str, committed: tuple[str, ...]) -> None:
    """Two transactions."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "writer"})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(SOURCE, aborted, partition=0)
    producer.flush(60)
    producer.abort_transaction(60)
    producer.begin_transaction()
    for n, word in enumerate(committed):
        producer.produce(SOURCE, word, partition=n % PARTITIONS)
    producer.commit_transaction(60)


def copy(spark: SparkSession, bootstrap: str, checkpoint: Path) -> None:
    """All that the source has, in capital letters; from where the last query ended."""
    server = {"kafka.bootstrap.servers": bootstrap}
    words = (
        spark.readStream.format("kafka")
        .options(**server, subscribe=SOURCE, startingOffsets="earliest")
        .option("kafka.isolation.level", "read_committed")
        .load()
    )
    query = (
        words.selectExpr("upper(CAST(value AS STRING)) AS value")
        .writeStream.format("kafka")
        .options(**server, topic=TARGET, checkpointLocation=str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)


def test_a_query_copies_committed_records_and_the_next_one_goes_on(
    spark: SparkSession, daemon: Daemon, tmp_path: Path
) -> None:
    require_connector()
    admin = AdminClient({"bootstrap.servers": daemon.bootstrap})
    new = [NewTopic(name, PARTITIONS) for name in (SOURCE, TARGET)]
    for created in admin.create_topics(new).values():
        created.result(60)
    checkpoint = tmp_path / "checkpoint"

    write(daemon.bootstrap, aborted="no", committed=("one", "two", "three"))
    copy(spark, daemon.bootstrap, checkpoint)
    daemon.kill()
    daemon.start()
    write(daemon.bootstrap, aborted="never", committed=("four", "five"))
    copy(spark, daemon.bootstrap, checkpoint)

    reader = Reader(daemon.bootstrap, TARGET)
    found = reader.values()
    reader.close()
    assert sorted(found) == ["FIVE", "FOUR", "ONE", "THREE", "TWO"]
