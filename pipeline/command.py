"""Order execution: the code path that `rollcall pipeline` and submit.py share."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import Struct, field, structs
from pyspark.sql import SparkSession

from pipeline.delta import write_delta
from pipeline.derive.offsets_as_of import offsets_as_of
from pipeline.disk_full import disk_full_errors, local_disk_full_errors
from pipeline.engine import fn
from pipeline.engine_choice import Choice, Engine, choose_engine
from pipeline.incremental import first_day_ms, remember_run
from pipeline.ingest import Ingested, ingest
from pipeline.jobs import JOBS, Job, JobInput, lacks
from pipeline.lake import Lake
from pipeline.progress import NoProgress, Progress, epoch_ms
from pipeline.read.acknowledge import acknowledge
from pipeline.read.brokers import Broker
from pipeline.read.files import local_path, replace_text
from pipeline.read.source_check import (
    CheckedSource,
    SourceKind,
    check_broker,
    check_output,
    check_output_file,
    check_results,
    check_source,
)
from pipeline.read.sources import PipelineSource
from pipeline.read.topic_folders import has_topic_folders
from pipeline.results import Results, write_csv, write_json
from pipeline.run_summary import RunSummary
from pipeline.runner import NothingToRead, TimeSpan, check_needs, run_job, skip_job
from pipeline.session import check_java, start_session
from pipeline.tables import UNDECODABLE
from pipeline.write_lock import lock_note, one_writer
from protocol.names import LAG_TOPIC
from seams.operator_error import OperationFailed, WrongInput

INGEST: Final = "ingest"
ALL: Final = "all"


class UnknownJob(WrongInput):
    """No job has this name; the message lists those that there are."""


class DamageFound(OperationFailed):
    """With --strict; all that could be read was written before."""


class Order(Struct, frozen=True):
    """The options of a run; times in ms since the epoch."""

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
    report: str | None = None  # a page over what the jobs have written
    acknowledge: str | None = None  # HOST:PORT of the broker to acknowledge to
    groups: tuple[str, ...] = ()  # these alone; empty: all
    topics: tuple[str, ...] = ()
    incremental: bool = False  # only the days since the last run
    summary: str | None = None  # a file: what was done, as JSON
    delta: str | None = None  # a folder for the same days as Delta tables
    engine: Engine = Engine.AUTO
    cluster: str | None = None  # the name of one of several in a lake
    strict: bool = False  # damage fails the command
    until_now: bool = False  # the span ends at `until_ms`, or after what this run has measured


def job_lines() -> Iterator[str]:
    yield f"{INGEST:16} land new records of a source as tables, each record once"
    for job in JOBS.values():
        yield f"{job.name:16} {job.makes}"
    yield f"{ALL:16} every job whose topics the source has"


def carry_out(order: Order, progress: Progress | None = None) -> Iterator[str]:
    """Do it, with a line for people for each table. Raises OperatorError."""
    progress = progress or NoProgress()
    checked = _checked(order)
    choice = choose_engine(
        order.engine,
        checked,
        master=order.master,
        remote=order.remote,
        settings=order.settings,
        needs_kafka=order.acknowledge is not None,
    )
    kafka = checked.kind is SourceKind.BROKER or order.acknowledge is not None
    if (note := lock_note(order.out)) is not None:
        progress.line(note)
    if order.incremental:
        begin_ms = max(order.since_ms, first_day_ms(order.job, order.source, order.out))
        order = structs.replace(order, since_ms=begin_ms)
    summary = RunSummary(
        order.job, order.source, order.out, order.since_ms, order.until_ms, epoch_ms(),
        choice.engine, choice.why,
    )  # fmt: skip
    with (
        one_writer(order.out),
        _session(choice, order, order.out, progress, kafka=kafka) as session,
    ):
        yield from _carried_out(session, order, progress, summary)
        if order.incremental:
            remember_run(order.job, order.source, order.out, order.until_ms)
        if order.summary is not None:
            replace_text(session, order.summary, summary.to_json(epoch_ms()))
            yield f"{order.summary}: the summary"
    progress.total()


def _checked(order: Order) -> CheckedSource:
    """All that can be checked before an engine starts. Raises WrongInput."""
    if order.job not in (INGEST, ALL, *JOBS):
        names = ", ".join((INGEST, *JOBS, ALL))
        raise UnknownJob(f"no job {order.job!r}; the jobs are {names}")
    if order.since_ms >= order.until_ms and order.job != INGEST:
        raise WrongInput("the span is empty: --since must be before --until")
    if order.version_pattern is not None:
        try:
            groups = re.compile(order.version_pattern.replace("(?<", "(?P<")).groups
        except re.error as fault:
            raise WrongInput(f"--version-pattern {order.version_pattern!r}: {fault}") from None
        if not groups:
            raise WrongInput(f"--version-pattern {order.version_pattern!r} has no group (...)")
    checked = check_source(order.source)
    check_output(order.out)
    for file in (order.report, order.summary):
        if file is not None:
            check_output_file(file)
    if order.job == INGEST and (order.groups or order.topics or order.incremental or order.delta):
        raise WrongInput(f"{INGEST} has no --group, --topic, --incremental or --delta")
    if order.acknowledge is not None:
        check_broker(order.acknowledge)
    if checked.topics is not None and order.job in JOBS:
        for topic in JOBS[order.job].needs:
            if topic == LAG_TOPIC and has_topic_folders(local_path(order.source)):
                continue
            if topic not in checked.topics:
                raise NothingToRead(
                    f"{order.job} needs {topic}, and {order.source} does not have it"
                )
    return checked


@contextmanager
def _session(
    choice: Choice,
    order: "Order | AsOfOrder | ReportOrder",
    out: str,
    progress: Progress,
    *,
    kafka: bool = False,
) -> Iterator[SparkSession]:
    """The engine's: Spark's, or the local one that has the same methods. Raises OperatorError."""
    progress.line(choice.line())
    if choice.engine is Engine.LOCAL:
        from pipeline.local.session import local_session

        with local_session() as local, local_disk_full_errors(local.spilled, out):
            yield local  # has what the pipeline uses of a SparkSession
        return
    check_java(order.remote)
    with progress.step("Starting Spark"):
        spark = start_session(
            order.master, remote=order.remote, settings=order.settings, kafka=kafka
        )
    with disk_full_errors(spark, out):
        yield spark


def _carried_out(
    spark: SparkSession, order: Order, progress: Progress, summary: RunSummary
) -> Iterator[str]:
    if order.job == INGEST:
        source = PipelineSource(spark, order.source, order.connector)
        with progress.step(f"{INGEST} of {order.source}", spark):
            done = ingest(source, Lake(spark, order.out, order.cluster))
        summary.rows.update(done.rows)
        yield from _ingested(done)
        if order.acknowledge is not None:
            acknowledge(Broker(spark, order.acknowledge, order.connector), done)
            yield f"{order.acknowledge}: acknowledged"
        if order.strict and done.rows[UNDECODABLE.name]:
            raise DamageFound(_damage_text(done.rows[UNDECODABLE.name], order.source))
        return
    source = PipelineSource(spark, order.source, order.connector, order.cluster)
    with progress.step(f"Opening {order.source}"):
        jobs, skipped = _jobs(order.job, source)
        if order.until_now and (measured := source.log_ends()) is not None:
            summary.until_ms = max(order.until_ms, measured.sampled_at_ms + 1)
    span = TimeSpan(order.since_ms, summary.until_ms)
    job_input = JobInput(
        source,
        span.since_ms,
        span.until_ms,
        order.version_pattern,
        keep=len(jobs) > 1,
        groups=order.groups,
        topics=order.topics,
    )
    try:
        for number, job in enumerate(jobs, 1):
            began_ms = epoch_ms()
            with progress.step(f"{job.name} ({number} of {len(jobs)})", spark):
                written = run_job(spark, job, job_input, order.out)
            summary.rows.update(written)
            summary.seconds[job.name] = (epoch_ms() - began_ms) / 1_000
            for table, count in written.items():
                yield f"{table}: {count} rows"
        for job in skipped:
            yield f"{job.name}: not run, {skip_job(spark, job, job_input, order.out)}"
        if any(LAG_TOPIC in job.needs for job in jobs):
            summary.log_ends = job_input.log_ends_text()
        damaged = source.damage() if order.strict else 0
    finally:
        job_input.forget()
    if order.delta is not None:
        with progress.step(f"Delta tables in {order.delta}"):
            for table, count in write_delta(order.out, order.delta, span).items():
                yield f"{order.delta}/{table}: {count} rows"
    if order.report is not None:
        from pipeline.report.report import report_page  # takes as long to import as all the rest

        with progress.step("The report", spark):
            replace_text(spark, order.report, report_page(Results(spark, order.out, span)))
        yield f"{order.report}: the report"
    if damaged:
        raise DamageFound(_damage_text(damaged, order.source))


def _damage_text(count: int, where: str) -> str:
    return f"{where}: {count} pieces could not be decoded: see the table {UNDECODABLE.name}"


def _jobs(name: str, source: PipelineSource) -> tuple[list[Job], list[Job]]:
    """(those to run, those whose topics the source lacks)"""
    if name != ALL:
        check_needs(JOBS[name], source)
        return [JOBS[name]], []
    able = [
        job for job in JOBS.values() if all(lacks(source, topic) is None for topic in job.needs)
    ]
    return able, [job for job in JOBS.values() if job not in able]


def _ingested(done: Ingested) -> Iterator[str]:
    for table, count in done.rows.items():
        yield f"{table}: {count} rows"
    if done.rows[UNDECODABLE.name]:
        yield f"some bytes could not be decoded: see the table {UNDECODABLE.name}"


class ReportOrder(Struct, frozen=True):
    """A page over the tables in `source`, and those tables as files for other programs."""

    source: str
    page: str
    since_ms: int
    until_ms: int
    csv: Path | None = None
    json: Path | None = None
    top: int | None = None  # groups; None: as many as the report has by default
    master: str | None = None
    remote: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    engine: Engine = Engine.AUTO


def carry_out_report(order: ReportOrder, progress: Progress | None = None) -> Iterator[str]:
    """Write it, with a line for each file. Raises OperatorError."""
    progress = progress or NoProgress()
    check_output_file(order.page)
    choice = choose_engine(
        order.engine,
        check_results(order.source),
        master=order.master,
        remote=order.remote,
        settings=order.settings,
    )
    from pipeline.report.report import TOP, report_page

    with _session(choice, order, order.page, progress) as spark:
        results = Results(spark, order.source, TimeSpan(order.since_ms, order.until_ms))
        replace_text(spark, order.page, report_page(results, top=order.top or TOP))
        yield f"{order.page}: the report, of {len(results.names)} tables"
        for folder, write in ((order.csv, write_csv), (order.json, write_json)):
            if folder is not None:
                yield from map(str, write(results, folder))


class AsOfOrder(Struct, frozen=True):
    """The offsets of one group or of all (None), as they counted at an instant."""

    source: str
    at_ms: int
    group: str | None = None
    master: str | None = None
    remote: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    connector: Mapping[str, str] = field(default_factory=dict)
    engine: Engine = Engine.AUTO
    cluster: str | None = None  # as in Order


class OffsetThen(NamedTuple):
    """An offset as it was; -1 and "" where the commit does not say."""

    group: str
    topic: str
    partition: int
    committed_offset: int
    leader_epoch: int
    metadata: str
    committed_at_ms: int


def carry_out_as_of(order: AsOfOrder, progress: Progress | None = None) -> list[OffsetThen]:
    """In the order of groups, topics and partitions. Raises OperatorError."""
    checked = check_source(order.source)
    choice = choose_engine(
        order.engine,
        checked,
        master=order.master,
        remote=order.remote,
        settings=order.settings,
    )
    kafka = checked.kind is SourceKind.BROKER
    with _session(choice, order, "", progress or NoProgress(), kafka=kafka) as spark:
        source = PipelineSource(spark, order.source, order.connector, order.cluster)
        job_input = JobInput(source, 0, order.at_ms)
        found = offsets_as_of(job_input.effective, order.at_ms)
        if order.group is not None:
            found = found.where(fn.col("group") == order.group)
        rows = found.orderBy("group", "topic", "partition").collect()
        job_input.forget()
    if not rows:
        whose = "no group" if order.group is None else order.group
        raise NothingToRead(f"{order.source}: {whose} had a known offset then")
    return [
        OffsetThen(
            row["group"],
            row["topic"],
            row["partition"],
            row["committed_offset"],
            -1 if row["leader_epoch"] is None else row["leader_epoch"],
            row["metadata"] or "",
            row["committed_at_ms"],
        )
        for row in rows
    ]
