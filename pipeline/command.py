"""How is an order carried out? The road that `rollcall pipeline run` and submit.py share."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from pipeline.brokers import KAFKA
from pipeline.ingest import ingest
from pipeline.inputs import Source
from pipeline.jobs import JOBS, Job
from pipeline.landing import Lake
from pipeline.runner import Span, run_job
from pipeline.session import start_session
from pipeline.tables import UNDECODABLE

INGEST: Final = "ingest"
ALL: Final = "all"


class UnknownJob(ValueError):
    """No job has this name; the message lists those that there are."""


@dataclass(frozen=True)
class Order:
    """What somebody asked for; times in ms since the epoch."""

    job: str
    source: str
    out: str
    since_ms: int
    until_ms: int
    master: str | None = None
    remote: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    connector: Mapping[str, str] = field(default_factory=dict)
    version_pattern: str | None = None


def job_lines() -> Iterator[str]:
    yield f"{INGEST:16} land what is new in a source as tables, each record once"
    for job in JOBS.values():
        yield f"{job.name:16} {job.makes}"
    yield f"{ALL:16} every job that the source has the topics for"


def carry_out(order: Order) -> Iterator[str]:
    """Do it, with a line for people for each table. Raises UnknownJob, Refusal, NoJava."""
    if order.job not in (INGEST, ALL, *JOBS):
        names = ", ".join((INGEST, *JOBS, ALL))
        raise UnknownJob(f"no job {order.job!r}: there are {names}")
    spark = start_session(
        order.master,
        remote=order.remote,
        settings=order.settings,
        kafka=order.source.startswith(KAFKA),
    )
    source = Source(spark, order.source, order.connector)
    if order.job == INGEST:
        yield from _ingested(source, Lake(spark, order.out))
        return
    span = Span(order.since_ms, order.until_ms)
    for job in _jobs(order.job, source):
        rows = run_job(spark, job, source, order.out, span, version_pattern=order.version_pattern)
        for table, count in rows.items():
            yield f"{table}: {count} rows"


def _jobs(name: str, source: Source) -> list[Job]:
    if name != ALL:
        return [JOBS[name]]
    return [job for job in JOBS.values() if all(source.has(topic) for topic in job.needs)]


def _ingested(source: Source, lake: Lake) -> Iterator[str]:
    done = ingest(source, lake)
    for table, count in done.rows.items():
        yield f"{table}: {count} rows"
    if done.rows[UNDECODABLE.name]:
        yield f"some bytes could not be read: see the table {UNDECODABLE.name}"
