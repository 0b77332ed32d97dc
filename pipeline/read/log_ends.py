"""Log ends: where did the logs end that groups read, at the moment of a run?

A Kafka keeps no lag samples, and its commits do not say where the logs ended. A broker is asked
(broker_log_ends.py); in a data directory the folders of the topics say it (topic_folders.py). All
partitions are measured at once, when the log of commits has been opened, so that no commit of the
run is newer than the measurement. A lake keeps one row for each run and partition that a group has
committed for (tables.LOG_ENDS); repeated runs make a history.

An end that is not known stays unknown, with its reason: it is never taken for an offset.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, NamedTuple

from msgspec import Struct

from seams.text import instant

BROKER: Final = "broker"
FOLDERS: Final = "folders"

LogPlace = tuple[str, int]
"""Topic and partition."""


class MeasuredLog(NamedTuple):
    """A row of `log_ends`. `problem`: why an offset is None."""

    topic: str
    partition: int
    sampled_at_ms: int
    log_start_offset: int | None
    log_end_offset: int | None
    source: str
    problem: str | None


class LogEndReading(Struct, frozen=True):
    """One measurement of a source. `explain`: why topics are not in it, by their names."""

    source: str
    sampled_at_ms: int
    measured: Mapping[LogPlace, MeasuredLog]
    explain: Callable[[Collection[str]], Mapping[str, str]]

    def of(self, places: Iterable[LogPlace]) -> list[MeasuredLog]:
        """A row for each of these, in order."""
        wanted = sorted(set(places))
        known = {topic for topic, _ in self.measured}
        lacking = {topic for topic, _ in wanted if topic not in known}
        why = self.explain(lacking) if lacking else {}
        return [
            self.measured.get(place)
            or MeasuredLog(
                *place,
                self.sampled_at_ms,
                None,
                None,
                self.source,
                why.get(place[0], "no such partition"),
            )
            for place in wanted
        ]


class LogEndSummary(NamedTuple):
    """Of the log ends that a job used: `text` is for people; `known`: some of them are known."""

    text: str
    known: bool


def summary(rows: Collection[MeasuredLog]) -> LogEndSummary:
    """Of all measurements that a source has; the newest one says what is unknown."""
    if not rows:
        return LogEndSummary("log ends: none, no group has committed", known=False)
    times = sorted({row.sampled_at_ms for row in rows})
    newest = [row for row in rows if row.sampled_at_ms == times[-1]]
    measured = sum(row.log_end_offset is not None for row in newest)
    said = f"log ends: {newest[0].source} at {instant(times[-1])}"
    said += f", {measured} partition{'' if measured == 1 else 's'}"
    if unknown := len(newest) - measured:
        reasons = Counter(row.problem for row in newest if row.log_end_offset is None)
        why = ", ".join(
            f"{reason}" if len(reasons) == 1 else f"{count} {reason}"
            for reason, count in sorted(reasons.items(), key=str)
        )
        said += f"; {unknown} unknown: {why}"
    if len(times) > 1:
        said += f"; {len(times)} samples since {instant(times[0])}"
    return LogEndSummary(said, any(row.log_end_offset is not None for row in rows))
