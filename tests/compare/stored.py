"""Stored records: what a scenario left in `__consumer_offsets`, in a form that can be compared.

A line for each record of the scenario's groups, in log order: the record type, the value's version,
then every field of key and value. Only what brokers may choose freely is replaced: random ids by
numbers, times by `<time>`. Since each record's bytes are also what comes of writing its fields
again (`assert_canonical`), equal lines are equal bytes but for those choices.

Records of the consumer group protocol depend on each other: there a line `--` stands between the
batches. A batch is one append, which is there as a whole or not at all.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, zip_longest
from pathlib import Path
from typing import Final, NamedTuple
from uuid import UUID

from coordinator.classic.generation_record import GENERATION_BEGUN
from logtools.group_records import RECORD_TYPES, decode_group_record
from logtools.layout import place_at
from logtools.walk import Batch, walk
from protocol.compiler import reader, writer
from protocol.names import OFFSETS_TOPIC
from seams.java_hash import hash_map_order
from storage.batch.record_batch import read_records
from storage.log.checkpoints import encode_uuid

_RANDOM_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIMES: Final = ("commitTimestamp", "currentStateTimestamp", "assignmentTimestamp", "timestamp")
_MADE_BY_BROKER: Final = re.compile(r"[A-Za-z0-9_-]{22}")
_BY_TOPIC: Final = frozenset(
    {"topicPartitions", "assignedPartitions", "partitionsPendingRevocation"}
)
"""Arrays in the order of a hash map of topic ids; their partitions are those of another one."""

BETWEEN_BATCHES: Final = "--"


class Stored(NamedTuple):
    """A record of a group; `batch` tells the batches of the log apart."""

    group: str
    batch: tuple[str, int]
    key: bytes
    value: bytes | None


def stored_records(data_dir: Path, scenario: str) -> list[Stored]:
    """The records of the scenario's groups, in the order in which they were written."""
    found: list[Stored] = []
    place = place_at(data_dir, topic=OFFSETS_TOPIC).only([OFFSETS_TOPIC], [])
    for partition in place.partitions:
        for segment in partition.segments:
            for number, batch in enumerate(walk(segment.path)):
                if not isinstance(batch, Batch):
                    break  # another scenario's, just being written: ours would be missed
                if batch.header.is_control:
                    continue  # see stored_transactions.py
                for _, _, key, value, headers in read_records(batch.content):
                    assert key is not None
                    assert not headers
                    group = decode_group_record(key, value).group
                    if group == scenario or (group or "").startswith(f"{scenario}."):
                        found.append(Stored(group or "", (str(segment.path), number), key, value))
    # Groups may be in several partitions: there is no order between partitions.
    return sorted(found, key=lambda record: record.group)


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


def stored_lines(
    data_dir: Path,
    scenario: str,
    topics: Mapping[UUID, str] | None = None,
    *,
    batches: bool = False,
) -> list[str]:
    """What the scenario has left; our own record type is left out, as every Kafka skips it.

    `topics`: the ids that are shown as names. `batches`: tell batches apart.
    """
    names = StoredNames({encode_uuid(topic_id): name for topic_id, name in (topics or {}).items()})
    records = [
        record
        for record in stored_records(data_dir, scenario)
        if int.from_bytes(record.key[:2], signed=True) != GENERATION_BEGUN
    ]
    lines: list[str] = []
    for number, (_, batch) in enumerate(groupby(records, key=lambda record: record.batch)):
        if batches and number:
            lines.append(BETWEEN_BATCHES)
        shown = list(batch)
        lines += (
            _in_order(shown, names) if batches else [stored_line(record, names) for record in shown]
        )
    return [line.replace(scenario, "~") for line in lines]


