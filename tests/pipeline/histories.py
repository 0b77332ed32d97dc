"""Histories of a log: drawn from a seed, as rows of the tables and as plain values.

One log partition holds the commits of a few groups: plain ones, tombstones, rewinds, transactions
that commit, abort or stay open, generations with their members. Places are dense and times rise.
"""

import random
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from pipeline.tables import COMMITS, GROUP_METADATA_TABLE, TRANSACTION_MARKERS, Table

START_MS = 1_780_000_000_000


@dataclass
class Commit:
    log_offset: int
    at_ms: int
    group: str
    topic: str
    partition: int
    offset: int | None  # None: deleted
    producer_id: int | None = None


@dataclass
class Marker:
    log_offset: int
    at_ms: int
    producer_id: int
    committed: bool


@dataclass
class Generation:
    log_offset: int
    at_ms: int
    group: str
    generation: int
    owned: dict[str, list[tuple[str, int]]]  # by member id


@dataclass
class History:
    log_partition: int
    commits: list[Commit] = field(default_factory=list)
    markers: list[Marker] = field(default_factory=list)
    generations: list[Generation] = field(default_factory=list)
    end_ms: int = START_MS


GROUPS = ("billing", "search", "audit")
PARTITIONS = [("orders", 0), ("orders", 1), ("refunds", 0)]


def a_history(seed: int, records: int = 300, log_partition: int = 0) -> History:
    chance = random.Random(seed)
    history = History(log_partition)
    offsets: dict[tuple[str, str, int], int] = {}
    generation = dict.fromkeys(GROUPS, 0)
    open_producers: set[int] = set()
    now = START_MS
    for place in range(records):
        now += chance.choice([0, 5, 900, 40_000])
        group, (topic, partition) = chance.choice(GROUPS), chance.choice(PARTITIONS)
        dice = chance.random()
        if dice < 0.06:
            generation[group] += 1
            members = [f"{group}-m{n}" for n in range(chance.randrange(4))]
            owned: dict[str, list[tuple[str, int]]] = {member: [] for member in members}
            for owned_partition in PARTITIONS:
                if members:
                    owned[chance.choice(members)].append(owned_partition)
            history.generations.append(Generation(place, now, group, generation[group], owned))
        elif dice < 0.12 and open_producers:
            producer = chance.choice(sorted(open_producers))
            open_producers.discard(producer)
            history.markers.append(Marker(place, now, producer, chance.random() < 0.6))
        else:
            key = (group, topic, partition)
            offset = offsets.get(key, 0) + chance.choice([0, 1, 10, 10, 10, -25])
            offsets[key] = max(0, offset)
            producer = None
            value: int | None = offsets[key]
            if dice < 0.25:
                producer = chance.randrange(3)
                open_producers.add(producer)
            elif dice < 0.3:
                value = None
            history.commits.append(Commit(place, now, *key, value, producer))
    history.end_ms = now
    return history


def frame(spark: SparkSession, table: Table, rows: list[dict]) -> DataFrame:
    """Rows as the table; what is not said is null."""
    schema = from_arrow_schema(table.schema)
    return spark.createDataFrame(
        [tuple(row.get(name) for name in schema.names) for row in rows], schema
    )


def commits_frame(spark: SparkSession, histories: list[History]) -> DataFrame:
    rows = [
        {
            "log_partition": history.log_partition,
            "log_offset": commit.log_offset,
            "log_timestamp_ms": commit.at_ms,
            "group": commit.group,
            "topic": commit.topic,
            "partition": commit.partition,
            "committed_offset": commit.offset,
            "commit_timestamp_ms": None if commit.offset is None else commit.at_ms,
            "metadata": None if commit.offset is None else "",
            "tombstone": commit.offset is None,
            "producer_id": commit.producer_id,
            "transactional": commit.producer_id is not None,
        }
        for history in histories
        for commit in history.commits
    ]
    return frame(spark, COMMITS, rows)


def markers_frame(spark: SparkSession, histories: list[History]) -> DataFrame:
    rows = [
        {
            "log_partition": history.log_partition,
            "log_offset": marker.log_offset,
            "log_timestamp_ms": marker.at_ms,
            "producer_id": marker.producer_id,
            "producer_epoch": 0,
            "committed": marker.committed,
        }
        for history in histories
        for marker in history.markers
    ]
    return frame(spark, TRANSACTION_MARKERS, rows)


def metadata_frame(spark: SparkSession, histories: list[History]) -> DataFrame:
    rows = [
        {
            "log_partition": history.log_partition,
            "log_offset": generation.log_offset,
            "log_timestamp_ms": generation.at_ms,
            "group": generation.group,
            "group_type": "classic",
            "protocol_type": "consumer",
            "generation": generation.generation,
            "members": [_member(name, owned) for name, owned in generation.owned.items()],
            "member_count": len(generation.owned),
            "tombstone": False,
        }
        for history in histories
        for generation in history.generations
    ]
    return frame(spark, GROUP_METADATA_TABLE, rows)


def _member(name: str, owned: list[tuple[str, int]]) -> tuple:
    topics = sorted({topic for topic, _ in owned})
    assigned = [(topic, [p for t, p in owned if t == topic]) for topic in topics]
    return (name, None, f"client-of-{name}", "/127.0.0.1", 10_000, 10_000, topics, assigned)
