"""Submit: a job run by spark-submit, with the spark-submit that pyspark brings."""

import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pyarrow.dataset as ds
import pyspark
import pytest
from pyspark.errors import PySparkAttributeError

from pipeline import submit
from pipeline.archive import write_archive
from pipeline.command import Order
from pipeline.ingest import ingest
from pipeline.java import NoJava, find_java, home_for_spark
from pipeline.lake import Lake
from pipeline.local.session import local_session
from pipeline.read.brokers import Broker, NoBroker
from pipeline.read.files import UnreachablePath, read_text
from pipeline.read.sources import PipelineSource
from pipeline.session import NoServer, start_session
from pipeline.stream.health_stream import StreamOrder
from seams.operator_error import OperationFailed
from tests.pipeline.small_world import MINUTE, START_MS, small_world

pytestmark = pytest.mark.xdist_group("spark")

SAYS = "seams/operator_error.py"
SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"


def packed(folder: Path) -> tuple[Path, Path]:
    """The archive and the script; what is imported from the archive says so."""
    archive, script = write_archive(folder)
    repacked = folder / "told.zip"
    with zipfile.ZipFile(archive) as plain, zipfile.ZipFile(repacked, "w") as file:
        for name in plain.namelist():
            mark = b'print("of the archive")\n' if name == SAYS else b""
            file.writestr(name, plain.read(name) + mark)
    return repacked, script


def test_a_job_runs_in_the_session_of_spark_submit(tmp_path: Path) -> None:
    try:
        java = find_java()
    except NoJava as missing:
        pytest.skip(str(missing))
    small_world(tmp_path / "data")
    settings = ("spark.ui.enabled=false", "spark.driver.host=127.0.0.1", "spark.app.name=submitted")
    command = [SUBMIT, "--master", "local[1]", "--driver-memory", "512m"]
    for setting in (*settings, "spark.sql.shuffle.partitions=1"):
        command += ["--conf", setting]
    job = ["offsets_as_of", "--from", tmp_path / "data", "--to", tmp_path / "out"]
    until = str(START_MS + 45 * MINUTE)
    archive, script = packed(tmp_path / "job")
    command += ["--py-files", archive]

    done = subprocess.run(
        [*command, script, *job, "--until-ms", until],
        env={
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "JAVA_HOME": str(home_for_spark(java)),
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        cwd=tmp_path,  # nothing of the checkout is on the path
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-2_000:]
    assert "of the archive" in done.stdout.splitlines()
    assert "offsets_as_of: 4 rows" in done.stdout
    rows = ds.dataset(tmp_path / "out" / "offsets_as_of", partitioning="hive").to_table()
    found = {(row["group"], row["partition"]): row["committed_offset"] for row in rows.to_pylist()}
    assert found["billing", 1] == 300
    assert found["billing", 2] == 440


def test_what_spark_submit_hands_on_becomes_an_order(monkeypatch: pytest.MonkeyPatch) -> None:
    orders: list[object] = []

    def follow(order: StreamOrder, master: str | None, settings: Mapping[str, str]) -> bool:
        assert (master, settings) == (None, {})  # spark-submit has said them
        orders.append(order)
        return True

    monkeypatch.setattr(submit, "follow", follow)
    monkeypatch.setattr(submit, "carry_out", lambda order, _: orders.append(order) or ["done"])
    where = ["--from", "kafka://b:1", "--to", "out", "--option", "kafka.x=a=b"]

    topic = ["--verdicts-topic", "v"]
    assert submit.main(["stream", *where, *topic, "--every-s", "9"]) == 0
    assert submit.main(["stream", *where, "--once"]) == 0
    assert submit.main(["ingest", *where, "--until-ms", "5", "--acknowledge", "b:1"]) == 0
    filters = ["--group", "g", "--group", "h", "--topic", "t", "--incremental"]
    files = ["--summary", "s.json", "--delta", "d"]
    assert submit.main(["all", *where[:4], *filters, *files, "--until-ms", "5"]) == 0

    connector = {"kafka.x": "a=b"}
    assert orders == [
        StreamOrder("kafka://b:1", "out", "v", 9, connector),
        StreamOrder("kafka://b:1", "out", None, None, connector),
        Order("ingest", "kafka://b:1", "out", 0, 5, connector=connector, acknowledge="b:1"),
        Order(
            "all", "kafka://b:1", "out", 0, 5, groups=("g", "h"), topics=("t",), incremental=True,
            summary="s.json", delta="d",
        ),
    ]  # fmt: skip


def test_a_lake_is_maintained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = tmp_path / "lake"
    small_world(tmp_path / "data")
    with local_session() as local:
        for _ in range(2):
            ingest(PipelineSource(local, str(tmp_path / "data")), Lake(local, str(lake)))

    assert submit.main(["compact", "--from", str(lake)]) == 0
    assert submit.main(["expire", "--from", str(lake), "--before-ms", str(START_MS)]) == 0
    assert submit.main(["compact", "--from", str(tmp_path / "not")]) == 2
    for usage in (["expire", "--from", str(lake)], ["all", "--from", str(lake)]):
        with pytest.raises(SystemExit):
            submit.main(usage)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("1 runs, ")
    assert lines[1] == "dropped 0 days"


def test_how_a_submitted_job_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_order: Order, _progress: object) -> list[str]:
        raise OperationFailed("no segment there")

    where = ["--from", "data", "--to", "out"]
    with pytest.raises(SystemExit) as unknown:
        submit.main(["lags", *where])
    monkeypatch.setattr(submit, "carry_out", refuse)
    with pytest.raises(SystemExit) as usage:
        submit.main(["all", *where, "--option", "x"])

    assert submit.main(["all", *where]) == 1
    assert (unknown.value.code, usage.value.code) == (2, 2)
    said = capsys.readouterr().err
    assert "and stream" in said
    assert "'x': expected KEY=VALUE" in said
    assert said.splitlines()[-1] == "rollcall-pipeline: no segment there"


def test_a_spark_connect_that_is_not_there_is_named_at_once(
    monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int
) -> None:
    monkeypatch.setattr("pipeline.session.SparkSession.getActiveSession", lambda: None)
    with pytest.raises(NoServer, match="such as sc://"):
        start_session(remote="spark:15002")
    with pytest.raises(NoServer, match="Connection refused"):
        start_session(remote=f"sc://127.0.0.1:{unused_tcp_port}")


class OverConnect:
    """As Spark Connect's session answers code that needs its Java."""

    @property
    def _jvm(self) -> object:
        raise PySparkAttributeError("Attribute `_jvm` is not supported")


def test_what_spark_connect_cannot_do_is_refused_in_words() -> None:
    with pytest.raises(UnreachablePath, match="mounted on this machine"):
        read_text(OverConnect(), "s3a://bucket/lake/manifest.json")
    with pytest.raises(NoBroker, match="through Spark Connect"):
        Broker(OverConnect(), "kafka://b:1").extents("orders")
