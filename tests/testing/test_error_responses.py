"""Error responses: each is what Kafka's own request class answers, in every API and version."""

import json
from pathlib import Path

import pytest
from msgspec import to_builtins

from protocol.codec import decode_response, encode_response
from protocol.messages import REQUESTS
from protocol.messages.produce import ProduceRequest
from protocol.names import ApiKey, ErrorCode
from testing.error_responses import error_response
from tests.testing.golden.make import ERROR, decoded, error_of

RECORDED = [
    json.loads(line)
    for line in (Path(__file__).parent / "golden" / "error_responses.jsonl")
    .read_text()
    .splitlines()
]

WORDS = ("error_message",)
"""Kafka's sentence for the error, which is not part of the protocol."""


def comparable(value: object) -> object:
    """Without words for people, and without the order of results where Kafka's is a map's."""
    if isinstance(value, dict):
        return {name: comparable(each) for name, each in value.items() if name not in WORDS}
    if isinstance(value, list | tuple):
        return sorted((comparable(each) for each in value), key=repr)
    return value


@pytest.mark.parametrize(
    "entry", RECORDED, ids=[f"{entry['api']}-v{entry['version']}" for entry in RECORDED]
)
def test_an_error_is_answered_as_by_kafka(entry: dict[str, object]) -> None:
    api_key, version = ApiKey[str(entry["api"])], int(str(entry["version"]))
    request = decoded(api_key, version, bytes.fromhex(str(entry["request"])))
    recorded = entry.get("response")

    answer = error_response(request, version, ErrorCode[error_of(api_key)])

    assert answer is not None
    frame = encode_response(api_key, version, 7, answer)
    header, sent = decode_response(api_key, version, frame[4:], 0, len(frame) - 4)
    assert header.correlation_id == 7
    if recorded is None:
        return  # Kafka's class has none: what we make is at least a response of this version
    head = len(frame) - 4 - len(frame[4:]) + _head(frame, api_key, version)
    body = frame[4 : 4 + head] + bytes.fromhex(str(recorded))
    _, kafka = decode_response(api_key, version, body, 0, len(body))
    assert comparable(to_builtins(sent)) == comparable(to_builtins(kafka))


def _head(frame: bytes, api_key: ApiKey, version: int) -> int:
    is_flexible = version >= REQUESTS[api_key].FLEXIBLE_SINCE and api_key is not ApiKey.API_VERSIONS
    return 4 + is_flexible


def test_a_produce_without_acks_gets_no_answer() -> None:
    assert error_response(ProduceRequest(acks=0), 9, ErrorCode[ERROR]) is None
