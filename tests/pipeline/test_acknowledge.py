"""A live daemon's cleaner and the pipeline: is nothing compacted before it was landed?"""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from broker.background.pipeline_watermark import PIPELINE_GROUP
from pipeline.ingest import ingest
from pipeline.lake import Lake
from pipeline.read.acknowledge import ACKNOWLEDGING_GROUP, acknowledge
from pipeline.read.brokers import Broker
from pipeline.read.sources import PipelineSource
from pipeline.tables import COMMITS
from tests.broker.daemon import Daemon
from tests.interop.conftest import create_topic
from tests.interop.offsets_givens import commit_by_hand
from tests.pipeline.kafka_connector import require_connector

pytestmark = pytest.mark.xdist_group("spark")

TIMEOUT_S = 90
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.segment.bytes": "65536",
    "rollcall.offsets.history.ms": "0",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.cleaner.backoff.ms": "200",
    "log.segment.delete.delay.ms": "0",
    "rollcall.checkpoint.idle.ms": "50",
    "rollcall.lag.interval.ms": "3600000",
}


def until(is_so: Callable[[], bool], why: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not is_so():
        assert time.monotonic() < deadline, why
        time.sleep(0.1)


def number(daemon: Daemon, name: str) -> float:
    _, page = daemon.get("/metrics")
    return next(float(line.split()[1]) for line in page.splitlines() if line.startswith(name + " "))


def test_what_was_not_landed_is_not_compacted(
    spark: SparkSession, start_daemon, tmp_path: Path
) -> None:
    require_connector()
    assert ACKNOWLEDGING_GROUP == PIPELINE_GROUP
    daemon = start_daemon(SETTINGS)
    create_topic(daemon.bootstrap, "orders", 10)
    where, lake = f"kafka://{daemon.bootstrap}", Lake(spark, str(tmp_path / "lake"))
    broker = Broker(spark, where)
    commit_by_hand(daemon.port, "g", "orders", range(1))
    acknowledge(broker, ingest(PipelineSource(spark, where), lake))

    runs = number(daemon, "rollcall_cleaner_runs_total")
    commit_by_hand(daemon.port, "g", "orders", range(1, 8))  # several segments, all unread but one
    until(
        lambda: number(daemon, "rollcall_cleaner_kept_for_pipeline_bytes") > 65_536,
        "nothing was kept",
    )
    assert number(daemon, "rollcall_cleaner_runs_total") == runs
    done = ingest(PipelineSource(spark, where), lake)
    acknowledge(broker, done)
    until(lambda: number(daemon, "rollcall_cleaner_runs_total") > runs, "nothing was cleaned")

    landed = lake.table(COMMITS).where("group = 'g'").select("partition", "committed_offset")
    assert sorted(map(tuple, landed.collect())) == [(p, n) for p in range(10) for n in range(8)]
    assert number(daemon, "rollcall_cleaner_pipeline_overtaken_total") == 0
