"""Ingest: decodes what is new in a source, and lands each record once.

It reads each topic from the offset in the lake's manifest to the end that the log had when the
source was opened. Undecodable data is landed with its position and counted; a run that finds damage
reports it and continues.
"""

from collections.abc import Mapping
from typing import NamedTuple

from pyspark.sql import DataFrame

from pipeline.lake import Lake, tables_of
from pipeline.read.source_check import TOPICS
from pipeline.read.sources import PipelineSource, SourceLog
from pipeline.tables import COMMITS
from protocol.names import OFFSETS_TOPIC


class Ingested(NamedTuple):
    """`ends`: by topic and partition, where the next run begins; `rows`: by table, of this run."""

    ends: Mapping[str, Mapping[int, int]]
    rows: Mapping[str, int]


def ingest(source: PipelineSource, lake: Lake) -> Ingested:
    """Land what is new of every topic that is there. Raises NoSegments, NoLake, NoBroker."""
    manifest = lake.manifest()
    read = {} if manifest is None else manifest.read
    found: dict[str, DataFrame] = {}
    ends: dict[str, dict[int, int]] = {}
    for topic in TOPICS:
        if topic != OFFSETS_TOPIC and not source.has(topic):
            continue  # a Kafka's own log
        log = source.log(topic)
        begins = read.get(topic, {})
        ends[topic] = {p: max(end, begins.get(p, 0)) for p, end in log.ends.items()}
        if begins and all(end <= begins.get(p, 0) for p, end in log.ends.items()):
            continue  # nothing new: eight queries less
        for name, rows in _tables(log, begins).items():
            found[name] = found[name].unionByName(rows) if name in found else rows
    counts = {table.name: 0 for topic in ends for table in tables_of(topic)}
    if found or manifest is None:
        run = lake.land(found, ends).runs[-1]
        counts |= {name: lake.count(name, run) for name in found}
    source.forget()
    return Ingested(ends, counts)


def _tables(log: SourceLog, begins: Mapping[int, int]) -> dict[str, DataFrame]:
    """Commits are read while they are written; all others are found in one pass and kept."""
    others = [table for table in tables_of(log.topic) if table.name != COMMITS.name]
    found = log.few(others, begins)
    if log.topic == OFFSETS_TOPIC:
        found[COMMITS.name] = log.rows(COMMITS, begins)
    return found
