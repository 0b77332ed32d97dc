"""Kills under load: every acknowledged commit is there after kill -9 at any moment.

Members of a group and consumers without one commit as fast as they are answered, librdkafka commits
and produces, a second group rebalances all the time, and an operator creates, deletes, grows and
fills topics and takes producer ids; at a moment drawn from a seed the daemon is killed, started
again on the same data, and asked. The load then goes on where it was. Segments roll and checkpoints
run all the time. DRILL_KILLS sets how often (`make drill` does it 200 times, `make long-kills`
1,000 times), DRILL_SEED the moments.
"""

import os
import random
import time

import confluent_kafka
import pytest

from protocol.names import NO_GENERATION
from storage.batch.record_batch import iter_batches, stored_records
from tests.conftest import StartDaemon
from tests.drills.admin_load import Operator, Restless
from tests.drills.crowd import (
    TIMEOUT_S,
    Crowd,
    Place,
    RawMember,
    committed_offsets,
    same_members_in_each_generation,
)
from tests.interop.conftest import SETTINGS, create_topic
from tests.interop.offsets_log import stored_commits

KILLS = int(os.environ.get("DRILL_KILLS", "10"))
SEED = os.environ.get("DRILL_SEED") or str(random.randrange(1_000_000))

TOPIC = "orders"
MEMBERS = 3
RESTLESS = 3
ALONE = 5  # consumers without a group's membership, each with offsets of its own
FLUSH_MS = 6  # about two of the disk's: a kill may come at any moment of one


SMALL_FILES = {
    "rollcall.checkpoint.bytes": "65536",
    "log.roll.ms": "100",
    "rollcall.snapshot.bytes": "4096",
}


class Librdkafka:
    """Commits and produces through the library, which asks again what was not answered."""

    GROUP = "librdkafka"

    def __init__(self, bootstrap: str, partition: int) -> None:
        self.partition = partition
        self.sent = self.acknowledged = self.produced = 0
        self.values: set[bytes] = set()  # acknowledged ones
        self._in_flight = False
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": self.GROUP,
                "enable.auto.commit": False,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 50,
                "log_level": 0,
                "on_commit": self._committed,
            }
        )
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "linger.ms": 0,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 50,
            }
        )

    def act(self) -> None:
        """Some more of both; the library's own threads send them."""
        if not self._in_flight:
            # One at a time: what is asked again after a lost connection may overtake the next.
            self._in_flight = True
            self.sent += 1
            position = confluent_kafka.TopicPartition(TOPIC, self.partition, self.sent)
            self._consumer.commit(offsets=[position], asynchronous=True)
        for _ in range(5):
            self.produced += 1
            value = f"value {self.produced}".encode()
            self._producer.produce(
                TOPIC, value, partition=self.partition, on_delivery=self._delivered
            )
        self.hear()

    def hear(self) -> None:
        self._consumer.poll(0)
        self._producer.poll(0)

    def finish(self) -> None:
        assert self._producer.flush(TIMEOUT_S) == 0
        deadline = time.monotonic() + TIMEOUT_S
        while self._in_flight:
            assert time.monotonic() < deadline, "a commit is never answered"
            self._consumer.poll(0.1)
        self.sent += 1
        position = confluent_kafka.TopicPartition(TOPIC, self.partition, self.sent)
        self._consumer.commit(offsets=[position], asynchronous=False)
        self.acknowledged = self.sent
        self._consumer.close()

    def _committed(
        self,
        error: confluent_kafka.KafkaError | None,
        partitions: list[confluent_kafka.TopicPartition],
    ) -> None:
        self._in_flight = False
        if error is None:
            offsets = [partition.offset for partition in partitions if partition.error is None]
            self.acknowledged = max([self.acknowledged, *offsets])

    def _delivered(
        self, error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message
    ) -> None:
        value = message.value()
        if error is None and value is not None:
            self.values.add(value)


class Alone(RawMember):
    """Commits without being a member of anything, and never does anything else."""

    def __init__(self, name: str, group: str, topic: str, partition: int) -> None:
        super().__init__(name, group, topic, partition)
        self.place = Place.INSIDE

    def act(self) -> None:
        self._beats_next = False
        super().act()


