"""Progress: which step of an order runs, for how long, and how much of its Spark tasks is done.

Lines for people, not for programs: the commands print them to standard error. The first line comes
before Spark starts, which takes seconds; a running step prints a line every ten seconds.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from seams.text import duration

_INTERVAL_S: Final = 10.0


class Progress:
    """Prints through `write`; `every_s` between two lines of one step."""

    def __init__(self, write: Callable[[str], None], every_s: float = _INTERVAL_S) -> None:
        self._write = write
        self._every_s = every_s
        self._began_s = monotonic()

    @contextmanager
    def step(self, what: str, spark: SparkSession | None = None) -> Iterator[None]:
        """Around one step; with a session it can say how many of Spark's tasks are done."""
        began_s = monotonic()
        ended = Event()

        def write_lines() -> None:
            while not ended.wait(self._every_s):
                done = "" if spark is None else _tasks(spark)
                self._write(f"{what}: {_since(began_s)} so far{done}")

        self._write(what)
        writer = Thread(target=write_lines, name="progress", daemon=True)
        writer.start()
        try:
            yield
        finally:
            ended.set()
            writer.join()

    def line(self, text: str) -> None:
        """One of its own, between steps."""
        self._write(text)

    def total(self) -> None:
        """The last line: how long all of it took."""
        self._write(f"done in {_since(self._began_s)}")


class NoProgress(Progress):
    """Says nothing: for programs."""

    def __init__(self) -> None:
        super().__init__(lambda _: None)


def _tasks(spark: SparkSession) -> str:
    """Of the stages that run now; nothing of a Spark Connect server."""
    try:
        tracker = spark.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
    except (PySparkException, AttributeError, OSError):
        return ""
    tasks = sum(stage.numTasks for stage in stages if stage is not None)
    done = sum(stage.numCompletedTasks for stage in stages if stage is not None)
    return f", {done} of {tasks} tasks of this stage" if tasks else ""


def _since(began_s: float) -> str:
    return duration((monotonic() - began_s) * 1_000)
