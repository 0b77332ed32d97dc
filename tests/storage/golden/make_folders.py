"""Golden folders: records those that a real Kafka leaves: tests/storage/golden/folders.tar.gz.

    .venv/bin/python -m tests.storage.golden.make_folders --driver DRIVER [--port 21180]

DRIVER is `start DIR PORT [k=v ...]`, `stop DIR`. The archive has the folders and checkpoint files
twice: `killed/` as after kill -9, `stopped/` after a start on them and a clean stop. Beside it
`folders.json` has what a consumer reads of each partition, the same both times.
"""

import argparse
import gzip
import io
import json
import os
import signal
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from protocol.names import ErrorCode, TopicName
from storage.api import Record
from storage.batch.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD
from storage.batch.record_batch import encode_batch, read_header
from storage.batch.rewrite import recompressed
from tests.compare.wire import Wire
from tests.simulator.kafka_folders import ARCHIVE, READ

CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
    ".kafka_cleanshutdown",
)
CODECS = (NONE, GZIP, SNAPPY, LZ4, ZSTD)
NOT_YET = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)
WAIT_S = 60
LOG_LEVEL = 2  # of the client library: that a killed broker does not answer is no news
PROPERTIES = (
    "offsets.topic.num.partitions=1",
    "log.flush.offset.checkpoint.interval.ms=200",
    "log.flush.start.offset.checkpoint.interval.ms=200",
    "log.retention.check.interval.ms=200",
    "log.initial.task.delay.ms=200",
    "log.cleaner.backoff.ms=200",
)
SMALL = {
    "internal.segment.bytes": "1200",
    "segment.index.bytes": "240",  # preallocated while the segment is the active one
    "index.interval.bytes": "150",
    "retention.ms": "-1",
}
TOPICS: Mapping[str, tuple[int, Mapping[str, str]]] = {
    "rolled": (2, SMALL),
    "compacted": (
        1,
        {
            **SMALL,
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": "0.01",
            "delete.retention.ms": "0",
        },
    ),
    "produced": (1, SMALL),
    "started": (1, SMALL),
}


class Writing:
    """What is written, batch by batch, as a producer would; all of it is acknowledged."""

    def __init__(self, port: int) -> None:
        self._wire = Wire(port, "recording")
        self.at_ms = int(time.time() * 1_000) - 3_600_000
        self._count = 0
        self._sequences: dict[tuple[int, str], int] = {}
        self.greatest_producer_ids: dict[str, int] = {}

    def producer_id(self, *, after: int = 0) -> int:
        """The next one, once so many were given to others."""
        for _ in range(after):
            self.producer_id()
        given: list[int] = []

        def is_given() -> bool:
            self._wire.send(InitProducerIdRequest(transactional_id=None), 4)
            answer = self._wire.receive(InitProducerIdResponse, 4)
            assert isinstance(answer, InitProducerIdResponse)
            assert answer.error_code in (ErrorCode.NONE, *NOT_YET), answer.error_code
            given.append(answer.producer_id)
            return answer.error_code == ErrorCode.NONE

        until("no producer id", is_given)
        return given[-1]

    def batch(
        self,
        topic: str,
        *keys: str,
        partition: int = 0,
        producer_id: int = -1,
        codec: int = NONE,
        timed: bool = True,
        value: str | None = "",
    ) -> None:
        """One with a record per key; `value` None makes tombstones."""
        records = []
        for key in keys:
            self._count += 1
            content = None if value is None else f"{self._count}-{value}".encode()
            records.append(Record(key.encode(), content))
        self.at_ms += 1_000
        at_ms = self.at_ms if timed else -1
        sequence = -1
        if producer_id >= 0:
            folder = f"{topic}-{partition}"
            greatest = self.greatest_producer_ids
            greatest[folder] = max(greatest.get(folder, -1), producer_id)
            place = (producer_id, folder)
            sequence = self._sequences.get(place, 0)
            self._sequences[place] = sequence + len(records)
        epoch = 0 if producer_id >= 0 else -1
        plain = encode_batch(records, 0, at_ms, -1, producer_id, epoch, sequence)
        content = recompressed(plain, read_header(plain), codec, None)
        data = TopicProduceData(
            TopicName(topic), partition_data=(PartitionProduceData(partition, content),)
        )
        request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=(data,))
        until(f"{topic} is not written to", lambda: self._is_taken(request))

    def _is_taken(self, request: ProduceRequest) -> bool:
        """A topic that was created just now has no leader yet."""
        self._wire.send(request, 9)
        answer = self._wire.receive(ProduceResponse, 9)
        assert isinstance(answer, ProduceResponse)
        error = answer.responses[0].partition_responses[0].error_code
        assert error in (ErrorCode.NONE, *NOT_YET), error
        return error == ErrorCode.NONE


def write(writing: Writing) -> None:
    """Several segments of each; the last of each has something above its first batch."""
    keys = [f"key-{number}" for number in range(8)]
    for number in range(30):
        some = [keys[(number + more) % 8] for more in range(1 + number % 3)]
        filler = "x" * (40 * (number % 4))
        codec = CODECS[number % len(CODECS)]
        writing.batch("rolled", *some, codec=codec, value=filler)
        writing.batch("rolled", *some, partition=1, timed=number % 5 == 0, value=filler)
    first, second = writing.producer_id(after=1_500), writing.producer_id()
    for number in range(16):
        filler = "x" * (60 * (number % 3))
        owner = (first, second, -1)[number % 3]
        writing.batch("produced", keys[number % 8], keys[-1], producer_id=owner, value=filler)
        writing.batch("compacted", *keys[number % 5 :], producer_id=owner, value=filler)
        if number % 6 == 5:
            writing.batch("compacted", keys[number % 3], value=None)
    last = writing.producer_id(
        after=4_500
    )  # the snapshots alone know it, once its records are gone
    writing.batch("started", *keys, producer_id=last, value="x" * 100)
    for number in range(12):
        writing.batch("started", keys[number % 8], keys[0], value="x" * 90)


