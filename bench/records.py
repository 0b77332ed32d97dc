"""Commit in memory: the CPU time of deciding, encoding and applying one, in µs.

    .venv/bin/python -m bench.records

Each line is the best of several rounds of process time, which other load affects least. Also: bytes
of memory per live offset, µs per record of a load, and µs per record of a snapshot's fold when few
keys are committed repeatedly.
"""

import gc
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Collection, Sequence
from uuid import UUID

from broker.background.snapshot_job import take_snapshot
from coordinator.classic.events import SessionExtended
from coordinator.classic.evolve import evolve
from coordinator.classic.group import ClassicGroup, ClassicMember
from coordinator.group import CommittedOffset
from coordinator.offsets.events import OffsetsCommitted
from coordinator.offsets.evolve import evolve_offsets
from coordinator.offsets.offset_commit import decide_offset_commit
from coordinator.outcome import Outcome
from coordinator.records import add_offset_commits, read_offset_commit_value, read_offset_key
from coordinator.restore import apply_record
from coordinator.settings import GroupSettings
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.names import GenerationId, GroupId, GroupState, MemberId, TopicId, TopicName
from seams.now import Now
from seams.reply_token import ReplyToken
from storage.api import LogSettings, RecordPair, StoredRecord, TopicPartition
from storage.batch.record_batch import encode_batch
from storage.disk import RealDisk
from storage.log.partition_log import PartitionLog
from storage.snapshot import delete_snapshots_before

GROUP = GroupId("orders-consumers")
MEMBER = MemberId("rdkafka-1f0c6c9e-7a4e-4d0f-9f6b-2b7a51a0b3c5")
TOPIC = TopicName("orders.created.v1")
TOPIC_ID = UUID("6f1d3c1e-5b7a-4f0e-9d67-0c7b1a2f3e4d")
SETTINGS = GroupSettings()


class OneTopic:
    """A topic of a thousand partitions."""

    topics_version = 0

    def topic_names(self) -> Collection[TopicName]:
        return (TOPIC,)

    def partition_count(self, name: TopicName) -> int | None:
        return 1_000 if name == TOPIC else None

    def partition_racks(self, name: TopicName) -> Sequence[Sequence[str]]:
        return ((),) * (self.partition_count(name) or 0)

    def topic_id(self, name: TopicName) -> TopicId | None:
        return TOPIC_ID if name == TOPIC else None

    def topic_name(self, topic_id: TopicId) -> TopicName | None:
        return TOPIC if topic_id == TOPIC_ID else None


def best_us(work: Callable[[], object], times: int = 20_000, rounds: int = 7) -> float:
    best = float("inf")
    for _ in range(rounds):
        begun = time.process_time()
        for _ in range(times):
            work()
        best = min(best, time.process_time() - begun)
    return best / times * 1e6


def stable_group() -> ClassicGroup:
    group = ClassicGroup(GROUP, 0)
    member = ClassicMember(
        member_id=MEMBER,
        group_instance_id=None,
        client_id="rdkafka",
        client_host="/127.0.0.1",
        session_timeout_ms=45_000,
        rebalance_timeout_ms=300_000,
        protocol_type="consumer",
        protocols=(("range", b""),),
    )
    group.admit(member)
    member.session_deadline_ms = 45_000
    group.state = GroupState.STABLE
    group.generation_id = group.newest_generation_id = GenerationId(7)
    return group


def request_of(partitions: int) -> OffsetCommitRequest:
    asked = [OffsetCommitRequestPartition(n, 1_000_000 + n, 5, "") for n in range(partitions)]
    topic = OffsetCommitRequestTopic(TOPIC, partitions=asked)
    return OffsetCommitRequest(GROUP, GenerationId(7), MEMBER, None, -1, [topic])


def measure_commits() -> None:
    for partitions in (1, 10, 50):
        measure_commit(stable_group(), request_of(partitions))


