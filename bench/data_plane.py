"""Data plane: records a second and server CPU of produce and fetch, beside a real Kafka.

    .venv/bin/python bench/data_plane.py [--servers rollcall,kafka] [--records 300000] [--rounds 2]

One librdkafka producer writes records of 100 bytes to one partition (acks=all; plain, then in
transactions of 1,000 records), and one librdkafka consumer reads them (read_committed). The servers
take turns. A Kafka comes from Maven Central, as for the tests.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1]))

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker.daemon import Daemon
from tests.interop.kafka_broker import KafkaBroker
from tests.interop.kafka_tools import prepare_kafka_tools

RECORD = b"x" * 100
IN_TRANSACTION = 1_000
WARM_UP = 50_000


_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """Of all threads of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


class Measured:
    """Records a second, and server CPU microseconds a record, of each mode and round."""

    def __init__(self) -> None:
        self.figures: dict[tuple[str, str], list[tuple[float, float]]] = {}

    def run(self, server: str, mode: str, pid: int, records: int, work: Callable[[], None]) -> None:
        cpu, started = cpu_seconds(pid), time.perf_counter()
        work()
        seconds, used = time.perf_counter() - started, cpu_seconds(pid) - cpu
        self.figures.setdefault((mode, server), []).append(
            (records / seconds, used * 1e6 / records)
        )

    def show(self) -> None:
        print("| mode | server | records/s | server CPU us/record |\n|---|---|---|---|")
        for (mode, server), rounds in sorted(self.figures.items()):
            rates, costs = zip(*rounds, strict=True)
            print(f"| {mode} | {server} | {median(rates):,.0f} | {median(costs):.2f} |")


@contextmanager
def given(name: str, folder: Path) -> Iterator[tuple[str, int]]:
    """Bootstrap address and process id of a fresh server."""
    if name == "rollcall":
        daemon = Daemon(folder).start()
        try:
            yield daemon.bootstrap, daemon.pid
        finally:
            daemon.close()
        return
    kafka = KafkaBroker(prepare_kafka_tools(), folder / "kafka").start()
    try:
        yield kafka.bootstrap, kafka.pid
    finally:
        kafka.stop()


def topic(bootstrap: str, name: str) -> str:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, num_partitions=1)])[name].result(60)
    return name


def write(bootstrap: str, name: str, records: int, transactional_id: str | None = None) -> None:
    settings: dict[str, str | int | bool] = {
        "bootstrap.servers": bootstrap,
        "acks": "all",
        "linger.ms": 5,
        "queue.buffering.max.messages": 200_000,
    }
    if transactional_id is not None:
        settings["transactional.id"] = transactional_id
    producer = Producer(settings)
    if transactional_id is not None:
        producer.init_transactions(60)
    for first in range(0, records, IN_TRANSACTION):
        if transactional_id is not None:
            producer.begin_transaction()
        for _ in range(min(IN_TRANSACTION, records - first)):
            while True:
                try:
                    producer.produce(name, RECORD)
                    break
                except BufferError:
                    producer.poll(0.05)
        producer.poll(0)
        if transactional_id is not None:
            producer.commit_transaction(60)
    assert producer.flush(120) == 0


def read(bootstrap: str, name: str, records: int) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            # With its default the client pauses for a second when 100,000 records wait in it.
            "queued.min.messages": 1_000_000,
        }
    )
    consumer.assign([TopicPartition(name, 0, 0)])
    left = records
    while left > 0:
        left -= len(consumer.consume(10_000, 1))
    consumer.close()


def measure(server: str, records: int, measured: Measured) -> None:
    with TemporaryDirectory() as folder, given(server, Path(folder)) as (bootstrap, pid):
        write(bootstrap, topic(bootstrap, "warm-up"), WARM_UP)
        read(bootstrap, "warm-up", WARM_UP)
        plain = topic(bootstrap, "plain")
        measured.run(server, "produce", pid, records, lambda: write(bootstrap, plain, records))
        measured.run(server, "fetch", pid, records, lambda: read(bootstrap, plain, records))
        few = records // 10
        transactional = topic(bootstrap, "transactional")
        write(bootstrap, transactional, IN_TRANSACTION, "bench")  # makes the coordinator's topic
        measured.run(
            server,
            f"produce in transactions of {IN_TRANSACTION}",
            pid,
            few,
            lambda: write(bootstrap, transactional, few, "bench"),
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--servers", default="rollcall,kafka")
    parser.add_argument("--records", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    measured = Measured()
    for _ in range(options.rounds):
        for server in options.servers.split(","):
            measure(server, options.records, measured)
    measured.show()


if __name__ == "__main__":
    main()
