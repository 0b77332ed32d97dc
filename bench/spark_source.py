"""Spark source: rows per second of CPU beside Spark's Kafka connector, and one core beside two.

    .venv/bin/python -m bench.spark_source [--commits 2000000] [--rounds 2]
                                           [--parts decoder,connector,cold,cores]

decoder     the decoder alone, in batches of 100 (bench/decoder.py has all kinds of logs)
connector   the source and Spark's Kafka connector, in turns, in one session of `local[1]`. A real
            Kafka 4.3.1 serves the same segments as topics. Both give the same columns of the same
            rows: the connector's go through the same decoder (`mapInArrow`), as `kafka://` does
cold        the same with a new process for each query, and everything that it starts counted
cores       the source on `local[1]` and `local[2]`: pinned to one core and to two, and as Spark
            runs it. Then one task already takes more than a core, since the worker that decodes and
            the JVM are two processes

CPU is that of Spark's Java process, its Python workers and the driver; the broker's is not counted.
`steady` is the difference of a query of all rows and one of a twentieth of them: neither reader
pays for planning and the starts of workers. `query` is a whole query in the warm session; before
it, each query runs WARM_UPS times, since Java still compiles in the second. Columns:
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from confluent_kafka.admin import AdminClient, NewTopic

from bench import decoder
from bench.commit_logs import LOG_PARTITIONS, make_commits
from bench.process_tree import Used, sample
from bench.spark_reader import BYTES, COLUMNS, CONNECTOR, SOURCE
from protocol.names import OFFSETS_TOPIC
from tests.interop.kafka_broker import KafkaBroker, kafka_broker
from tests.interop.kafka_tools import NoKafkaTools, bring_jars, prepare_kafka_tools

HERE = Path(__file__).parents[1]
JARS = HERE / "tests" / "pipeline" / "kafka_connector.lock"
PARTS = "decoder,connector,cold,cores"
WHOLE, SMALL, LARGE = "whole", "small", "large"
SHOWN: Final = ("offset", "rate", "job", "all")
WARM_UPS: Final = 3
PART: Final = 20
"""The small log has one in so many of the commits of the whole one."""

TICK_S: Final = 0.01
"""CPU time is counted in ticks: there is no smaller difference."""

TIMES_FOR_CORES: Final = 8
"""The log that is read on one core and on two is so many times as long."""

Seconds = dict[str, float]


class Reader:
    """A session in a process of its own (spark_reader.py)."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, reader: str, where: str, columns: str, topic: str = "") -> Seconds:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = {"reader": reader, "where": where, "columns": columns, "topic": topic}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{order}: the session has ended")
        answer: Seconds = json.loads(line)
        return answer

    def cpu_s(self) -> float:
        """Since it was started, with all of its processes."""
        used = Used()
        sample(self._process.pid, used)
        return used.cpu_s()["all"]


@contextmanager
def reader(master: str, *words: str) -> Iterator[Reader]:
    command = [sys.executable, "-m", "bench.spark_reader", master, *words]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command, cwd=HERE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            text=True,
        )  # fmt: skip
        try:
            yield Reader(process)
        except SystemExit:
            errors.seek(0)
            sys.stderr.write(errors.read()[-4_000:])
            raise
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(60)


@contextmanager
def served(home: Path) -> Iterator[str]:
    """HOST:PORT of a Kafka that has the segments of the two logs as topics. Raises NoKafkaTools."""
    properties = {"log_retention_ms": -1, "num_partitions": LOG_PARTITIONS}
    with kafka_broker(prepare_kafka_tools(), home / "kafka", **properties) as kafka:
        _create_topics(kafka.bootstrap)
        kafka.stop()
        for name in (WHOLE, SMALL):
            for partition in range(LOG_PARTITIONS):
                _replace_log(kafka, home, name, partition)
        kafka.start()
        yield kafka.bootstrap


