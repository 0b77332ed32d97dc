"""Kafka's text files: what it writes is read, what we write it can read, what is torn is told."""

from uuid import UUID

import pytest

from storage.api import Corrupt, TopicPartition
from storage.disk import read_file
from storage.log.checkpoints import (
    NO_TOPIC_ID,
    decode_uuid,
    encode_epochs,
    encode_metadata,
    encode_uuid,
    read_epochs,
    read_offsets,
    read_topic_id,
    write_offsets,
)
from tests.simulator.disk import SimulatedDisk

PATH = "/file"
TOPIC_ID = UUID("5d846e3a-a371-40f5-bcd5-99e90118d6f4")


def disk_with(content: str) -> SimulatedDisk:
    disk = SimulatedDisk()
    disk.open(PATH, create=True).pwrite(content.encode(), 0)
    return disk


def test_offsets_are_written_as_kafka_writes_them_and_read_back() -> None:
    disk = SimulatedDisk()
    offsets = {
        TopicPartition("b", 0): 7,
        TopicPartition("a", 10): 1 << 40,
        TopicPartition("a", 9): 0,
    }
    write_offsets(disk, PATH, offsets)
    assert read_file(disk, PATH) == b"0\n3\na 9 0\na 10 1099511627776\nb 0 7\n"
    assert read_offsets(disk, PATH) == offsets
    assert read_offsets(disk, "/none") == {}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "0",
        "0\nx\n",
        "1\n0\n",
        "0\n2\na 0 1\n",
        "0\n1\na 0\n",
        "0\n1\na 0 x\n",
        "0\n0\na 0 1\n",
        f"0\n{'9' * 5_000}\n",
        f"0\n1\na 0 {'9' * 5_000}\n",
        "0\n\u0661\na 0 1\n",
    ],
)
def test_a_checkpoint_that_is_not_one_is_corrupt(content: str) -> None:
    with pytest.raises(Corrupt, match=PATH):
        read_offsets(disk_with(content), PATH)


def test_leader_epochs_round_trip() -> None:
    epochs = [(0, 0), (3, 1200)]
    assert encode_epochs(epochs) == b"0\n2\n0 0\n3 1200\n"
    assert read_epochs(disk_with("0\n2\n0 0\n3 1200\n"), PATH) == epochs
    assert read_epochs(SimulatedDisk(), PATH) == []
    with pytest.raises(Corrupt, match="malformed"):
        read_epochs(disk_with("0\n1\n0 0 0\n"), PATH)


def test_a_topic_id_is_kafkas_22_characters() -> None:
    assert encode_uuid(TOPIC_ID) == "XYRuOqNxQPW81ZnpARjW9A"
    assert decode_uuid("XYRuOqNxQPW81ZnpARjW9A") == TOPIC_ID
    assert encode_metadata(TOPIC_ID) == b"version: 0\ntopic_id: XYRuOqNxQPW81ZnpARjW9A"
    for text in (
        "",
        "XYRu",
        "XYRuOqNxQPW81ZnpARjW9",
        "XYRuOqNxQPW81ZnpARjW9A=",
        "é" * 22,
        "/" * 22,
    ):
        assert decode_uuid(text) is None


def test_partition_metadata_is_read_whole_or_as_lost() -> None:
    whole = encode_metadata(TOPIC_ID).decode()
    assert read_topic_id(disk_with(whole), PATH) == TOPIC_ID
    assert read_topic_id(disk_with(whole + "\n"), PATH) == TOPIC_ID
    assert read_topic_id(SimulatedDisk(), PATH) == NO_TOPIC_ID
    for size in range(len(whole)):
        assert read_topic_id(disk_with(whole[:size]), PATH) == NO_TOPIC_ID
        assert read_topic_id(disk_with(whole[:size] + "\0" * 9), PATH) == NO_TOPIC_ID
    with pytest.raises(Corrupt, match="version 1"):
        read_topic_id(disk_with("version: 1\ntopic_id: XYRuOqNxQPW81ZnpARjW9A"), PATH)
