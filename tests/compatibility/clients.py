"""Clients of the fixtures: what real clients do to the daemon before it is stopped or killed.

Three libraries: librdkafka, kafka-python and aiokafka. `FirstDay` writes what the stopped
directory has, `SecondDay` what the killed one has beyond it. A member whose object stays open
until the daemon is down is still a member in the files.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Final

import aiokafka
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka import TopicPartition as PythonPartition
from kafka.structs import OffsetAndMetadata

WAIT_S: Final = 60
SESSION_MS: Final = 300_000  # no member expires while a test looks at it
IDEMPOTENT_TOPIC: Final = "payments"
KEPT: Final = {"retention.ms": "-1"}
UNICODE_GROUP: Final = "größe-☃"


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "it never came to this"


class Day:
    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.admin = AdminClient({"bootstrap.servers": bootstrap})
        self.members: list[Consumer] = []

    def close(self) -> None:
        """Without a daemon: nothing of it is written any more."""
        for member in self.members:
            member.close()

    def consumer(self, group: str, instance: str | None = None, **settings: object) -> Consumer:
        given = {
            "bootstrap.servers": self.bootstrap,
            "group.id": group,
            "client.id": f"{group}-{instance or 'client'}",
            "session.timeout.ms": SESSION_MS,
            "max.poll.interval.ms": SESSION_MS,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "log_level": 2,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        if instance is not None:
            given["group.instance.id"] = instance
        return Consumer(given)

    def together(self, members: Sequence[Consumer]) -> None:
        """Poll until each owns something, and no share changes any more."""
        still = 0
        last: list[list[TopicPartition]] = []
        deadline = time.monotonic() + WAIT_S
        while still < 5:
            assert time.monotonic() < deadline, "they do not come together"
            for member in members:
                member.poll(0.05)
            shares = [sorted(map(str, member.assignment())) for member in members]
            still = still + 1 if shares == last and all(shares) else 0
            last = shares  # type: ignore[assignment]  # texts, compared only

    def commit(self, group: str, *offsets: TopicPartition) -> None:
        """By nobody: the group has no members."""
        consumer = self.consumer(group)
        consumer.commit(offsets=list(offsets), asynchronous=False)
        consumer.close()


class FirstDay(Day):
    def write(self) -> None:
        self.make_topics()
        self.produce()
        self.billing()
        self.static_members()
        self.commits_of_nobody()
        self.changes_by_admins()
        asyncio.run(self.aio())

    def make_topics(self) -> None:
        topics = [
            NewTopic("orders", 4, 1, config={**KEPT, "max.message.bytes": "200000"}),
            NewTopic(
                IDEMPOTENT_TOPIC, 2, 1, config={**KEPT, "message.timestamp.type": "LogAppendTime"}
            ),
            NewTopic(
                "customers",
                1,
                1,
                config={"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.9"},
            ),
            NewTopic("rolled", 1, 1, config={**KEPT, "segment.bytes": "1048576"}),
            NewTopic("doomed", 2, 1),
        ]
        for made in self.admin.create_topics(topics).values():
            made.result(WAIT_S)
        for grown in self.admin.create_partitions([NewPartitions(IDEMPOTENT_TOPIC, 3)]).values():
            grown.result(WAIT_S)

    def produce(self) -> None:
        """Batches in each codec, with headers, without keys, with nulls; and a topic deleted."""
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            producer = Producer(
                {
                    "bootstrap.servers": self.bootstrap,
                    "compression.type": codec,
                    "linger.ms": 20,
                }
            )
            for number in range(60):
                producer.produce(
                    "orders",
                    f"{codec} {number} " + "x" * (number % 7 * 20),
                    key=None if number % 5 == 0 else f"k{number % 11}",
                    partition=number % 4,
                    headers=[("codec", codec.encode()), ("null", None)] if number % 3 else None,
                )
            assert producer.flush(WAIT_S) == 0
        idempotent = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "enable.idempotence": True,
                "compression.type": "zstd",
            }
        )
        for part in range(4):
            for number in range(10):
                idempotent.produce(IDEMPOTENT_TOPIC, f"{part} {number}", partition=number % 3)
            assert idempotent.flush(WAIT_S) == 0
        python = KafkaProducer(bootstrap_servers=self.bootstrap, compression_type="gzip")
        for number in range(50):
            value = None if number % 10 == 9 else b"customer %d" % number
            python.send("customers", value, key=b"c%d" % (number % 13))
            python.send("rolled", b"r%d" % number)
            python.send("doomed", b"d%d" % number)
        python.flush(WAIT_S)
        python.close()
        for gone in self.admin.delete_topics(["doomed"]).values():
            gone.result(WAIT_S)

    def billing(self) -> None:
        """Joins, rebalances, a member of another library, and the last one leaves."""
        first, second = self.consumer("billing"), self.consumer("billing")
        for member in (first, second):
            member.subscribe(["orders"])
        self.together([first, second])
        self.progress("billing", [first, second], 30)
        third = KafkaConsumer(
            "orders",
            bootstrap_servers=self.bootstrap,
            group_id="billing",
            client_id="billing-python",
            enable_auto_commit=False,
            session_timeout_ms=30_000,
            max_poll_interval_ms=SESSION_MS,
        )
        deadline = time.monotonic() + WAIT_S
        while not third.assignment():
            assert time.monotonic() < deadline, "kafka-python is given nothing"
            third.poll(50)
            for member in (first, second):
                member.poll(0.02)
        partition = next(iter(third.assignment()))
        third.commit({partition: OffsetAndMetadata(7, "from kafka-python", -1)})
        third.close(autocommit=False)
        second.close()
        self.together([first])
        self.progress("billing", [first], 10)
        first.close()

    def progress(self, group: str, members: Sequence[Consumer], rounds: int) -> None:
        """Commits that a sampler sees as a consumer that goes on: one each 200 ms or so."""
        for number in range(1, rounds + 1):
            for member in members:
                offsets = [
                    TopicPartition(
                        partition.topic, partition.partition, number, f"{group} at {number}"
                    )
                    for partition in member.assignment()
                ]
                member.commit(offsets=offsets, asynchronous=False)
            time.sleep(0.05)

    def static_members(self) -> None:
        """Two that stay members when they are closed, one of them restarted; and one dynamic."""
        for name in ("i-1", "i-2"):
            self.members.append(self.consumer("static", name))
            self.members[-1].subscribe(["orders", "rolled"])
        self.together(self.members)
        self.progress("static", self.members, 20)
        replaced = self.members.pop(0)
        replaced.close()
        again = self.consumer("static", "i-1")
        again.subscribe(["orders", "rolled"])
        self.members.insert(0, again)
        self.together(self.members)
        cooperative = self.consumer(
            "cooperative", partition_assignment_strategy="cooperative-sticky"
        )
        cooperative.subscribe(["orders", IDEMPOTENT_TOPIC])
        self.together([cooperative])
        joined = self.consumer("cooperative", partition_assignment_strategy="cooperative-sticky")
        joined.subscribe(["orders", IDEMPOTENT_TOPIC])
        self.together([cooperative, joined])
        self.progress("cooperative", [cooperative, joined], 20)
        self.members += [cooperative, joined]

    def commits_of_nobody(self) -> None:
        for number in range(60):
            self.commit("simple", TopicPartition("orders", number % 4, number, f"note {number}"))
        self.commit(UNICODE_GROUP, TopicPartition("orders", 0, 5, "größer ☃"))
        consumer = KafkaConsumer(
            bootstrap_servers=self.bootstrap, group_id="python-simple", enable_auto_commit=False
        )
        consumer.assign([PythonPartition("customers", 0)])
        consumer.commit({PythonPartition("customers", 0): OffsetAndMetadata(13, "", 0)})
        consumer.close(autocommit=False)

    def changes_by_admins(self) -> None:
        """Deletions, a reset, and a static member that an operator removes."""
        for group in ("deleted", "reset", "partial"):
            self.commit(group, *(TopicPartition("orders", n, 20 + n, group) for n in range(4)))
        for gone in self.admin.delete_consumer_groups(["deleted"]).values():
            gone.result(WAIT_S)
        moved = [TopicPartition("orders", n, 3 * n) for n in range(3)]
        reset = self.admin.alter_consumer_group_offsets(
            [ConsumerGroupTopicPartitions("reset", moved)]
        )
        for done in reset.values():
            done.result(WAIT_S)
        python = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        python.delete_group_offsets("partial", [PythonPartition("orders", 1)])
        expelled = self.consumer("expelled", "i-9")
        expelled.subscribe(["rolled"])
        self.together([expelled])
        self.progress("expelled", [expelled], 5)
        expelled.close()
        from kafka.admin import MemberToRemove

        python.remove_group_members("expelled", [MemberToRemove(group_instance_id="i-9")])
        python.close()

    async def aio(self) -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            "orders",
            bootstrap_servers=self.bootstrap,
            group_id="aio",
            client_id="aio-1",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )
        await consumer.start()
        await consumer.getone()
        for number in range(1, 61):
            offsets = {
                partition: aiokafka.structs.OffsetAndMetadata(number, f"aio {number}")
                for partition in consumer.assignment()
            }
            await consumer.commit(offsets)
            await asyncio.sleep(0.05)
        await consumer.stop()


class SecondDay(FirstDay):
    """After a restart: groups that go on, groups that are new, and nothing that waits."""

    def write(self) -> None:
        first = self.consumer("billing")
        first.subscribe(["orders"])
        self.together([first])
        self.progress("billing", [first], 40)
        self.members.append(first)
        new = self.consumer("new", "n-1")
        new.subscribe(["orders"])
        self.together([new])
        self.progress("new", [new], 20)
        self.members.append(new)
        for number in range(20):
            self.commit("simple", TopicPartition("orders", number % 4, 100 + number, "later"))
        for gone in self.admin.delete_consumer_groups(["python-simple"]).values():
            gone.result(WAIT_S)
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "enable.idempotence": True,
                "compression.type": "lz4",
            }
        )
        for number in range(30):
            producer.produce(IDEMPOTENT_TOPIC, f"later {number}", partition=number % 3)
            producer.flush(WAIT_S)
