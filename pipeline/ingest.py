"""Ingest: decodes what is new in a source, and lands each record once.

It reads each topic from the offset in the lake's manifest to the end that the log had when the
source was opened. Undecodable data is landed with its position and counted; a run that finds damage
reports it and continues. Where the daemon keeps no lag samples, each run also lands where the logs
ended that groups read (read/log_ends.py). A source that is not what the lake was landed from is
refused before anything is written (read/identity.py).
"""

from collections.abc import Mapping
from typing import NamedTuple

from pyspark.sql import DataFrame

from pipeline.lake import Lake, LandedLogs, Manifest, tables_of
from pipeline.progress import epoch_ms
from pipeline.read.identity import OtherLog, another_cluster, another_log
from pipeline.read.source_check import TOPICS
from pipeline.read.sources import PipelineSource, SourceLog
from pipeline.tables import COMMITS, LOG_ENDS
from protocol.names import OFFSETS_TOPIC


class Ingested(NamedTuple):
    """`ends`: by topic and partition, where the next run begins; `rows`: by table, of this run."""

    ends: Mapping[str, Mapping[int, int]]
    rows: Mapping[str, int]


def ingest(source: PipelineSource, lake: Lake) -> Ingested:
    """Land what is new of every topic that is there. Raises NoSegments, NoLake, NoBroker,
    OtherLog."""
    manifest = lake.manifest()
    known = manifest or Manifest()
    read = known.read
    now_ms = epoch_ms()
    cluster_id = source.cluster_id()
    beginnings = dict(known.logs.beginnings)
    if why := another_cluster(known.logs.cluster_id, cluster_id):
        raise _refusal(source, lake, why)
    source.log(OFFSETS_TOPIC)  # its end is fixed before the ends of the others are measured
    log_ends = source.log_ends()
    found: dict[str, DataFrame] = {}
    ends: dict[str, dict[int, int]] = {}
    for topic in TOPICS:
        if topic != OFFSETS_TOPIC and not source.has(topic):
            continue  # a Kafka's own log
        log = source.log(topic)
        begins = read.get(topic, {})
        if why := _another(log, known):
            raise _refusal(source, lake, why)
        beginnings[topic] = {**beginnings.get(topic, {}), **log.beginnings}
        ends[topic] = {p: max(end, begins.get(p, 0)) for p, end in log.ends.items()}
        if begins and all(end <= begins.get(p, 0) for p, end in log.ends.items()):
            continue  # nothing new: eight queries less
        for name, rows in _tables(log, begins).items():
            found[name] = found[name].unionByName(rows) if name in found else rows
    counts = {table.name: 0 for topic in ends for table in tables_of(topic)}
    if log_ends is not None:
        counts[LOG_ENDS.name] = 0
    if found or manifest is None or log_ends is not None:
        logs = LandedLogs(cluster_id or known.logs.cluster_id, beginnings, now_ms)
        run = lake.land(found, ends, logs, log_ends).runs[-1]
        landed = [*found, *([] if log_ends is None else [LOG_ENDS.name])]
        counts |= {name: lake.count(name, run) for name in landed}
    source.forget()
    return Ingested(ends, counts)


def _another(log: SourceLog, known: Manifest) -> str | None:
    """Why one of its partitions is not the one that was landed."""
    begins = known.logs.beginnings.get(log.topic, {})
    found = (
        another_log(
            log.topic,
            partition,
            read=known.read.get(log.topic, {}).get(partition, 0),
            read_ms=known.logs.read_ms,
            end=end,
            before=begins.get(partition),
            now=log.beginnings.get(partition),
        )
        for partition, end in sorted(log.ends.items())
    )
    return next(filter(None, found), None)


def _refusal(source: PipelineSource, lake: Lake, why: str) -> OtherLog:
    return OtherLog(
        f"{source.where} is not what {lake.path} was landed from: {why}. Land it with --as NAME "
        "beside the other, or with another --to"
    )


def _tables(log: SourceLog, begins: Mapping[int, int]) -> dict[str, DataFrame]:
    """Commits are read while they are written; all others are found in one pass and kept."""
    others = [table for table in tables_of(log.topic) if table.name != COMMITS.name]
    found = log.few(others, begins)
    if log.topic == OFFSETS_TOPIC:
        found[COMMITS.name] = log.rows(COMMITS, begins)
    return found
