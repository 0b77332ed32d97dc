"""Stream to be killed: a process that kills itself and its Java at a given point.

python -m tests.pipeline.stream_victim SOURCE OUT TOPIC POINT
"""

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from pipeline.read.brokers import Broker
from pipeline.session import start_session
from pipeline.stream import merging
from pipeline.stream.health_stream import HealthStream, StreamOrder, running_stream
from pipeline.stream.state import State
from pipeline.stream.status_topic import StatusTopic
from tests.pipeline.kafka_connector import connector_jars
from tests.pipeline.quick import QUICK

POINTS = (
    "within a table",
    "before the topic",
    "within the topic",
    "after the topic",
    "after the state",
    "before the plan of a merge",
    "within a merge",
)
PER_BATCH = "64"  # records: the first batch has verdicts to tell, and there are two more
MERGE_EVERY = 2  # batches: before the third, the first two become one


def die() -> None:
    os.killpg(os.getpgrp(), signal.SIGKILL)


def dying(group: int) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Rows on their way to a file: half of them come, then the end of these processes."""

    def half(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                yield batch.slice(0, batch.num_rows // 2)
                os.killpg(group, signal.SIGKILL)

    return half


def arm(point: str) -> None:
    """Let it happen in the first batch that has verdicts to tell, or at the first merge."""
    write, write_changes, remember = Broker.write, StatusTopic.write, State.remember
    write_table = HealthStream._write
    written: list[int] = []

    def write_half_a_table(self, table, rows, at, batch) -> None:
        if point == "within a table" and table == "group_health":
            rows = rows.mapInArrow(dying(os.getpgrp()), rows.schema)
        write_table(self, table, rows, at, batch)

    def write_half(self, topic, records) -> None:
        if point == "within the topic":
            write(self, topic, list(records)[: len(list(records)) // 2])
            die()
        write(self, topic, records)

    def write_changes_or_die(self, batch, verdicts) -> None:
        if verdicts and point == "before the topic":
            die()
        write_changes(self, batch, verdicts)
        written.extend([batch] * bool(verdicts))

    def remember_or_die(self, batch, tables, clock) -> None:
        if written and point == "after the topic":
            die()
        remember(self, batch, tables, clock)
        if written and point == "after the state":
            die()

    Broker.write, StatusTopic.write, State.remember = (
        write_half,
        write_changes_or_die,
        remember_or_die,
    )
    HealthStream._write = write_half_a_table
    merging.EVERY = MERGE_EVERY
    if point == "before the plan of a merge":
        merging.sync_folder = lambda _path: die()
    if point == "within a merge":
        merging.move_folder = lambda _spark, _old, _new: die()


def main() -> None:
    source, out, topic, point = sys.argv[1:]
    assert point in POINTS
    arm(point)
    spark = start_session("local[2]", settings={**QUICK, "spark.jars": connector_jars()[0]})
    order = StreamOrder(source, out, topic, connector={"maxOffsetsPerTrigger": PER_BATCH})
    with running_stream(spark, order) as query:
        query.awaitTermination()


if __name__ == "__main__":
    main()