def measure_commit(group: ClassicGroup, request: OffsetCommitRequest) -> None:
    topics, token = OneTopic(), ReplyToken(8, "rdkafka", "/127.0.0.1")
    now = Now(1_000, 1_700_000_000_000)

    def decide() -> Outcome:
        return decide_offset_commit(group, request, token, now, SETTINGS, topics)

    def core() -> None:
        for event in decide().events:
            if type(event) is OffsetsCommitted:
                evolve_offsets(group, event)
            elif type(event) is SessionExtended:
                evolve(group, event)

    core()
    commits = group.offsets[TOPIC]

    made: list[RecordPair] = []
    add_offset_commits(made, GROUP, TOPIC, commits, 4)

    def encode() -> None:
        add_offset_commits([], GROUP, TOPIC, commits, 4)

    def batch() -> None:
        encode_batch(made, 1 << 20, now.wall_ms, 3)

    print(
        f"{len(commits):3d} partitions: encode {best_us(encode):6.2f} µs, "
        f"batch {best_us(batch):6.2f} µs, "
        f"decide {best_us(decide):6.2f} µs, decide and evolve {best_us(core):6.2f} µs"
    )


def stored_records(groups: int, topics: int, partitions: int) -> list[StoredRecord]:
    """A log in which every group has committed each of its topics once."""
    stored: list[StoredRecord] = []
    for group in range(groups):
        made: list[RecordPair] = []
        at_ms = 1_700_000_000_000 + group
        for topic in range(topics):
            commits = {
                n: CommittedOffset(1_000_000 + group + n, 5, "", at_ms, -1, UUID(int=topic + 1))
                for n in range(partitions)
            }
            name = TopicName(f"orders.created.v{topic}")
            add_offset_commits(made, GroupId(f"group-{group}"), name, commits, 4)
        stored += (StoredRecord(len(stored) + i, at_ms, *made[i]) for i in range(len(made)))
    return stored


def measure_load() -> None:
    records = stored_records(500, 5, 10)
    record = records[0]
    assert record.key is not None
    assert record.value is not None
    key, value = record.key, record.value
    read_us = best_us(lambda: (read_offset_key(key), read_offset_commit_value(value)))
    print(f"read a key and a value: {read_us:.2f} µs")
    for shape, groups, topics, partitions in (
        ("500 groups of 5 topics of 10 partitions", 500, 5, 10),
        ("2,500 groups of 1 topic of 10 partitions", 2_500, 1, 10),
        ("5,000 groups of 5 topics of 1 partition", 5_000, 5, 1),
    ):
        records = stored_records(groups, topics, partitions)
        gc.collect()
        tracemalloc.start()
        restored: dict[GroupId, ClassicGroup] = {}
        for record in records:
            apply_record(restored, record)
        memory, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        begun = time.process_time()
        again: dict[GroupId, ClassicGroup] = {}
        for record in records:
            apply_record(again, record)
        spent = time.process_time() - begun
        print(
            f"{shape}: {memory / len(records):.0f} bytes per live offset, "
            f"{spent / len(records) * 1e6:.2f} µs per record loaded"
        )


def measure_fold(partitions: int, commits: int) -> None:
    """Ten members of a group commit this number of partitions each, in turn."""
    key = TopicPartition("__consumer_offsets", 0)
    with tempfile.TemporaryDirectory() as home:
        folder = f"{home}/{key.topic}-{key.partition}"
        log = PartitionLog(RealDisk(), folder, key, LogSettings())
        log.create(TOPIC_ID)
        end = 0
        for number in range(commits):
            first, at_ms = number % 10 * partitions, 1_700_000_000_000 + number
            offsets = {
                n: CommittedOffset(number, 5, "", at_ms, -1, TOPIC_ID)
                for n in range(first, first + partitions)
            }
            made: list[RecordPair] = []
            add_offset_commits(made, GROUP, TOPIC, offsets, 4)
            batch = encode_batch(made, end, at_ms, 3)
            end += len(made)
            log.append_placed([(batch, end - 1, at_ms)], at_ms)
        job = {"folder": folder, "up_to": end, "topic_id": str(TOPIC_ID), "now_ms": 0}

        def fold_again() -> None:
            delete_snapshots_before(RealDisk(), folder, end + 1)
            take_snapshot(RealDisk(), dict(job))

        print(f"fold, {partitions:2d} partitions: {best_us(fold_again, 1) / end:.2f} µs per record")


if __name__ == "__main__":
    measure_commits()
    measure_load()
    measure_fold(1, 10_000)
    measure_fold(10, 2_000)
