"""Progress, signals, and Spark's own output: what a person sees of a job is one line each."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event
from types import SimpleNamespace

import click
import pytest
from pyspark.sql import SparkSession

from cli.pipeline_options import spark_job
from pipeline import spark_log
from pipeline.progress import Progress, ReadSoFar, _Stages
from pipeline.session import _handed_on
from rollcall.program import program_path


def test_a_step_that_goes_on_says_so_until_it_ends() -> None:
    lines: list[str] = []
    said_twice = Event()

    def write(line: str) -> None:
        lines.append(line)
        if len(lines) >= 3:
            said_twice.set()

    progress = Progress(write, every_s=0.001)
    with progress.step("audit (1 of 2)"):
        assert said_twice.wait(60)
    count = len(lines)
    progress.total()

    assert lines[0] == "audit (1 of 2)"
    assert re.fullmatch(r"audit \(1 of 2\): [0-9.]+ m?s so far", lines[1])
    (last,) = lines[count:]
    assert re.fullmatch(r"done in [0-9.]+ m?s", last)


def test_how_much_of_a_log_was_read_and_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 100.0
    monkeypatch.setattr("pipeline.progress.monotonic", lambda: now_s)
    done = ReadSoFar()
    done.begin(4_000)

    assert done.text() == ""
    done.rows, done.octets = 12_345, 1_000
    assert done.text() == ", 12,345 rows, 25% of the log", "too early to say what is left"
    now_s += 20
    assert done.text() == ", 12,345 rows, 25% of the log, about 60 s left of it"
    done.octets = 4_000
    assert done.text() == ""


def test_the_tasks_of_a_stage_and_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 0.0
    monkeypatch.setattr("pipeline.progress.monotonic", lambda: now_s)
    stages = {3: SimpleNamespace(numTasks=64, numCompletedTasks=0)}
    tracker = SimpleNamespace(getActiveStageIds=lambda: list(stages), getStageInfo=stages.get)
    spark = SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=lambda: tracker))
    running = _Stages(spark)

    assert running.text() == ", 0 of 64 tasks of this stage"
    now_s, stages[3].numCompletedTasks = 30.0, 16
    assert running.text() == ", 16 of 64 tasks of this stage, about 90 s left of it"
    stages[4] = stages.pop(3)
    assert running.text() == ", 16 of 64 tasks of this stage", "another stage: nothing to go by"
    stages.clear()
    assert running.text() == ""


def test_the_rows_that_spark_has_read() -> None:
    def stage(read: int, shuffled: int) -> SimpleNamespace:
        return SimpleNamespace(inputRecords=lambda: read, shuffleReadRecords=lambda: shuffled)

    running = [stage(1_200, 0), stage(0, 34)]
    active = SimpleNamespace(size=lambda: len(running), apply=running.__getitem__)
    store = SimpleNamespace(activeStages=lambda: active)
    sc = SimpleNamespace(statusStore=lambda: store)
    tracker = SimpleNamespace(
        getActiveStageIds=lambda: [1],
        getStageInfo=lambda _: SimpleNamespace(numTasks=4, numCompletedTasks=1),
    )
    context = SimpleNamespace(statusTracker=lambda: tracker, _jsc=SimpleNamespace(sc=lambda: sc))

    assert _Stages(SimpleNamespace(sparkContext=context)).text() == (
        ", 1 of 4 tasks of this stage, 1,234 rows"
    )
    running.clear()
    assert _Stages(SimpleNamespace(sparkContext=context)).text() == ", 1 of 4 tasks of this stage"


@pytest.mark.xdist_group("spark")
def test_sparks_own_store_counts_the_rows_of_stages(spark: SparkSession) -> None:
    """What progress asks of it is not part of Spark's API: a new version may lack it."""
    spark.range(100).repartition(2).collect()

    store = spark.sparkContext._jsc.sc().statusStore()
    gateway = spark.sparkContext._gateway
    none, nothing = gateway.new_array(gateway.jvm.double, 0), gateway.jvm.java.util.ArrayList()
    stages = store.stageList(nothing, False, False, none, nothing)
    read = [stages.apply(n).shuffleReadRecords() for n in range(stages.size())]
    assert store.activeStages().size() >= 0
    assert 100 in read
    assert stages.apply(0).inputRecords() >= 0


def test_a_step_that_fails_ends_its_lines() -> None:
    lines: list[str] = []
    with pytest.raises(OSError, match="full"), Progress(lines.append).step("ingest"):
        raise OSError("full")

    assert lines == ["ingest"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_command_with_one_line(number: signal.Signals) -> None:
    before = signal.getsignal(number)

    with pytest.raises(click.ClickException) as stopped:
        _send(number)

    assert stopped.value.exit_code == 128 + number
    assert "\n" not in stopped.value.message
    assert signal.getsignal(number) is before


def _send(number: signal.Signals) -> None:
    with spark_job():
        try:
            signal.raise_signal(number)
        except Exception as swallowed:  # as libraries do in the middle of a call
            raise AssertionError("a library would have swallowed it") from swallowed


def test_what_starts_inside_prints_to_the_log_and_we_do_not(tmp_path: Path) -> None:
    program = (
        "import os, subprocess, sys\n"
        "from pipeline.spark_log import keep, stderr_to_log\n"
        "with stderr_to_log():\n"
        "    child = subprocess.Popen([sys.executable, '-c', 'print(1 / 0)'])\n"
        "child.wait()\n"
        "os.write(2, b'ours')\n"
        "if sys.argv[1] == 'keep':\n"
        "    print(keep())\n"
    )
    runs = {
        word: subprocess.run(
            [sys.executable, "-c", program, word],
            cwd=Path(spark_log.__file__).parents[1],
            env={**os.environ, "TMPDIR": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        for word in ("keep", "forget")
    }

    assert [run.stderr for run in runs.values()] == ["ours", "ours"]
    (kept,) = tmp_path.iterdir()
    assert runs["keep"].stdout.strip() == str(kept)
    assert "ZeroDivisionError" in kept.read_text()


def test_only_what_spark_starts_gets_the_path_of_our_modules(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONPATH", "users")
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    before = dict(os.environ)

    with _handed_on(is_ours=True):
        handed_on = dict(os.environ)
    with _handed_on(is_ours=False):
        assert dict(os.environ) == before

    assert handed_on["PYTHONPATH"] == os.pathsep.join([program_path(), "users"])
    assert handed_on["PYTHONSAFEPATH"] == "1"
    assert dict(os.environ) == before
