"""Progress, signals, and Spark's own output: what a person sees of a job is one line each."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event

import click
import pytest

from cli.pipeline_options import spark_job
from pipeline import spark_log
from pipeline.progress import Progress
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
