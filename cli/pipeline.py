"""`rollcall pipeline`: analyses of commit logs and group history, on Spark.

Reads the command line; the pipeline itself needs the extra `[pipeline]` and a Java, and is imported
only when a job is to run. How commands end: cli/pipeline_options.py.
"""

import json
import sys
from pathlib import Path

import click

from cli.clock import now_ms
from cli.groups import Commands
from cli.pipeline_as_of import as_of
from cli.pipeline_lake import lake
from cli.pipeline_options import (
    EXTRA,
    cluster_option,
    not_installed,
    pairs,
    progress,
    span_options,
    spark_job,
    spark_options,
)
from cli.pipeline_report import report
from cli.pipeline_stream import stream


@click.group(
    cls=Commands,
    epilog="\b\nExamples:\n"
    "  rollcall pipeline run ingest --from /var/lib/rollcall --to /data/lake\n"
    "  rollcall pipeline run all --from /data/lake --to /data/results --report report.html\n"
    "  rollcall pipeline run anomalies --from /data/lake --to /data/results --since 2026-11-20\n"
    "  rollcall pipeline run all --from kafka://127.0.0.1:9092 --to /data/results\n"
    "  rollcall pipeline as-of --from /data/lake --at 2026-11-20T10:00Z --csv offsets.csv\n"
    "\n"
    f"Needs pip install '{EXTRA}'; Spark also needs Java 17 or later. "
    "`rollcall pipeline doctor` checks both.",
)
def pipeline() -> None:
    """Analyse commit logs and group history: small logs in this process, large ones on Spark."""


pipeline.add_command(report)
pipeline.add_command(as_of)
pipeline.add_command(stream)
pipeline.add_command(lake)


@pipeline.command("run")
@click.argument("job", metavar="JOB")
@click.option(
    "--from",
    "source",
    required=True,
    metavar="WHERE",
    help="A data directory (Rollcall's or Kafka's), kafka://HOST:PORT, or a lake.",
)
@click.option("--to", "out", required=True, metavar="DIR", help="Folder for the tables (Parquet).")
@span_options
@spark_options
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="An option of Spark's Kafka connector.",
)
@click.option(
    "--version-pattern",
    metavar="REGEX",
    help="Takes a deployment's version from client ids: the first group of REGEX.",
)
@click.option("--report", "page", metavar="FILE", help="Also write an HTML page of the tables.")
@cluster_option
@click.option(
    "--strict",
    is_flag=True,
    help="End with exit code 1 if anything could not be decoded. Tables are written all the same.",
)
@click.option(
    "--acknowledge",
    metavar="HOST:PORT",
    help="For ingest: report what was landed to this daemon; its cleaner keeps the rest.",
)
@click.option("--group", "groups", multiple=True, help="Only rows of this group; repeatable.")
@click.option("--topic", "topics", multiple=True, help="Only rows of this topic; repeatable.")
@click.option(
    "--incremental", is_flag=True, help="From a lake: only the days since the last such run."
)
@click.option("--summary", metavar="FILE", help="Also write what was done, as JSON.")
@click.option("--delta", metavar="DIR", help="Also write the same days as Delta tables.")
def run_jobs(
    *,
    job: str,
    source: str,
    out: str,
    since: int,
    until: int | None,
    engine: str,
    master: str | None,
    remote: str | None,
    settings: tuple[str, ...],
    options: tuple[str, ...],
    version_pattern: str | None,
    page: str | None,
    acknowledge: str | None,
    groups: tuple[str, ...],
    topics: tuple[str, ...],
    incremental: bool,
    summary: str | None,
    delta: str | None,
    cluster: str | None,
    strict: bool,
) -> None:
    """Run JOB, or all, and write its tables. `rollcall pipeline list` lists the jobs."""
    given, to_connector = pairs(settings, "--set"), pairs(options, "--option")
    with spark_job():
        from pipeline.command import Order, carry_out
        from pipeline.engine_choice import Engine

        order = Order(
            job,
            source,
            out,
            since,
            now_ms() if until is None else until,
            master=master,
            remote=remote,
            settings=given,
            engine=Engine(engine),
            connector=to_connector,
            version_pattern=version_pattern,
            report=page,
            acknowledge=acknowledge,
            groups=groups,
            topics=topics,
            incremental=incremental,
            summary=summary,
            delta=delta,
            cluster=cluster,
            strict=strict,
            until_now=until is None,
        )
        for line in carry_out(order, progress()):
            click.echo(line)


@pipeline.command("list")
def list_jobs() -> None:
    """List the jobs, and what each makes."""
    with spark_job():
        from pipeline.command import job_lines

        for line in job_lines():
            click.echo(line)


@pipeline.command("schema")
@click.argument("table", required=False)
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def schema(table: str | None, *, as_json: bool) -> None:
    """Print the columns of all tables, with their units."""
    try:
        from pipeline.schema_text import schema_json, schema_lines
    except ImportError as missing:
        raise not_installed(missing) from None
    try:
        if as_json:
            click.echo(json.dumps(schema_json(table), indent=2))
        else:
            for line in schema_lines(table):
                click.echo(line)
    except KeyError as unknown:
        raise click.UsageError(
            f"no table {unknown}: `rollcall pipeline schema` lists all"
        ) from None


@pipeline.command("archive")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def archive(folder: Path) -> None:
    """Write rollcall.zip and submit.py into FOLDER, for spark-submit --py-files."""
    from pipeline.archive import write_archive

    for written in write_archive(folder):
        click.echo(written)


@pipeline.command("doctor")
def doctor() -> None:
    """Check Java, the packages, memory and the Python of the workers."""
    from pipeline.doctor import CheckStatus, run_checks

    wrong = False
    for check in run_checks():
        wrong |= check.status is CheckStatus.FAILED
        click.echo(f"{check.status:8} {check.what}: {check.detail}")
    if wrong:
        sys.exit(1)
