"""A stream that is killed and goes on: is every row there once, and what an oracle says?

`make test` kills it between two writes to the topic; with ROLLCALL_STREAM_KILLS=1 at every point,
and beside a stream that ran at once.
"""

import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from coordinator.java_hash import partition_of
from history.lag_records import Sample, encode_sample
from history.lag_window import Commit
from pipeline.brokers import Broker
from pipeline.derive.anomalies import STALLED_INSTANTS
from pipeline.stream_state import BadState
from pipeline.streaming import EVERY_MS, SETTLE_MS, NoStream, StreamOrder, start_stream
from storage.api import Record
from tests.pipeline.kafka_connector import require_connector
from tests.pipeline.logs import NOON_MS, commit, write_log
from tests.pipeline.stream_victim import PER_BATCH, POINTS
from tests.pipeline.test_group_health import MINUTE, Seen, a_history, judged

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(900)]

BEGIN_MS = NOON_MS // EVERY_MS * EVERY_MS
SETTINGS = {
    "offsets.topic.num.partitions": "2",
    "offsets.retention.minutes": str(2**31 - 1),
    "rollcall.lag.retention.ms": "-1",
    "rollcall.lag.interval.ms": "3600000",  # the samples are ours
}
LONG = "ROLLCALL_STREAM_KILLS" in os.environ
Histories = dict[str, list[Seen]]


def histories() -> Histories:
    """Of several groups, one of which stands still for long."""
    chance = random.Random(11)
    found = {
        f"group-{n}": [seen._replace(at_ms=BEGIN_MS + seen.at_ms) for seen in a_history(chance)]
        for n in range(6)
    }
    found["stuck"] = [Seen(BEGIN_MS + n * MINUTE, 100, 5 + n) for n in range(1, 40)]
    return found


def lag_records(groups: Histories) -> list[Record]:
    """As the sampler writes them: in the order of time, a little after the commit."""
    seen = sorted((one.at_ms, group, one) for group, all_of in groups.items() for one in all_of)
    return [
        Record(*encode_sample(Sample(group, "t", at + 5_000, False, {0: [Commit(*one)]})))
        for at, group, one in seen
    ]


@pytest.fixture(scope="module")
def groups() -> Histories:
    return histories()


@pytest.fixture
def source(start_daemon, groups: Histories) -> str:
    """A daemon with these samples, and with commits of which one went back."""
    require_connector()
    daemon = start_daemon(SETTINGS)
    daemon.stop()
    for topic in ("__group_lag", "__consumer_offsets"):
        for old in daemon.data_dir.glob(f"{topic}-*/0*"):
            old.unlink()
    write_log(daemon.data_dir, 0, [[one] for one in lag_records(groups)], "__group_lag")
    offsets = [5, 6, 7, 3, 4, 8]
    commits = [[commit("billing", "t", 0, one)] for one in offsets]
    write_log(daemon.data_dir, partition_of("billing", 2), commits)
    daemon.start()
    admin = AdminClient({"bootstrap.servers": daemon.bootstrap})
    topics = [NewTopic(name, 1) for name in ("verdicts", "at-once")]
    for done in admin.create_topics(topics).values():
        done.result()
    return f"kafka://{daemon.bootstrap}"


def expected(groups: Histories) -> list[tuple[str, int, str]]:
    """(group, instant, status), by the rules read aloud."""
    last = max(seen.at_ms for all_of in groups.values() for seen in all_of)
    end = (last + 5_000 - SETTLE_MS) // EVERY_MS * EVERY_MS
    told = []
    for group, seen in groups.items():
        for at in range(BEGIN_MS, end + 1, EVERY_MS):
            verdict = judged(seen, at, 10)
            if verdict is not None:
                told.append((group, at, verdict if verdict in ("OK", "WARN") else "ERR"))
    return sorted(told)


def changed(statuses: Sequence[tuple[str, int, str]]) -> list[tuple[str, int, str, str]]:
    last: dict[str, str] = {}
    found = []
    for group, at, status in statuses:
        if status != last.get(group, "OK"):
            found.append((group, at, last.get(group, "OK"), status))
        last[group] = status
    return found


def run(spark: SparkSession, source: str, out: Path, topic: str, most: str) -> None:
    order = StreamOrder(source, str(out), topic, connector={"maxOffsetsPerTrigger": most})
    start_stream(spark, order).awaitTermination()


def table(spark: SparkSession, out: Path, name: str) -> list[tuple[object, ...]]:
    rows = spark.read.parquet(str(out / name)).drop("batch", "dt").collect()
    return sorted(map(tuple, rows), key=str)


def told(spark: SparkSession, source: str, topic: str) -> list[dict[str, object]]:
    records = [json.loads(value) for _, value in Broker(spark, source).tail(topic, {})]
    marks = [(one["batch"], one["sequence"]) for one in records]
    assert len(set(marks)) == len(marks)
    return records


def changes_of(records: list[dict[str, object]]) -> list[tuple[object, ...]]:
    return sorted((one["group"], one["at_ms"], one["before"], one["status"]) for one in records)


def killed_at(point: str, source: str, out: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.pipeline.stream_victim", source, str(out), "verdicts", point],
        cwd=Path(__file__).parents[2],
        start_new_session=True,
        capture_output=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == -9, done.stderr.decode()[-3_000:]


KILLS = [
    pytest.param(
        point,
        id=point.replace(" ", "-"),
        marks=[]
        if point == "within the topic"
        else pytest.mark.skipif(not LONG, reason="set ROLLCALL_STREAM_KILLS=1"),
    )
    for point in POINTS
]


@pytest.mark.parametrize("point", KILLS)
def test_a_killed_stream_tells_everything_once(
    spark: SparkSession, source: str, groups: Histories, tmp_path: Path, point: str
) -> None:
    out, at_once = tmp_path / "killed", tmp_path / "at-once"

    killed_at(point, source, out)
    run(spark, source, out, "verdicts", PER_BATCH)

    health = table(spark, out, "group_health")
    assert [(row[0], row[1], row[2]) for row in health] == expected(groups)
    anomalies = table(spark, out, "anomalies")
    assert [row[1] for row in anomalies if row[0] == "rewind"] == ["billing"]
    stalls = [row for row in anomalies if row[0] == "stalled_partition" and row[1] == "stuck"]
    assert [row[6] - row[5] for row in stalls] == [(STALLED_INSTANTS - 1) * EVERY_MS]
    assert changes_of(told(spark, source, "verdicts")) == changed(expected(groups))
    assert len(list((out / "group_health").glob("dt=*/batch=*"))) > 1
    if LONG:
        run(spark, source, at_once, "at-once", "1000000")
        assert health == table(spark, at_once, "group_health")
        assert anomalies == table(spark, at_once, "anomalies")
        assert changes_of(told(spark, source, "at-once")) == changed(expected(groups))


def test_a_stream_needs_a_broker_and_a_folder_of_its_own(
    spark: SparkSession, source: str, tmp_path: Path
) -> None:
    with pytest.raises(NoStream, match="kafka://"):
        start_stream(spark, StreamOrder(str(tmp_path), str(tmp_path / "out")))
    folder = tmp_path / "other" / "_stream"
    folder.mkdir(parents=True)
    (folder / "stream.json").write_text('{"id": "x", "from": "kafka://elsewhere:9092"}')
    with pytest.raises(BadState, match="elsewhere"):
        start_stream(spark, StreamOrder(source, str(tmp_path / "other")))