@pytest.mark.timeout(300 + 15 * KILLS)  # on a busy machine a kill and its checks take seconds
@pytest.mark.parametrize(
    ("flush", "kills"),
    [
        pytest.param("commit", KILLS, id="each-commit-fsynced"),
        pytest.param("os", max(KILLS // 3, 1), id="in-the-page-cache"),
    ],
)
def test_no_acknowledged_commit_is_lost(start_daemon: StartDaemon, flush: str, kills: int) -> None:
    print(f"DRILL_SEED={SEED}")
    moments = random.Random(SEED)
    daemon = start_daemon({**SETTINGS, **SMALL_FILES, "rollcall.flush": flush})
    create_topic(daemon.bootstrap, TOPIC, MEMBERS + ALONE + RESTLESS + 1)
    library = Librdkafka(daemon.bootstrap, MEMBERS + ALONE)
    members = [RawMember(f"m{n}", "billing", TOPIC, n) for n in range(MEMBERS)]
    alone = [Alone(f"a{n}", f"alone-{n}", TOPIC, MEMBERS + n) for n in range(ALONE)]
    first = MEMBERS + ALONE + 1
    restless = [Restless(f"r{n}", "restless", TOPIC, first + n, SEED) for n in range(RESTLESS)]
    operator = Operator(SEED)
    committers = [*members, *alone, *restless]
    crowd = Crowd(daemon.port, [*committers, operator])
    crowd.go_on_until(
        lambda: (
            len({m.generation for m in members} - {NO_GENERATION}) == 1
            and all(m.acknowledged_offset for m in crowd.members)
        ),
        "a group of three, and commits by all",
    )
    generation = members[0].generation
    for member in members:
        member.errors.clear()  # those of finding together

    for kill in range(kills):
        library.act()
        crowd.commit(moments.randrange(8, 400))
        library.act()
        time.sleep(moments.uniform(0, FLUSH_MS / 1000))  # the moment of the kill, within a flush
        daemon.kill()
        if kill % 100 == 99:
            print(f"{kill + 1} kills")
        crowd.hear_the_last()
        library.hear()
        daemon.start()

        operator.check(daemon.port)
        for member in committers:
            (committed,) = committed_offsets(daemon.port, member.group, TOPIC, [member.partition])
            assert member.acknowledged_offset <= committed <= member.sent_offset, member.name
        (committed,) = committed_offsets(daemon.port, library.GROUP, TOPIC, [library.partition])
        assert library.acknowledged <= committed <= library.sent

    # The members went on through all of it in the generation that they had.
    crowd.finish()
    library.finish()
    assert library.values
    assert all(m.acknowledged_offset == m.sent_offset for m in [*members, *alone])
    same_members_in_each_generation(restless)
    assert operator.errors == []
    assert set(operator.confirmed.done) == {"create", "delete", "grow", "ids", "produce"}
    generations = max(m.generation for m in restless)
    print(f"{kills} kills, {generations} generations, {operator.confirmed.done}")
    assert [(m.generation, m.errors) for m in members] == [(generation, [])] * MEMBERS
    daemon.stop()
    stored = [
        record.value
        for path in sorted(daemon.data_dir.glob(f"{TOPIC}-{library.partition}/*.log"))
        for batch in _batches(path.read_bytes())
        for record in stored_records(batch)
    ]
    assert library.values <= set(stored)
    assert any(
        len(list(folder.glob("*.log"))) > 2
        for folder in daemon.data_dir.glob("__consumer_offsets-*")
    ), "no segment was rolled"
    for member in [*members, *alone]:
        offsets = stored_commits(daemon.data_dir, member.group)[TOPIC, member.partition]
        assert offsets == sorted(set(offsets)), "a commit went back, or was stored twice"
        assert offsets[-1] == member.acknowledged_offset


def _batches(content: bytes) -> list[bytes]:
    return [content[at : at + header.size] for at, header in iter_batches(content)]
