"""Comparison with Kafka 4.3.1: every field, version and default of the messages, and every byte.

Compares with what `golden/make.py` recorded from the kafka-clients jar, which itself is not needed.
"""

import json
from pathlib import Path

import pytest

from protocol.compiler import reader, writer
from protocol.messages import REQUESTS, RESPONSES
from protocol.schema import Message
from tests.protocol.golden.kafka_json import from_json
from tests.protocol.golden.listing import render
from tests.protocol.samples import EVERY_MESSAGE, message_id

GOLDEN = Path(__file__).parent / "golden"
CLASSES = {cls.__name__: cls for cls in (*REQUESTS.values(), *RESPONSES.values())}
LISTINGS = {
    listing.partition(" ")[0]: listing
    for listing in (GOLDEN / "schemas.txt").read_text().strip().split("\n\n")
}
RECORDED = {
    (entry["message"], entry["version"]): entry
    for entry in map(json.loads, (GOLDEN / "messages.jsonl").read_text().splitlines())
}


@pytest.mark.parametrize("name", CLASSES)
def test_every_declaration_is_kafkas(name: str) -> None:
    assert render(CLASSES[name]) == LISTINGS[name]


def test_the_recording_has_every_message_and_version() -> None:
    assert set(RECORDED) == {(cls.__name__, version) for cls, version in EVERY_MESSAGE}
    assert set(LISTINGS) == set(CLASSES)


@pytest.mark.parametrize(("cls", "version"), EVERY_MESSAGE, ids=message_id)
def test_every_byte_is_kafkas(cls: type[Message], version: int) -> None:
    entry = RECORDED[cls.__name__, version]
    value = from_json(entry["value"], cls, version)
    kafka_bytes = bytes.fromhex(entry["bytes"])

    assert writer(cls, version)(value) == kafka_bytes
    assert reader(cls, version)(kafka_bytes, 0, len(kafka_bytes)) == value
