"""Streaming: a stream that is killed and restarted has every row once, equal to an oracle's.

`make test` kills it between the rows of a table, then between two writes to the topic; with
ROLLCALL_STREAM_KILLS=1 at every point, and beside a stream that ran at once.
"""

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession

from history.lag.records import Sample, encode_sample
from history.lag.window import SampledCommit
from pipeline.derive.anomalies import STALLED_INSTANTS
from pipeline.derive.group_health import EVALUATION_INTERVAL_MS as JOBS_EVERY_MS
from pipeline.jobs import JOBS, JobInput
from pipeline.read.brokers import Broker, OffsetRange
from pipeline.read.sources import PipelineSource
from pipeline.stream import merging
from pipeline.stream.health_stream import (
    SAMPLE_DELAY_MS,
    STREAM_INTERVAL_MS,
    HealthStream,
    NoStream,
    StreamOrder,
    follow,
    running_stream,
)
from pipeline.stream.state import BadState, State
from pipeline.stream.status_topic import NoTopic, StatusTopic
from seams.java_hash import partition_of
from storage.api import Record
from tests.pipeline.kafka_connector import require_connector
from tests.pipeline.logs import NOON_MS, commit, write_log
from tests.pipeline.stream_victim import MERGE_EVERY, PER_BATCH, POINTS
from tests.pipeline.test_group_health import MINUTE, Seen, a_history, judged

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(900)]