class StoredNames:
    """What stands for random ids: the names of topics, and numbers."""

    def __init__(self, topics: Mapping[str, str]) -> None:
        self._topics = topics
        self._numbers: dict[str, str] = {}
        self._hashes: dict[int, str] = {0: "0"}

    def number(self, random_id: str) -> str:
        return self._numbers.setdefault(random_id, f"#{len(self._numbers) + 1}")

    def member(self, member_id: str | None) -> str | None:
        made_by_broker = _MADE_BY_BROKER.fullmatch(member_id or "")
        return self.number(made_by_broker.group()) if made_by_broker else member_id

    def sorting_key(self, key: bytes) -> str:
        """Of a record: random ids that have no number yet are the last ones."""
        member_id = str(decode_group_record(key, None).key["data"].get("memberId", ""))
        if _MADE_BY_BROKER.fullmatch(member_id):
            return self._numbers.get(member_id, "~")
        return _RANDOM_ID.sub(lambda found: self._numbers.get(found.group(), "~"), member_id)

    def topic(self, topic_id: str) -> str:
        return self._topics.get(topic_id) or self.number(topic_id)

    def metadata_hash(self, value: int) -> str:
        return self._hashes.setdefault(value, f"<hash {len(self._hashes)}>")


def _in_order(batch: Sequence[Stored], names: StoredNames) -> Iterator[str]:
    """A batch; Kafka takes neighbours of one type from a hash map of members."""
    for _, neighbours in groupby(batch, key=lambda record: (record.key[:2], record.value is None)):
        in_order = sorted(neighbours, key=lambda record: names.sorting_key(record.key))
        yield from (stored_line(record, names) for record in in_order)


def stored_line(record: Stored, names: StoredNames) -> str:
    assert_canonical(record.key, record.value)
    shown = decode_group_record(record.key, record.value)
    assert shown.problem is None, shown
    key = shown.key["data"]
    if "memberId" in key:
        key["memberId"] = names.member(key["memberId"])
    line = f"{shown.kind} {_compact(key)}"
    if shown.value is None:
        line += " tombstone"
    else:
        data = shown.value["data"]
        _replace_free_choices(data, names)
        line += f" v{shown.value['version']} {_compact(data)}"
    return _RANDOM_ID.sub(lambda found: names.number(found.group()), line)


def _replace_free_choices(data: dict, names: StoredNames) -> None:
    committed = data.get("commitTimestamp")
    if "expireTimestamp" in data:
        data["expireTimestamp"] = f"<time> + {data['expireTimestamp'] - committed}"
    if "timestamp" in data:  # of a regular expression: the version is an offset of Kafka's metadata
        data["version"] = "<version>"
    for name in _TIMES:
        if name in data:
            data[name] = "<time>" if data[name] > 0 else data[name]
    if "metadataHash" in data:
        data["metadataHash"] = names.metadata_hash(data["metadataHash"])
    if "topicId" in data:
        data["topicId"] = names.topic(data["topicId"])
    for name in _BY_TOPIC & data.keys():
        for topic in data[name]:
            topic["topicId"] = names.topic(topic["topicId"])
            _sort_partitions(topic)
        data[name].sort(key=lambda topic: topic["topicId"])
    members = data.get("members", [])
    if members:
        ids = [member["memberId"] for member in members]
        data["membersInJavasOrder"] = ids == hash_map_order(ids)
        for member in members:
            member["memberId"] = names.member(member["memberId"])
            _sort_topics(member.get("assignment"))
        members.sort(key=lambda member: _RANDOM_ID.sub("", json.dumps(member)))
    if "leader" in data:
        data["leader"] = names.member(data["leader"])


def _sort_topics(assignment: object) -> None:
    """Of a converted group they are in the order of a hash map of topic ids."""
    if isinstance(assignment, dict):
        assignment["assignedPartitions"].sort(key=lambda topic: topic["topic"])


def _sort_partitions(topic: dict) -> None:
    """Kafka writes them in the order of a hash map, whose size depends on the past."""
    by_partition = dict(
        zip_longest(topic["partitions"], topic.get("assignmentEpochs", ()), fillvalue=None)
    )
    topic["partitions"] = sorted(by_partition)
    if "assignmentEpochs" in topic:
        topic["assignmentEpochs"] = [by_partition[index] for index in sorted(by_partition)]


def _compact(data: dict) -> str:
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False)
