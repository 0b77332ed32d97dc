"""Golden records: what a real Kafka writes into `__consumer_offsets`, and what it reads there.

    python -m tests.coordinator.golden.record --driver path/to/kafka [--port 19092]

Writes two files beside itself:

kafka_writes.json  records that a broker wrote while unmodified clients worked with it: key and
                   value in hex, the timestamp, and what kafka-dump-log prints for the record.
kafka_reads.json   records that our schemas wrote (samples.py), and what kafka-dump-log reads.

The driver is a script that understands `start DIR PORT [k=v ...]`, `stop DIR` and `dump-log ARGS`;
the environment variable KAFKA_DRIVER may name it instead. The tests need the two files only.
"""

import argparse
import json
import os
import re
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, Producer

from protocol.messages import RESPONSES, Request, Response
from protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from protocol.names import (
    NO_GENERATION,
    UNKNOWN_MEMBER_ID,
    ErrorCode,
    GenerationId,
    GroupId,
    GroupInstanceId,
    MemberId,
    TopicId,
    TopicName,
)
from storage.batch.record_batch import encode_batch, iter_batches, read_records
from tests.compare.wire import Wire
from tests.coordinator.golden.samples import sample_records

HERE: Final = Path(__file__).parent
PARTITIONS: Final = 4
SETTINGS: Final = (
    f"offsets.topic.num.partitions={PARTITIONS}",
    "group.initial.rebalance.delay.ms=0",
    "num.partitions=3",
)
_PRINTED: Final = re.compile(
    r"^\| offset: (\d+) .*? headerKeys: \[\] key: (\{.*?\}) payload: (.*)$"
)
ORDERS, AUDIT = TopicName("orders"), TopicName("audit")


def main() -> None:
    parser = argparse.ArgumentParser(description="Record what Kafka writes and reads.")
    parser.add_argument("--driver", default=os.environ.get("KAFKA_DRIVER"))
    parser.add_argument("--port", type=int, default=19092)
    options = parser.parse_args()
    if not options.driver:
        parser.error("name the driver script with --driver or KAFKA_DRIVER")
    with tempfile.TemporaryDirectory() as folder:
        keep("kafka_reads.json", read_by_kafka(options.driver, Path(folder)))
        keep("kafka_writes.json", written_by_kafka(options.driver, Path(folder), options.port))


def keep(name: str, records: list[dict[str, object]]) -> None:
    lines = ",\n".join(json.dumps(record, ensure_ascii=False) for record in records)
    (HERE / name).write_text(f"[\n{lines}\n]\n")
    print(f"{name}: {len(records)} records")


def read_by_kafka(driver: str, folder: Path) -> list[dict[str, object]]:
    file = folder / f"{0:020d}.log"
    file.write_bytes(encode_batch(sample_records(), 0, 1_700_000_000_000))
    return described(driver, file)


def written_by_kafka(driver: str, folder: Path, port: int) -> list[dict[str, object]]:
    subprocess.run([driver, "start", folder, str(port), *SETTINGS], check=True)
    try:
        play_all(port)
    finally:
        subprocess.run([driver, "stop", folder], check=True)
    records: list[dict[str, object]] = []
    for partition in range(PARTITIONS):
        for file in sorted((folder / "data").glob(f"__consumer_offsets-{partition}/*.log")):
            records += described(driver, file)
    return records


