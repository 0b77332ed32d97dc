"""Stored records: what a scenario left in `__consumer_offsets`, in a form that can be compared.

A line for each record of the scenario's groups, in log order: the record type, the value's version,
then every field of key and value. Only what brokers may choose freely is replaced: random ids by
numbers, times by `<time>`. Since each record's bytes are also what comes of writing its fields
again (`assert_canonical`), equal lines are equal bytes but for those choices.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from coordinator.classic.generation_record import GENERATION_BEGUN
from coordinator.java_hash import hash_map_order
from logtools.group_records import RECORD_TYPES, decode_group_record
from logtools.layout import place_at
from logtools.walk import Batch, walk
from protocol.compiler import reader, writer
from protocol.names import OFFSETS_TOPIC
from storage.batch.record_batch import read_records

_RANDOM_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIMES: Final = ("commitTimestamp", "currentStateTimestamp")

Stored = tuple[bytes, bytes | None]


def stored_records(data_dir: Path, scenario: str) -> list[Stored]:
    """The records of the scenario's groups, in the order in which they were written."""
    found = []
    place = place_at(data_dir, topic=OFFSETS_TOPIC).only([OFFSETS_TOPIC], [])
    for partition in place.partitions:
        for segment in partition.segments:
            for batch in walk(segment.path):
                if not isinstance(batch, Batch):
                    break  # another scenario's, just being written: ours would be missed
                for _, _, key, value, headers in read_records(batch.content):
                    assert key is not None
                    assert not headers
                    group = decode_group_record(key, value).group
                    if group == scenario or (group or "").startswith(f"{scenario}."):
                        found.append((group or "", key, value))
    # Groups may be in several partitions: there is no order between partitions.
    return [(key, value) for _, key, value in sorted(found, key=lambda record: record[0])]


def assert_canonical(key: bytes, value: bytes | None) -> None:
    """Writing what these bytes say gives these bytes again."""
    kind = int.from_bytes(key[:2], signed=True)
    schema = RECORD_TYPES[kind]
    read_key = reader(schema.key, 0)(key, 2, len(key))
    assert writer(schema.key, 0, prefix=key[:2])(read_key) == key
    if value is not None:
        version = int.from_bytes(value[:2])
        read_value = reader(schema.value, version)(value, 2, len(value))
        assert writer(schema.value, version, prefix=value[:2])(read_value) == value


def stored_lines(data_dir: Path, scenario: str) -> list[str]:
    """What the scenario has left; our own record type is left out, as every Kafka skips it."""
    return list(_lines(stored_records(data_dir, scenario), scenario))


def _lines(records: list[Stored], scenario: str) -> Iterator[str]:
    numbers: dict[str, str] = {}
    for key, value in records:
        assert_canonical(key, value)
        if int.from_bytes(key[:2], signed=True) == GENERATION_BEGUN:
            continue
        shown = decode_group_record(key, value)
        assert shown.problem is None, shown
        line = f"{shown.kind} {_compact(shown.key['data'])}"
        if shown.value is None:
            line += " tombstone"
        else:
            data = shown.value["data"]
            _replace_free_choices(data, numbers)
            line += f" v{shown.value['version']} {_compact(data)}"
        line = _RANDOM_ID.sub(lambda found: _number(numbers, found.group()), line)
        yield line.replace(scenario, "~")


def _replace_free_choices(data: dict, numbers: dict[str, str]) -> None:
    committed = data.get("commitTimestamp")
    if "expireTimestamp" in data:
        data["expireTimestamp"] = f"<time> + {data['expireTimestamp'] - committed}"
    for name in _TIMES:
        if name in data:
            data[name] = "<time>" if data[name] > 0 else data[name]
    if "topicId" in data:
        data["topicId"] = _number(numbers, data["topicId"])
    members = data.get("members", [])
    if members:
        ids = [member["memberId"] for member in members]
        data["membersInJavasOrder"] = ids == hash_map_order(ids)
        members.sort(key=lambda member: _RANDOM_ID.sub("", json.dumps(member)))


def _compact(data: dict) -> str:
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False)


def _number(numbers: dict[str, str], random_id: str) -> str:
    return numbers.setdefault(random_id, f"#{len(numbers) + 1}")
