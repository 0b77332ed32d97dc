"""Consumer groups with real clients: which libraries, their daemon, and who owned what when.

`make test` runs the short cases with librdkafka, `make long-consumer-clients` (CONSUMER_CLIENTS=1)
all cases with librdkafka, Java and franz-go.
"""

import os
from collections.abc import Iterable, Sequence
from itertools import count

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourceType,
)

from tests.broker.daemon import Daemon
from tests.interop.conftest import create_topic
from tests.interop.group import FRANZ_GO, Member, Start, Witness
from tests.interop.members.client import CONSUMER_PROTOCOL, Options, Partition
from tests.interop.offsets_log import stored_commits

LONG = os.environ.get("CONSUMER_CLIENTS", "") not in ("", "0")
LIBRARIES = ("confluent", "java", FRANZ_GO) if LONG else ("confluent",)
LONG_ONLY = pytest.mark.skipif(not LONG, reason="CONSUMER_CLIENTS is not set")
EACH_CONSUMER = pytest.mark.parametrize("library", LIBRARIES)

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.assignment.interval.ms": "100",
    "group.consumer.session.timeout.ms": "30000",  # longer than a busy machine stops a process
}
MISSED_AFTER_MS = 2_000  # session timeout of a group whose member is to be missed


class Topic:
    """A topic, and the messages that were written to it so far."""

    def __init__(self, daemon: Daemon, name: str, partitions: int) -> None:
        self.name = name
        self.partitions = partitions
        self.messages = 0
        self._daemon = daemon
        create_topic(daemon.bootstrap, name, partitions)

    def write(self, messages: int) -> None:
        """In turn to all partitions; returns when every one is acknowledged."""
        producer = Producer({"bootstrap.servers": self._daemon.bootstrap, "acks": "all"})
        for n in range(messages):
            producer.produce(self.name, f"message {n}", partition=n % self.partitions)
        assert producer.flush(60) == 0, "messages were not acknowledged"
        self.messages += messages

    def grow(self, partitions: int) -> None:
        admin = AdminClient({"bootstrap.servers": self._daemon.bootstrap})
        admin.create_partitions([NewPartitions(self.name, partitions)])[self.name].result(60)
        self.partitions = partitions


_numbers = count(1)


def given_topic(daemon: Daemon, partitions: int, messages: int = 0) -> Topic:
    topic = Topic(daemon, f"fleet-{next(_numbers)}", partitions)
    topic.write(messages)
    return topic


def options_of(daemon: Daemon, topic: Topic, protocol: str = CONSUMER_PROTOCOL) -> Options:
    """A group of its own for each topic."""
    return Options(daemon.bootstrap, topic.name, f"group-of-{topic.name}", group_protocol=protocol)


def given_members(
    witness: Witness, start: Start, library: str, topic: Topic, *options: Options
) -> list[Member]:
    """Members m1, m2, ... that share the topic and have read what is there.

    Each comes when the others are settled, and the first one has read everything, because of two
    races of librdkafka 2.16 that no coordinator can prevent. While it looks up the beginning of a
    partition that has no committed offset, a rebalance makes it read the partition again later. A
    member that has just joined may report that it owns nothing after it was assigned partitions; if
    the group changes in this moment, others get them before it stops reading.
    """
    running = [start("m1", library, options[0])]
    wait_for_messages(witness, topic)
    for n, of_one in enumerate(options[1:], start=2):
        running.append(start(f"m{n}", library, of_one))
        wait_for_share(witness, running, topic)
    return running


def set_session_timeout(daemon: Daemon, group: str, timeout_ms: int) -> None:
    """Of one group, as kafka-configs does."""
    entry = ConfigEntry(
        "consumer.session.timeout.ms",
        str(timeout_ms),
        incremental_operation=AlterConfigOpType.SET,
    )
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": daemon.bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(60)


def check_one_owner(witness: Witness) -> None:
    """No partition had two owners at any time, as the members reported it.

    A member owns a partition from the callback that assigns it to the callback that takes it, its
    own close or its death. The lines of different processes are ordered by their times.
    """
    owners: dict[Partition, str] = {}
    for name, fact in sorted(witness.events, key=lambda heard: heard[1]["at_ns"]):
        match fact["event"]:
            case "assigned":
                for partition in fact["partitions"]:
                    owner = owners.setdefault(partition, name)
                    story = "\n".join(witness.about(partition))
                    assert owner == name, f"{partition}: {owner} and {name} own it\n{story}"
            case "revoked":
                for partition in fact["partitions"]:
                    if owners.get(partition) == name:
                        del owners[partition]
            case "closing" | "killed":
                owners = {p: owner for p, owner in owners.items() if owner != name}


def check_commits(witness: Witness, daemon: Daemon, topic: Topic) -> None:
    """None went back, and none is lost of which a member heard that it was done."""
    commits = stored_commits(daemon.data_dir, f"group-of-{topic.name}")
    assert len(commits) == topic.partitions
    for partition, offsets in commits.items():
        assert offsets == sorted(offsets), f"a commit of {partition} went back"
    for _, fact in witness.events:
        if fact["event"] == "committed":
            for partition, offset in fact["offsets"].items():
                assert commits[topic.name, int(partition)][-1] >= offset, "a commit was lost"


def wait_for_messages(witness: Witness, *topics: Topic) -> None:
    expected = sum(topic.messages for topic in topics)
    witness.wait_for("all messages", lambda: witness.messages_read == expected)


def wait_for_share(witness: Witness, members: Sequence[Member], topic: Topic) -> None:
    """An even one, as the assignors make it: while partitions still move, a share is uneven."""

    def even() -> bool:
        sizes = [len(witness.owned(member.name) or ()) for member in members]
        return witness.share(members, topic.partitions) and max(sizes) - min(sizes) <= 1

    witness.wait_for(f"{len(members)} that share {topic.partitions} partitions", even)


def times_read(witness: Witness) -> int:
    """How many messages were handed to members, repetitions included."""
    return sum(len(fact["offsets"]) for _, fact in witness.events if fact["event"] == "read")


def stop_all(members: Iterable[Member]) -> None:
    for member in members:
        member.check_alive()
        member.stop()
