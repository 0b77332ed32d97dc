"""Group of three: unmodified consumers share a topic, lose and gain a member, survive kill -9.

10,000 keyed messages on 6 partitions. The same story for the members of each client library and for
one group in which all libraries meet. What must hold is read from two sides: what the
members say, and what `__consumer_offsets` holds afterwards.
"""

from collections.abc import Iterable

import pytest
from confluent_kafka import Producer

from tests.conftest import StartDaemon
from tests.interop.conftest import SETTINGS, create_topic
from tests.interop.group import members
from tests.interop.members.client import Options
from tests.interop.offsets_log import stored_commits, stored_generations

PARTITIONS = 6
TOPIC = "orders"
GROUP = "billing"

MEMBERS = [  # three from the beginning, and the newcomer
    pytest.param(("confluent",) * 4, id="confluent"),
    pytest.param(("kafka_python",) * 4, id="kafka-python"),
    pytest.param(("aiokafka",) * 4, id="aiokafka"),
    pytest.param(("confluent", "kafka_python", "aiokafka", "java"), id="all-together"),
]


def produce(bootstrap: str, numbers: Iterable[int]) -> None:
    """Keyed messages; returns when the daemon has acknowledged every one of them."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 5})
    for number in numbers:
        producer.produce(TOPIC, key=f"customer-{number % 997}", value=f"order {number}")
    assert producer.flush(60) == 0, "messages were not acknowledged"


@pytest.mark.parametrize("libraries", MEMBERS)
def test_a_group_reads_everything_through_a_lost_member_a_new_one_and_kill_9(
    start_daemon: StartDaemon, libraries: tuple[str, ...]
) -> None:
    daemon = start_daemon(SETTINGS)
    create_topic(daemon.bootstrap, TOPIC, PARTITIONS)
    produce(daemon.bootstrap, range(4_000))

    options = Options(daemon.bootstrap, TOPIC, GROUP, session_timeout_ms=6_000)
    with members() as (witness, start):
        # Given a group of three that reads.
        first, second, third = (
            start(f"m{n}", library, options) for n, library in enumerate(libraries[:3], start=1)
        )
        witness.wait_for(
            "three members with partitions",
            lambda: witness.share((first, second, third), PARTITIONS),
        )
        witness.wait_for("some messages", lambda: witness.messages_read >= 500)

        # When a member dies without a word, and another one comes.
        third.kill()
        fourth = start("m4", libraries[3], options)
        produce(daemon.bootstrap, range(4_000, 7_000))
        witness.wait_for(
            "the newcomer's share", lambda: witness.share((first, second, fourth), PARTITIONS)
        )

        # And the daemon is killed in the middle of it all.
        daemon.kill()
        daemon.start()
        produce(daemon.bootstrap, range(7_000, 10_000))

        # Then every message is read, by members that found their way back by themselves.
        witness.wait_for("all messages", lambda: witness.messages_read == 10_000)
        for member in (first, second, fourth):
            member.check_alive()
            member.stop()

    daemon.stop()
    generations = stored_generations(daemon.data_dir, GROUP)
    assert len(generations) >= 2  # the three, and the newcomer; then those who leave at the end
    for generation in generations:
        given = [p for member in generation.members for p in member.assigned.get(TOPIC, ())]
        assert len(given) == len(set(given)), f"two owners in generation {generation.number}"
    numbers = [generation.number for generation in generations]
    assert numbers == sorted(numbers)
    for number in set(numbers):
        same = [g.member_ids for g in generations if g.number == number]
        assert all(ids == same[0] for ids in same), f"generation {number} with different members"

    commits = stored_commits(daemon.data_dir, GROUP)
    assert {partition for _, partition in commits} == set(range(PARTITIONS))
    for (topic, partition), offsets in commits.items():
        story = "\n".join(witness.about(partition))
        assert offsets == sorted(offsets), f"a commit of {topic}-{partition} went back:\n{story}"