def read(address: str) -> dict[str, dict[str, object]]:
    """Of each partition, what the client library's consumer gets: offset, time, key, value."""
    found: dict[str, dict[str, object]] = {}
    for topic, (count, _) in TOPICS.items():
        for partition in range(count):
            found[f"{topic}-{partition}"] = _read_partition(address, topic, partition)
    return found


def _read_partition(address: str, topic: str, partition: int) -> dict[str, object]:
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "none",
            "enable.auto.commit": False,
            "log_level": LOG_LEVEL,
        }
    )
    start, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), 30)
    consumer.assign([TopicPartition(topic, partition, start)])
    records: list[list[object]] = []
    while consumer.position([TopicPartition(topic, partition)])[0].offset < end:
        for message in consumer.consume(100, 0.5):
            assert message.error() is None, message.error()
            key, value = message.key(), message.value()
            assert isinstance(key, bytes)
            text = value.decode() if isinstance(value, bytes) else None
            records.append([message.offset(), message.timestamp()[1], key.decode(), text])
        if records and records[-1][0] == end - 1:
            break
    consumer.close()
    return {"start": start, "end": end, "records": records}


def until(what: str, is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def _lines(data: Path, name: str) -> dict[str, int]:
    """An offset checkpoint, by partition."""
    path = data / name
    if not path.exists():
        return {}
    words = [line.split() for line in path.read_text().splitlines()[2:]]
    return {f"{topic}-{partition}": int(offset) for topic, partition, offset in words}


def _bases(data: Path, folder: str) -> list[int]:
    return sorted(int(file.stem) for file in (data / folder).glob("*.log"))


def record(driver: str, port: int, home: Path) -> None:
    address, data = f"127.0.0.1:{port}", home / "data"
    start = [driver, "start", str(home), str(port), *PROPERTIES]
    subprocess.run(start, check=True, stdout=subprocess.DEVNULL)
    pid = int((home / "pid").read_text())
    try:
        admin = AdminClient({"bootstrap.servers": address, "log_level": LOG_LEVEL})
        wanted = [NewTopic(name, n, 1, config=dict(config)) for name, (n, config) in TOPICS.items()]
        for created in admin.create_topics(wanted).values():
            created.result(WAIT_S)
        writing = Writing(port)
        write(writing)
        before = read(address)
        active = _bases(data, "compacted-0")[-1]
        until(
            "the cleaner has not come to the active segment",
            lambda: _lines(data, CHECKPOINTS[2]).get("compacted-0", 0) >= active,
        )
        writing.batch("compacted", "key-1", "key-2")
        moved = admin.delete_records([TopicPartition("started", 0, 17)])
        for result in moved.values():
            result.result(WAIT_S)
        until("no segment was removed", lambda: _bases(data, "started-0")[0] > 0)
        until(
            "no checkpoint of the log start",
            lambda: _lines(data, CHECKPOINTS[1]).get("started-0") == 17,
        )
        killed_read = read(address)
    finally:
        os.kill(pid, signal.SIGKILL)
    until("the killed broker is still there", lambda: not _is_alive(pid))
    images = {"killed": _image(data)}
    subprocess.run(start, check=True, stdout=subprocess.DEVNULL)
    try:
        stopped_read = read(address)
    finally:
        subprocess.run([driver, "stop", str(home)], check=True)
    images["stopped"] = _image(data)
    assert stopped_read == killed_read
    base = _bases(data, "started-0")[0]
    below = [record for record in before["started-0"]["records"] if base <= record[0] < 17]  # type: ignore[attr-defined]
    assert below, "the log start is no segment's"
    killed_read["started-0"]["below_start"] = below
    for folder, greatest in writing.greatest_producer_ids.items():
        killed_read[folder]["greatest_producer_id"] = greatest
    _write(images, {"written_to_ms": writing.at_ms, "partitions": killed_read})


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def _image(data: Path) -> dict[str, bytes]:
    """The folders of the topics, and what the data directory says of them."""
    found = {}
    for folder in sorted(path for path in data.iterdir() if path.is_dir()):
        if folder.name.rpartition("-")[0] in TOPICS:
            for file in sorted(folder.iterdir()):
                found[f"{folder.name}/{file.name}"] = file.read_bytes()
    for name in CHECKPOINTS:
        if (data / name).exists():
            found[name] = (data / name).read_bytes()
    return found


def _write(images: Mapping[str, Mapping[str, bytes]], recording: Mapping[str, object]) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for image, files in images.items():
            for name, content in files.items():
                member = tarfile.TarInfo(f"{image}/{name}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    ARCHIVE.write_bytes(gzip.compress(packed.getvalue(), mtime=0))
    text = json.dumps(recording, separators=(",", ":")).replace("],[", "],\n[")
    READ.write_text(text + "\n")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver", required=True)
    parser.add_argument("--port", type=int, default=21_180)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        record(options.driver, options.port, Path(home))


if __name__ == "__main__":
    main()
