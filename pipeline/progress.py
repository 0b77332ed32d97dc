"""Progress: which step of an order runs, for how long, how much is done, and how long is left.

Lines for people, not for programs: the commands print them to standard error. The first line comes
before Spark starts, which takes seconds; a running step prints a line every ten seconds.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic, time_ns
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from seams.text import duration

_INTERVAL_S: Final = 10.0
_ESTIMATE_AFTER_S: Final = 5.0


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

        done: ReadSoFar | _Stages | None = getattr(spark, "read_so_far", None)
        if done is None and spark is not None:
            done = _Stages(spark)

        def write_lines() -> None:
            while not ended.wait(self._every_s):
                said = "" if done is None else done.text()
                self._write(f"{what}: {_since(began_s)} so far{said}")

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


def epoch_ms() -> int:
    return time_ns() // 1_000_000


class ReadSoFar:
    """What the local engine has read of a log: rows, and bytes of all that there are."""

    def __init__(self) -> None:
        self.rows = 0
        self.octets = 0
        self.all_octets = 0
        self._began_s = monotonic()

    def begin(self, all_octets: int) -> None:
        self.rows, self.octets, self.all_octets = 0, 0, all_octets
        self._began_s = monotonic()

    def text(self) -> str:
        """Nothing before the first piece, and nothing after the last."""
        if not 0 < self.octets < self.all_octets:
            return ""
        share = self.octets / self.all_octets
        return f", {self.rows:,} rows, {share:.0%} of the log{_left(self._began_s, share)}"


class _Stages:
    """Spark's tasks of the stages that run now, the rows that these tasks have read, and since when
    these stages run."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._numbers: list[int] = []
        self._began_s = monotonic()

    def text(self) -> str:
        """Nothing of a Spark Connect server."""
        try:
            tracker = self._spark.sparkContext.statusTracker()
            numbers = sorted(tracker.getActiveStageIds())
            stages = [tracker.getStageInfo(number) for number in numbers]
        except (PySparkException, Py4JError, AttributeError, OSError):
            return ""
        if numbers != self._numbers:
            self._numbers, self._began_s = numbers, monotonic()
        tasks = sum(stage.numTasks for stage in stages if stage is not None)
        done = sum(stage.numCompletedTasks for stage in stages if stage is not None)
        if not tasks:
            return ""
        left = _left(self._began_s, done / tasks)
        return f", {done} of {tasks} tasks of this stage{self._rows()}{left}"

    def _rows(self) -> str:
        """Nothing before the first task has reported: at its end, or after some ten seconds."""
        try:
            store = self._spark.sparkContext._jsc.sc().statusStore()
            stages = store.activeStages()
            running = [stages.apply(number) for number in range(stages.size())]
            rows = sum(stage.inputRecords() + stage.shuffleReadRecords() for stage in running)
        except (PySparkException, Py4JError, AttributeError, TypeError, OSError):
            return ""  # it is an interface of Spark's own UI
        return f", {rows:,} rows" if rows else ""


def _left(began_s: float, share: float) -> str:
    """By what was done since then; nothing before there is anything to go by."""
    passed_s = monotonic() - began_s
    if not share or passed_s < _ESTIMATE_AFTER_S:
        return ""
    return f", about {duration(passed_s * (1 - share) / share * 1_000)} left of it"


def _since(began_s: float) -> str:
    return duration((monotonic() - began_s) * 1_000)
