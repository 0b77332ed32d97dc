"""History records: decodes records of Rollcall's own topics, `__group_history` and `__group_lag`.

With the code that writes them. Of a later version's records the bytes are shown.
"""

from enum import Enum

from msgspec import Struct

from history.encoding import UnreadableEntry, as_plain, decode
from history.entries import ENTRY_NAMES
from history.lag.records import UnreadableSample, decode_sample
from logtools.kafka_json import Json, base64_text
from logtools.record_view import UNKNOWN_RECORD, ShownRecord


def decode_history(key: bytes | None, value: bytes | None) -> ShownRecord:
    """An event of a group."""
    group = None if key is None else key.decode(errors="replace")
    if value is None:
        return ShownRecord(UNKNOWN_RECORD, group, None, group)
    try:
        event = decode(value)
    except UnreadableEntry as fault:
        return _undecoded(group, value, str(fault) or "no msgpack")
    if event is None:  # of a version that is yet to come
        return _undecoded(group, value)
    return ShownRecord(ENTRY_NAMES[type(event)], group, _json(as_plain(event)), group)


def decode_lag(key: bytes | None, value: bytes | None) -> ShownRecord:
    """A round's lag of one group and topic."""
    group = None if key is None else key.decode(errors="replace")
    if value is None:
        return ShownRecord(UNKNOWN_RECORD, group, None, group)
    try:
        sample = decode_sample(key, value)
    except UnreadableSample as fault:
        return _undecoded(group, value, str(fault) or "no msgpack")
    shown: Json = {
        "topic": sample.topic,
        "at": sample.at_ms,
        "whole": sample.whole,
        "partitions": [
            {
                "partition": partition,
                "commits": [
                    {"at": at_ms, "offset": offset, "lag": lag} for at_ms, offset, lag in commits
                ],
            }
            for partition, commits in sample.partitions.items()
        ],
    }
    return ShownRecord("LagSample", group, shown, group, sample.topic)


def _undecoded(group: str | None, value: bytes, problem: str | None = None) -> ShownRecord:
    return ShownRecord(UNKNOWN_RECORD, group, {"bytes": base64_text(value)}, group, problem=problem)


def _json(plain: object) -> Json:
    """Whatever an event is made of, as JSON has it."""
    if isinstance(plain, Enum):
        return _json(plain.value)
    if plain is None or isinstance(plain, bool | int | float | str):
        return plain
    if isinstance(plain, dict):
        return {str(name): _json(value) for name, value in plain.items()}
    if isinstance(plain, list | tuple | set | frozenset):
        return [_json(value) for value in plain]
    if isinstance(plain, bytes):
        return base64_text(plain)
    if isinstance(plain, Struct):
        return _json(as_plain(plain))
    return str(plain)