def described(driver: str, file: Path) -> list[dict[str, object]]:
    """Every record of a segment, beside what Kafka's own tool makes of it."""
    command = [driver, "dump-log", "--offsets-decoder", "--files", str(file)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    assert not any("isvalid: false" in line for line in lines), "a batch is not valid"
    printed = {int(m[1]): (m[2], m[3]) for m in map(_PRINTED.match, lines) if m}
    content = file.read_bytes()
    records: list[dict[str, object]] = []
    for position, header in iter_batches(content):
        if header.is_control:
            continue
        for offset, at_ms, key, value, _ in read_records(content, position):
            assert key is not None
            key_printed, value_printed = printed[offset]
            records.append(
                {
                    "key": key.hex(),
                    "value": None if value is None else value.hex(),
                    "timestamp_ms": at_ms,
                    "key_printed": json.loads(key_printed),
                    "value_printed": None if value is None else json.loads(value_printed),
                }
            )
    return records


# ---------------------------------------------------------------- what the clients do


class Broker:
    """One connection, as the scenes need it."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._wire = Wire(port, "recorder")
        created = self.ask(
            CreateTopicsRequest([CreatableTopic(ORDERS, 3, 1), CreatableTopic(AUDIT, 1, 1)]), 7
        )
        assert isinstance(created, CreateTopicsResponse)
        self.topic_ids: dict[TopicName, TopicId] = {t.name: t.topic_id for t in created.topics}
        self._wait_for_coordinator()

    def ask(self, request: Request, version: int) -> Response:
        self._wire.send(request, version)
        return self._wire.receive(RESPONSES[request.API_KEY], version)

    def _wait_for_coordinator(self) -> None:
        for _ in range(300):
            found = self.ask(FindCoordinatorRequest("simple"), 3)
            assert isinstance(found, FindCoordinatorResponse)
            if found.error_code is ErrorCode.NONE:
                return
            time.sleep(0.1)
        raise TimeoutError("no coordinator")

    def commit(
        self,
        version: int,
        group: str,
        partitions: list[OffsetCommitRequestPartition],
        *,
        topic: TopicName = ORDERS,
        generation_id: GenerationId = NO_GENERATION,
        member_id: MemberId = UNKNOWN_MEMBER_ID,
        instance_id: GroupInstanceId | None = None,
        retention_ms: int = -1,
    ) -> None:
        """Commit, again and again until the coordinator has loaded its partition."""
        asked = OffsetCommitRequestTopic(topic, self.topic_ids[topic], partitions)
        request = OffsetCommitRequest(
            GroupId(group), generation_id, member_id, instance_id, retention_ms, [asked]
        )
        for _ in range(100):
            answer = self.ask(request, version)
            assert isinstance(answer, OffsetCommitResponse)
            errors = {p.error_code for t in answer.topics for p in t.partitions}
            if errors == {ErrorCode.NONE}:
                return
            time.sleep(0.1)
        raise AssertionError(f"commit to {group}: {errors}")


def play_all(port: int) -> None:
    broker = Broker(port)
    simple_consumers(broker)
    connect_workers(broker)
    forgotten_offsets(broker)
    consumers(port)
    static_consumers(port)
    consumers_of_the_new_protocol(port)


def simple_consumers(broker: Broker) -> None:
    plain = OffsetCommitRequestPartition(0, 41)
    noted = OffsetCommitRequestPartition(1, 1 << 40, 7, "a note: é \U0001f600")
    bare = OffsetCommitRequestPartition(2, 0, -1, None)
    broker.commit(8, "simple", [plain, noted, bare])
    broker.commit(10, "simple-by-id", [plain, noted])
    broker.commit(10, "simple-by-id", [plain], topic=AUDIT)
    broker.commit(5, "simple-old", [plain])
    for version in (2, 3, 4):
        with_note = OffsetCommitRequestPartition(0, 41, -1, f"v{version}")
        broker.commit(version, "simple-expiring", [with_note], retention_ms=3_600_000)


def connect_workers(broker: Broker) -> None:
    """A group of a protocol type that nobody may look into; one static and one dynamic member."""
    group_id, instance_id = GroupId("connect-cluster"), GroupInstanceId("worker-1")
    protocols = [
        JoinGroupRequestProtocol("sessioned", b"\x00\x01opaque"),
        JoinGroupRequestProtocol("compatible", b"\x00\x00older"),
    ]
    join = JoinGroupRequest(
        group_id, 10_000, 60_000, UNKNOWN_MEMBER_ID, instance_id, "connect", protocols
    )
    joined = broker.ask(join, 5)
    while isinstance(joined, JoinGroupResponse) and joined.error_code:
        time.sleep(0.1)
        joined = broker.ask(join, 5)
    assert isinstance(joined, JoinGroupResponse)
    assigned = SyncGroupRequestAssignment(joined.member_id, b"\x00\x01\xff tasks")
    broker.ask(
        SyncGroupRequest(
            group_id, joined.generation_id, joined.member_id, instance_id, assignments=[assigned]
        ),
        3,
    )
    broker.commit(
        8,
        group_id,
        [OffsetCommitRequestPartition(0, 5, 1, "")],
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        instance_id=instance_id,
    )
    # A newcomer without an id: the group's first record of all is the empty one.
    broker.ask(
        JoinGroupRequest(GroupId("asked-only"), 10_000, 60_000, protocol_type="connect",
                         protocols=protocols),
        7,
    )  # fmt: skip


def forgotten_offsets(broker: Broker) -> None:
    both = [OffsetCommitRequestPartition(n, n) for n in (0, 1)]
    for group in ("forgotten", "deleted"):
        broker.commit(8, group, both)
    topic = OffsetDeleteRequestTopic(ORDERS, [OffsetDeleteRequestPartition(1)])
    broker.ask(OffsetDeleteRequest(GroupId("forgotten"), [topic]), 0)
    broker.ask(DeleteGroupsRequest([GroupId("deleted")]), 2)


def consumers(port: int) -> None:
    """One reads and commits with a note, another joins it, both leave."""
    produce(port)
    first = a_consumer(port, "consumers")
    read_some(first)
    first.commit(asynchronous=False)
    second = a_consumer(port, "consumers")
    until_assigned([first, second])
    first.close()
    until_assigned([second])
    second.close()


def static_consumers(port: int) -> None:
    """Two with instance ids; one comes back under a new member id within its session."""
    group = [a_consumer(port, "static", f"instance-{n}") for n in (1, 2)]
    until_assigned(group)
    group[1].close()
    returned = a_consumer(port, "static", "instance-2")
    until_assigned([group[0], returned])
    group[0].close()
    returned.close()


def consumers_of_the_new_protocol(port: int) -> None:
    first = a_consumer(port, "kip-848", **{"group.protocol": "consumer"})
    read_some(first)
    first.commit(asynchronous=False)
    second = a_consumer(port, "kip-848", **{"group.protocol": "consumer"})
    until_assigned([first, second])
    second.close()
    first.close()


def produce(port: int) -> None:
    producer = Producer({"bootstrap.servers": f"127.0.0.1:{port}"})
    for n in range(30):
        producer.produce(ORDERS, f"order {n}".encode(), partition=n % 3)
    producer.flush()


def a_consumer(port: int, group: str, instance: str | None = None, **more: str) -> Consumer:
    settings: dict[str, object] = {
        "bootstrap.servers": f"127.0.0.1:{port}",
        "group.id": group,
        "client.id": f"client-of-{group}",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        **more,
    }
    if instance is not None:
        settings["group.instance.id"] = instance
    consumer = Consumer(settings)
    consumer.subscribe([ORDERS])
    return consumer


def read_some(consumer: Consumer) -> None:
    for _ in range(600):
        if consumer.poll(0.1) is not None:
            return
    raise TimeoutError("nothing to read")


def until_assigned(group: list[Consumer]) -> None:
    """Until each has partitions, and all of them together have all."""
    for _ in range(600):
        for consumer in group:
            consumer.poll(0.05)
        counts = [len(consumer.assignment()) for consumer in group]
        if all(counts) and sum(counts) == 3:
            return
    raise TimeoutError("no assignment")


if __name__ == "__main__":
    main()