def _create_topics(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [NewTopic(name, LOG_PARTITIONS) for name in (WHOLE, SMALL)]
    for created in admin.create_topics(topics).values():
        created.result()


def _replace_log(kafka: KafkaBroker, home: Path, name: str, partition: int) -> None:
    folder = kafka.log_dir / f"{name}-{partition}"
    for file in folder.glob("0*"):
        file.unlink()  # without an index Kafka makes one of the segment
    shutil.copy(home / name / f"{OFFSETS_TOPIC}-{partition}" / f"{0:020}.log", folder)


def beside_connector(home: Path, bootstrap: str, jars: str, rows: int, rounds: int) -> None:
    best: dict[tuple[str, str, str], float] = {}
    kinds = [(kind, columns) for columns in SHOWN for kind in (SOURCE, CONNECTOR)]
    kinds.append((CONNECTOR, BYTES))
    with reader("local[1]", "--jars", jars) as spark:
        for turn in range(WARM_UPS + rounds):
            for kind, columns in kinds:
                for size in (SMALL, WHOLE):
                    where = str(home / size) if kind == SOURCE else bootstrap
                    cpu = spark.ask(kind, where, columns, size)["cpu"]
                    if turn >= WARM_UPS:
                        key = kind, columns, size
                        best[key] = min(best.get(key, cpu), cpu)
    steady = {
        (kind, columns): max(TICK_S, best[kind, columns, WHOLE] - best[kind, columns, SMALL])
        for kind, columns in kinds
    }
    more = rows - rows // PART
    print(f"{'M rows/s of CPU':20} {'steady':>26}    {'query':>26}")
    print(f"{'':20} {'source connector ratio':>26}    {'source connector ratio':>26}")
    for columns in SHOWN:
        of_source, of_connector = steady[SOURCE, columns], steady[CONNECTOR, columns]
        whole, other = best[SOURCE, columns, WHOLE], best[CONNECTOR, columns, WHOLE]
        print(
            f"  {columns:18} {compared(more, of_source, of_connector)}"
            f"    {compared(rows, whole, other)}"
        )
    undecoded = more / steady[CONNECTOR, BYTES] / 1e6
    print(f"  {BYTES + ', not decoded':18}          {undecoded:9.2f}")


def compared(rows: int, source_s: float, connector_s: float) -> str:
    return (
        f"{rows / source_s / 1e6:10.2f} {rows / connector_s / 1e6:9.2f} "
        f"{connector_s / source_s:5.1f}"
    )


def cold(home: Path, bootstrap: str, jars: str, rows: int) -> None:
    spent: dict[str, float] = {}
    for kind, where in ((SOURCE, str(home / WHOLE)), (CONNECTOR, bootstrap)):
        with reader("local[1]", "--jars", jars) as spark:
            spark.ask(kind, where, "offset", WHOLE)
            spent[kind] = spark.cpu_s()
    print(
        f"cold, offset: source {spent[SOURCE]:.1f} s of CPU, connector {spent[CONNECTOR]:.1f} s "
        f"for {rows:,} rows with all starts: {spent[CONNECTOR] / spent[SOURCE]:.2f} times"
    )


def over_cores(home: Path, rows: int, rounds: int) -> None:
    print(f"cores, job, {rows:,} rows: s of wall time (load {os.getloadavg()[0]:.1f})")
    for is_pinned in (True, False):
        took: dict[int, float] = {}
        for cores in (1, 2):
            words = ("--cpus", ",".join(map(str, range(cores)))) if is_pinned else ()
            with reader(f"local[{cores}]", *words) as spark:
                spark.ask(SOURCE, str(home / WHOLE), "job")
                times = [spark.ask(SOURCE, str(home / LARGE), "job")["s"] for _ in range(rounds)]
            took[cores] = min(times)
        print(
            f"  {'pinned' if is_pinned else 'not pinned':10}  local[1] {took[1]:6.2f}, "
            f"local[2] {took[2]:6.2f}: {took[1] / took[2]:.2f} times as fast",
            flush=True,
        )


def main() -> None:
    described = "\n".join(f"    {name:9} {', '.join(COLUMNS[name])}" for name in SHOWN)
    parser = argparse.ArgumentParser(
        description=f"{__doc__}\n{described}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--commits", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--parts", default=PARTS)
    options = parser.parse_args()
    parts = options.parts.split(",")
    print(f"decoder: {decoder.reader_in_use()}", flush=True)
    with tempfile.TemporaryDirectory() as made:
        home = Path(made)
        if "decoder" in parts:
            decoder.make_log(home / "decoder", "100", 8 << 20)
            fast = max(decoder.decode(home / "decoder" / "100") for _ in range(12))
            print(f"decoder alone, batches of 100: {fast / 1e6:.2f} M rows/s of CPU", flush=True)
        make_commits(home / WHOLE, options.commits)
        make_commits(home / SMALL, options.commits // PART)
        if {"connector", "cold"}.intersection(parts):
            try:
                jars = ",".join(map(str, bring_jars(JARS)))
                with served(home) as bootstrap:
                    if "connector" in parts:
                        beside_connector(home, bootstrap, jars, options.commits, options.rounds)
                    if "cold" in parts:
                        cold(home, bootstrap, jars, options.commits)
            except NoKafkaTools as missing:
                print(f"connector: not measured: {missing}")
        if "cores" in parts:
            rows = TIMES_FOR_CORES * options.commits
            make_commits(home / LARGE, rows)
            over_cores(home, rows, options.rounds)


if __name__ == "__main__":
    main()
