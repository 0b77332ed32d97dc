"""Golden segments: `__consumer_offsets` of a real Kafka, tests/pipeline/golden/{before,after}/.

    .venv/bin/python -m tests.pipeline.golden.make_golden --driver DRIVER [--port 21910]

DRIVER is `start DIR PORT [k=v ...]`, `stop DIR`, `configs ...`, `java CLASS ...`. Real clients make
what a cluster makes in weeks: classic groups with static members, a KIP-848 group, a share group,
transactions that commit, abort and stay open, rewinds, deleted groups and offsets that expire (of
one group alone: the rest is recorded with a retention that ends none). `before/` is the log as it
was written, `after/` what the broker's own cleaner has made of it.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

FOLDER = Path(__file__).parent
TOPIC = "orders"
PARTITIONS = 3
BROKER = (
    "offsets.topic.num.partitions=2",
    "offsets.retention.check.interval.ms=2000",
    "group.initial.rebalance.delay.ms=0",
    "log.cleaner.backoff.ms=300",
    "log.cleaner.enable=true",
)
BRIEFLY = "offsets.retention.minutes=1"
LONG = "offsets.retention.minutes=5256000"  # ten years: whatever else is recorded stays
TIMEOUT_S = 200


class Recording:
    """A broker, and the clients that use it."""

    def __init__(self, driver: str, port: int, home: Path) -> None:
        self.driver = driver
        self.bootstrap = f"127.0.0.1:{port}"
        self.home = home
        self._start = [driver, "start", str(home), str(port), *BROKER]

    @contextmanager
    def running(self, retention: str) -> Iterator[None]:
        subprocess.run([*self._start, retention], check=True, stdout=subprocess.DEVNULL)
        try:
            yield
        finally:
            subprocess.run([self.driver, "stop", str(self.home)], check=True)

    def tool(self, *words: str) -> None:
        subprocess.run([self.driver, *words], check=False, stdout=subprocess.DEVNULL)

    def produce(self, records: int) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for number in range(records):
            producer.produce(TOPIC, b"order", partition=number % PARTITIONS)
        producer.flush()

    def consumer(self, group: str, **settings: str | int | bool) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                **{name.replace("_", "."): value for name, value in settings.items()},
            }
        )

    def copy(self, name: str) -> None:
        target = FOLDER / name
        shutil.rmtree(target, ignore_errors=True)
        for folder in sorted((self.home / "data").glob("__consumer_offsets-*")):
            (target / folder.name).mkdir(parents=True)
            for log in sorted(folder.glob("*.log")):
                if log.stat().st_size:
                    shutil.copyfile(log, target / folder.name / log.name)


def join(*consumers: Consumer) -> None:
    """Until each of them owns something."""
    for consumer in consumers:
        consumer.subscribe([TOPIC])

    def all_own() -> bool:
        for consumer in consumers:
            consumer.poll(0.1)
        return all(consumer.assignment() for consumer in consumers)

    wait_for(all_own, "a member")


def wait_for(so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not so():
        if time.monotonic() > deadline:
            sys.exit(f"{what} did not come")
        time.sleep(0.1)


def commit(consumer: Consumer, *offsets: int) -> None:
    places = [TopicPartition(TOPIC, n, offset) for n, offset in enumerate(offsets)]
    consumer.commit(offsets=places, asynchronous=False)


def live(kafka: Recording) -> None:
    """What groups do."""
    classic = [kafka.consumer("billing", group_instance_id=f"box-{n}") for n in range(2)]
    join(*classic)
    for number in range(40):
        for consumer in classic:
            owned = [TopicPartition(TOPIC, p.partition, number) for p in consumer.assignment()]
            if owned:
                consumer.commit(offsets=owned, asynchronous=False)
    for consumer in classic:
        consumer.close()

    newer = kafka.consumer("search", group_protocol="consumer")
    join(newer)
    for number in range(10):
        commit(newer, number, 2 * number, 3 * number)
    newer.close()

    rewound = kafka.consumer("rewound")
    for offset in (50, 60, 5, 70, 69):
        commit(rewound, offset, offset)
    rewound.close()

    passing = kafka.consumer("passing")  # deleted below
    commit(passing, 1, 2, 3)
    passing.close()
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})  # its answers need it alive
    admin.delete_consumer_groups(["passing"])["passing"].result(TIMEOUT_S)


def transactions(kafka: Recording) -> None:
    """One that commits, one that aborts, and one that the recording's end finds open."""
    reader = kafka.consumer("payments")
    join(reader)
    commit(reader, 1, 1, 1)
    for number, end in enumerate(("commit", "abort", "commit", "open")):
        settings = {
            "bootstrap.servers": kafka.bootstrap,
            "transactional.id": f"payments-{number}",
            "transaction.timeout.ms": 600_000,
        }
        producer = Producer(settings)
        producer.init_transactions()
        producer.begin_transaction()
        places = [TopicPartition(TOPIC, n, 100 * (number + 1) + n) for n in range(PARTITIONS)]
        producer.send_offsets_to_transaction(places, reader.consumer_group_metadata())
        producer.flush()
        if end == "commit":
            producer.commit_transaction()
        elif end == "abort":
            producer.abort_transaction()
        OPEN.append(producer)
    reader.close()


OPEN: list[Producer] = []
"""Kept to the end: a producer that is collected would abort."""


def expires(kafka: Recording) -> None:
    """Offsets of a group without members go after `offsets.retention.minutes`."""
    brief = kafka.consumer("brief")
    commit(brief, 9, 9)
    brief.close()
    wait_for(
        lambda: not _has_offsets(kafka, "brief"),
        "the expiry",
    )


def _has_offsets(kafka: Recording, group: str) -> bool:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    found = asked[group].result(TIMEOUT_S).topic_partitions
    return any(partition.offset >= 0 for partition in found)


def compact(kafka: Recording) -> None:
    """Each partition gets a new segment, and the cleaner goes through the old ones."""
    settings = "segment.ms=1000,min.cleanable.dirty.ratio=0.01,delete.retention.ms=100"
    topic = ("--entity-type", "topics", "--entity-name", "__consumer_offsets")
    server = ("--bootstrap-server", kafka.bootstrap)
    kafka.tool("configs", *server, "--alter", *topic, "--add-config", settings)
    OPEN[-1].abort_transaction(TIMEOUT_S)  # the cleaner goes no further than an open one
    late = [kafka.consumer(f"late-{n}") for n in range(6)]  # in both partitions

    def cleaned() -> bool:
        for consumer in late:
            commit(consumer, int(time.time()))
        said = (kafka.home / "server.log").read_bytes()
        found = set(re.findall(rb"cleaned log (__consumer_offsets-[01])", said))
        return len(found) == 2

    wait_for(cleaned, "the cleaner")
    for consumer in late:
        consumer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--driver", required=True)
    parser.add_argument("--port", type=int, default=21_910)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        kafka = Recording(options.driver, options.port, Path(home))
        with kafka.running(BRIEFLY):
            admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
            admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(TIMEOUT_S)
            expires(kafka)
        with kafka.running(LONG):
            kafka.produce(300)
            live(kafka)
            share = ("--topic", TOPIC, "--group", "shares", "--timeout-ms", "8000")
            tool = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
            kafka.tool("java", tool, "--bootstrap-server", kafka.bootstrap, *share)
            transactions(kafka)
        kafka.copy("before")
        with kafka.running(LONG):
            compact(kafka)
        kafka.copy("after")


if __name__ == "__main__":
    main()
