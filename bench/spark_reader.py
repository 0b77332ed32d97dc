"""Spark reader: a process with one Spark session, which runs the queries that it is told.

    .venv/bin/python -m bench.spark_reader MASTER [--jars JARS] [--cpus 0,1]

One JSON object per line: {"reader": "source", "where": DATA_DIR, "columns": "job"}, or
{"reader": "connector", "where": HOST:PORT, "topic": ..., "columns": ...}. The answer is a line with
the seconds that the query took, and the seconds of CPU by kind of process (process_tree.py).
"""

import argparse
import json
import os
import sys
import time
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from bench.process_tree import Used, sample
from pipeline.jobs import COMMITS_NEEDED
from pipeline.read.data_source import FORMAT
from pipeline.read.sources import decoded, messages
from pipeline.session import start_session
from pipeline.tables import COMMITS
from protocol.names import OFFSETS_TOPIC

SOURCE: Final = "source"
CONNECTOR: Final = "connector"
BYTES: Final = "bytes"
COLUMNS: Final = {
    "offset": ("committed_offset",),
    "rate": ("group", "topic", "partition", "committed_offset", "log_timestamp_ms"),
    "job": COMMITS_NEEDED,
    "all": tuple(COMMITS.schema.names),
}
"""By name, the columns that both readers give. `BYTES`: what the connector brings, not decoded."""


def frame(session: SparkSession, order: dict[str, str]) -> DataFrame:
    columns = order["columns"]
    if order["reader"] == SOURCE:
        read = session.read.format(FORMAT).option("table", COMMITS.name)
        return read.option("columns", ",".join(COLUMNS[columns])).load(order["where"])
    options = {
        "kafka.bootstrap.servers": order["where"],
        "kafka.isolation.level": "read_committed",
        "subscribe": order["topic"],
        "startingOffsets": "earliest",
        "endingOffsets": "latest",
    }
    brought = session.read.format("kafka").options(**options).load()
    if columns == BYTES:
        return brought.select("key", "value")
    return decoded(messages(brought), OFFSETS_TOPIC, COMMITS.only(*COLUMNS[columns]))


def run(session: SparkSession, order: dict[str, str]) -> dict[str, float]:
    """Every column of every row is made, and dropped."""
    before, after = Used(), Used()
    sample(os.getpid(), before)
    begin = time.monotonic()
    frame(session, order).write.format("noop").mode("overwrite").save()
    took = time.monotonic() - begin
    sample(os.getpid(), after)
    begun, ended = before.cpu_s(), after.cpu_s()
    cpu = {kind: ended[kind] - begun[kind] for kind in ("java", "workers", "driver")}
    return {"s": took, "cpu": sum(cpu.values()), **cpu}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("master")
    parser.add_argument("--jars", default="")
    parser.add_argument("--cpus", default="")
    parser.add_argument("--set", action="append", default=[])
    options = parser.parse_args()
    if options.cpus:
        os.sched_setaffinity(0, {int(cpu) for cpu in options.cpus.split(",")})
    settings = {"spark.log.level": "ERROR", **dict(pair.split("=", 1) for pair in options.set)}
    if options.jars:
        settings["spark.jars"] = options.jars
    session = start_session(options.master, settings=settings)
    for line in sys.stdin:
        print(json.dumps(run(session, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