BEGIN_MS = NOON_MS // STREAM_INTERVAL_MS * STREAM_INTERVAL_MS
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
    seen = sorted(
        (commit.at_ms, group, commit) for group, all_of in groups.items() for commit in all_of
    )
    return [
        Record(*encode_sample(Sample(group, "t", at + 5_000, False, {0: [SampledCommit(*commit)]})))
        for at, group, commit in seen
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
    write_log(daemon.data_dir, 0, [[record] for record in lag_records(groups)], "__group_lag")
    offsets = [5, 6, 7, 3, 4, 8]
    commits = [[commit("billing", "t", 0, offset)] for offset in offsets]
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
    end = (last + 5_000 - SAMPLE_DELAY_MS) // STREAM_INTERVAL_MS * STREAM_INTERVAL_MS
    written = []
    for group, seen in groups.items():
        for at in range(BEGIN_MS, end + 1, STREAM_INTERVAL_MS):
            verdict = judged(seen, at, 10)
            if verdict is not None:
                written.append((group, at, verdict if verdict in ("OK", "WARN") else "ERR"))
    return sorted(written)


def changed(statuses: Sequence[tuple[str, int, str]]) -> list[tuple[str, int, str, str]]:
    last: dict[str, str] = {}
    found = []
    for group, at, status in statuses:
        if status != last.get(group, "OK"):
            found.append((group, at, last.get(group, "OK"), status))
        last[group] = status
    return found


def run(
    spark: SparkSession, source: str, out: Path, topic: str, most: str, *, every_s: int | None
) -> None:
    """Up to the end of what is there: a stream that would go on (`every_s`), or one that ends."""
    order = StreamOrder(source, str(out), topic, every_s, {"maxOffsetsPerTrigger": most})
    with running_stream(spark, order) as query:
        if every_s is None:
            query.awaitTermination()
        else:
            query.processAllAvailable()


def table(spark: SparkSession, out: Path, name: str) -> list[tuple[object, ...]]:
    rows = spark.read.parquet(str(out / name)).drop("batch", "dt").collect()
    return sorted(map(tuple, rows), key=str)


def by_the_job(spark: SparkSession, source: str, last_ms: int) -> list[tuple[object, ...]]:
    """What `run group_health` says of the same samples."""
    job_input = JobInput(PipelineSource(spark, source), BEGIN_MS, last_ms + 1)
    rows = JOBS["group_health"].run(job_input)["group_health"].collect()
    return sorted(map(tuple, rows), key=str)


def written(spark: SparkSession, source: str, topic: str) -> list[dict[str, object]]:
    records = [json.loads(value) for _, value in Broker(spark, source).tail(topic, {})]
    marks = [(record["batch"], record["sequence"]) for record in records]
    assert len(set(marks)) == len(marks)
    return records


def changes_of(records: list[dict[str, object]]) -> list[tuple[object, ...]]:
    return sorted(
        (record["group"], record["at_ms"], record["before"], record["status"]) for record in records
    )


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


ALWAYS = "within the topic"  # its tables are written by then, and half of what it tells
KILLS = [
    pytest.param(
        point,
        id=point.replace(" ", "-"),
        marks=pytest.mark.skipif(
            not LONG and point != ALWAYS, reason="set ROLLCALL_STREAM_KILLS=1"
        ),
    )
    for point in POINTS
]


@pytest.mark.parametrize("point", KILLS)
def test_a_killed_stream_writes_everything_once(
    spark: SparkSession,
    source: str,
    groups: Histories,
    tmp_path: Path,
    point: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out, at_once = tmp_path / "killed", tmp_path / "at-once"
    monkeypatch.setattr(merging, "EVERY", MERGE_EVERY)

    killed_at(point, source, out)
    run(spark, source, out, "verdicts", PER_BATCH, every_s=1)
    run(spark, source, out, "verdicts", PER_BATCH, every_s=None)  # there is nothing new

    health = table(spark, out, "group_health")
    assert [(row[0], row[1], row[2]) for row in health] == expected(groups)
    anomalies = table(spark, out, "anomalies")
    assert [row[1] for row in anomalies if row[0] == "rewind"] == ["billing"]
    stalls = [row for row in anomalies if row[0] == "stalled_partition" and row[1] == "stuck"]
    assert [row[6] - row[5] for row in stalls] == [(STALLED_INSTANTS - 1) * STREAM_INTERVAL_MS]
    assert changes_of(written(spark, source, "verdicts")) == changed(expected(groups))
    folders = {path.name for path in (out / "group_health").glob("dt=*/*")}
    assert folders == {"batch=1", "batch=2"}  # the first of three has become one with the second
    assert by_the_job(spark, source, health[-1][1]) == [
        row for row in health if row[1] % JOBS_EVERY_MS == 0
    ]
    if LONG:
        run(spark, source, at_once, "at-once", "1000000", every_s=None)
        assert health == table(spark, at_once, "group_health")
        assert anomalies == table(spark, at_once, "anomalies")
        assert changes_of(written(spark, source, "at-once")) == changed(expected(groups))


def test_a_stream_needs_a_broker_and_a_folder_of_its_own(
    spark: SparkSession, source: str, tmp_path: Path
) -> None:
    def refused(name: str, kind: type[Exception], says: str, topic: str | None = None) -> None:
        order = StreamOrder(source, str(tmp_path / name), topic)
        with pytest.raises(kind, match=says), running_stream(spark, order):
            pass

    def write(path: str, content: str) -> None:
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(content)

    with (
        pytest.raises(NoStream, match="kafka://"),
        running_stream(spark, StreamOrder(str(tmp_path), str(tmp_path / "out"))),
    ):
        pass
    write("other/_stream/stream.json", '{"id": "x", "cluster": "elsewhere"}')
    refused("other", BadState, "elsewhere")
    write("lost/_stream/batches/000003/done.json", "{}")
    refused("lost", BadState, "checkpoint is gone")
    write("bare/_stream/checkpoint/metadata", "{}")
    refused("bare", BadState, r"stream\.json is gone")
    refused("new", NoTopic, "create it first", "no-such-topic")
    with State(spark, str(tmp_path / "held")).held():
        refused("held", BadState, "another process writes to it")
    with pytest.raises(BadState, match="000002 is gone"):
        State(spark, str(tmp_path / "lost")).before(3)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stream_that_gets_a_stop_signal_stops_and_continues_later(
    spark: SparkSession,
    source: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
) -> None:
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}

    def start(*_: object, **__: object) -> SparkSession:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # as Spark takes it for itself
        return spark

    monkeypatch.setattr("pipeline.stream.health_stream.start_session", start)
    made = HealthStream.batch

    def process_and_signal(self: HealthStream, records: DataFrame, batch: int) -> None:
        made(self, records, batch)
        os.kill(os.getpid(), number)

    monkeypatch.setattr(HealthStream, "batch", process_and_signal)
    order = StreamOrder(source, str(tmp_path / "out"), None, 3_600)

    assert follow(order, None, {})

    assert not spark.streams.active
    assert {each: signal.getsignal(each) for each in before} == before
    assert table(spark, tmp_path / "out", "group_health")
    with running_stream(spark, order) as query:  # nobody else holds the folder any more
        assert query.isActive


class Shelf:
    """In a broker's place: what is written stays there, unless the power fails."""

    bootstrap = "shelf"

    def __init__(self, fails_after: int) -> None:
        self.records: list[tuple[bytes, bytes]] = [(b"somebody", b"not JSON")]
        self._fails_after = fails_after

    def extents(self, _topic: str) -> dict[int, OffsetRange]:
        return {0: OffsetRange(0, len(self.records))}

    def tail(self, _topic: str, begins: dict[int, int]) -> list[tuple[bytes, bytes]]:
        return self.records[begins.get(0, 0) :]

    def write(self, _topic: str, records: list[tuple[bytes, bytes]]) -> None:
        self.records += records[: self._fails_after]
        if len(records) > self._fails_after:
            self._fails_after = len(records)
            raise KeyboardInterrupt


@pytest.mark.parametrize("written", range(6))
@pytest.mark.parametrize("cleaned", [False, True])
def test_what_an_interrupted_batch_has_written_is_not_written_again(
    tmp_path: Path, written: int, cleaned: bool
) -> None:
    verdicts = [{"group": group, "n": n} for n, group in enumerate(["a", "b", "a", "c", "a"])]
    shelf, state = Shelf(written), State(None, str(tmp_path))
    status_topics = [StatusTopic(shelf, "verdicts", "me", state) for _ in range(2)]

    if written < len(verdicts):
        with pytest.raises(KeyboardInterrupt):
            status_topics[0].write(7, verdicts)
    else:
        status_topics[0].write(7, verdicts)
    seen = list(shelf.records)
    if cleaned:  # the newest of each key stays
        shelf.records = list(dict(seen).items())
    begun = list(shelf.records)
    status_topics[1].write(7, verdicts)

    every = [json.loads(value) for _, value in [*seen[1:], *shelf.records[len(begun) :]]]
    assert [record["n"] for record in every] == [0, 1, 2, 3, 4]
    assert [record["sequence"] for record in every] == [0, 1, 2, 3, 4]
