"""Golden tables: segments of a real Kafka, against a reading in plain Python.

The segments (tests/pipeline/golden/, made by make_golden.py) are of Kafka 4.3.1: as they were
written, and as its cleaner left them. The oracle reads them record by record with the daemon's own
decoders and folds them in the order of the log, as a coordinator that loads does.
"""

import struct
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from coordinator.records import (
    read_group_key,
    read_group_metadata_value,
    read_offset_commit_value,
    read_offset_key,
    record_type,
)
from pipeline.jobs import JOBS, JobInput
from pipeline.read.sources import PipelineSource
from pipeline.tables import (
    COMMITS,
    GROUP_METADATA_TABLE,
    GROUP_RECORDS,
    TRANSACTION_MARKERS,
    UNDECODABLE,
)
from storage.batch.record_batch import iter_batches, read_records

pytestmark = pytest.mark.xdist_group("spark")

GOLDEN = Path(__file__).with_name("golden")
FOREVER = 4_000_000_000_000
WHICH = pytest.mark.parametrize("which", ["before", "after"])

Place = tuple[int, int]
Key = tuple[str, str, int]


@dataclass
class Oracle:
    """All that the segments hold."""

    commits: dict[Place, tuple] = field(default_factory=dict)
    markers: dict[Place, tuple[int, bool]] = field(default_factory=dict)
    groups: dict[Place, tuple] = field(default_factory=dict)
    others: Counter[int] = field(default_factory=Counter)
    as_of_the_end: dict[Key, int] = field(default_factory=dict)


@cache
def oracle(which: str) -> Oracle:
    facts = Oracle()
    for folder in sorted((GOLDEN / which).iterdir()):
        partition = int(folder.name.rpartition("-")[2])
        content = b"".join(log.read_bytes() for log in sorted(folder.glob("*.log")))
        _fold(facts, partition, content)
    return facts


def _fold(facts: Oracle, partition: int, content: bytes) -> None:
    newest: dict[Key, tuple[int, int | None]] = {}
    pending: dict[int, list[tuple[Key, int, int | None]]] = {}

    def counts(key: Key, place: int, offset: int | None) -> None:
        if place >= newest.get(key, (-1, None))[0]:
            newest[key] = (place, offset)

    for at, header in iter_batches(content):
        for place, _, key, value, _ in read_records(content, at):
            assert key is not None
            if header.is_control:
                committed = struct.unpack(">hh", key)[1] == 1
                facts.markers[partition, place] = (header.producer_id, committed)
                for waited in pending.pop(header.producer_id, []):
                    if committed:
                        counts(*waited)
                continue
            kind = record_type(key)
            if kind in (0, 1):
                where = read_offset_key(key)
                committed_key = (where.group_id, where.topic, where.partition)
                offset = None
                if value is not None:
                    offset = read_offset_commit_value(value, kind).committed_offset
                producer = header.producer_id if header.is_transactional else None
                facts.commits[partition, place] = (*committed_key, offset, producer)
                if producer is None:
                    counts(committed_key, place, offset)
                else:
                    pending.setdefault(producer, []).append((committed_key, place, offset))
                continue
            facts.others[kind] += 1
            if kind == 2:
                group = read_group_key(key)
                if value is None:
                    facts.groups[partition, place] = (group, None, None)
                else:
                    stored = read_group_metadata_value(value)
                    members = sorted(m.group_instance_id or m.member_id for m in stored.members)
                    facts.groups[partition, place] = (group, stored.generation_id, members)
    facts.as_of_the_end |= {
        key: offset for key, (_, offset) in newest.items() if offset is not None
    }


@pytest.fixture(scope="module")
def source(spark: SparkSession) -> dict[str, PipelineSource]:
    return {which: PipelineSource(spark, str(GOLDEN / which)) for which in ("before", "after")}


def test_the_recording_has_something_of_everything() -> None:
    facts = oracle("before")
    producers = {commit[4] for commit in facts.commits.values() if commit[4] is not None}
    ended = dict(facts.markers.values())

    assert {True, False} <= set(ended.values())
    assert producers - set(ended), "no transaction is open"
    assert {"brief", "passing"} <= {
        group for group, *_, offset, _ in facts.commits.values() if offset is None
    }
    assert any(members == ["box-0", "box-1"] for _, _, members in facts.groups.values())
    assert {3, 5, 7, 8} <= set(facts.others), "no KIP-848 group"
    assert set(range(10, 16)) <= set(facts.others), "no share group"
    assert len(oracle("after").commits) < len(facts.commits), "nothing was compacted"


@WHICH
def test_every_commit_and_marker_is_in_its_table(
    source: dict[str, PipelineSource], which: str
) -> None:
    commits = source[which].table(COMMITS).collect()
    markers = source[which].table(TRANSACTION_MARKERS).collect()

    assert {
        (row.log_partition, row.log_offset): (
            row.group, row.topic, row.partition, row.committed_offset,
            row.producer_id if row.transactional else None,
        )
        for row in commits
    } == oracle(which).commits  # fmt: skip
    assert len(commits) == len(oracle(which).commits)
    assert {
        (row.log_partition, row.log_offset): (row.producer_id, row.committed) for row in markers
    } == oracle(which).markers


@WHICH
def test_groups_and_all_other_records_are_there(
    source: dict[str, PipelineSource], which: str
) -> None:
    groups = source[which].table(GROUP_METADATA_TABLE).where("group_type = 'classic'").collect()
    others = source[which].table(GROUP_RECORDS).groupBy("record_type").count().collect()

    found = {}
    for row in groups:
        members = None
        if row.members is not None:
            members = sorted(m.group_instance_id or m.member_id for m in row.members)
        found[row.log_partition, row.log_offset] = (row.group, row.generation, members)
    assert found == oracle(which).groups
    assert {row["record_type"]: row["count"] for row in others} == oracle(which).others
    log = source[which].log("__consumer_offsets")
    assert log.rows(UNDECODABLE, {}).count() == 0


@WHICH
def test_offsets_at_the_end_are_those_of_a_coordinator(
    source: dict[str, PipelineSource], which: str
) -> None:
    job_input = JobInput(source[which], 0, FOREVER)

    rows = JOBS["offsets_as_of"].run(job_input)["offsets_as_of"].collect()

    found = {(row.group, row.topic, row.partition): row.committed_offset for row in rows}
    assert found == oracle(which).as_of_the_end
    if which == "before":  # of the second that committed, not of the open one
        assert found["payments", "orders", 1] == 301


def test_compaction_changes_no_offset() -> None:
    before, after = (oracle(which).as_of_the_end for which in ("before", "after"))

    # What was committed to make the cleaner go is the only difference.
    assert {
        key: offset for key, offset in after.items() if not key[0].startswith("late-")
    } == before
    assert {"billing", "search", "rewound", "payments"} == {group for group, *_ in before}


def test_what_went_back_is_named(source: dict[str, PipelineSource]) -> None:
    job_input = JobInput(source["before"], 0, FOREVER)

    rows = JOBS["audit"].run(job_input)["offset_suspects"].where("group = 'rewound'").collect()

    went = sorted((row.partition, row.old_offset, row.new_offset) for row in rows)
    assert [row for row in went if row[2] is not None] == [
        (0, 60, 5), (0, 70, 69), (1, 60, 5), (1, 70, 69),
    ]  # fmt: skip
