"""`rollcall pipeline`: analyses of commit logs and group history, on Spark.

Reads the command line; the pipeline itself needs the extra `[pipeline]` and a Java, and is imported
only when a job is to run. Exit code 0: done; 1: refused because of what was found; 2: usage, which
includes a missing package or Java.
"""

import json
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NoReturn

import click

EXTRA = "rollcall-broker[pipeline]"


class Refused(click.ClickException):
    """What was found does not allow it."""

    exit_code = 1


class Missing(click.ClickException):
    """Something must be installed first."""

    exit_code = 2


class Instant(click.ParamType[int]):
    """ISO 8601 (UTC, if it does not say otherwise) or milliseconds since the epoch."""

    name = "time"

    def convert(
        self, value: str | int, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        if isinstance(value, int) or value.isdecimal():
            return int(value)
        try:
            instant = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is no time such as 2026-11-21T10:00Z", param, ctx)
        if instant.tzinfo is None:
            instant = instant.replace(tzinfo=UTC)
        return round(instant.timestamp() * 1000)


@click.group(
    epilog="\b\nExamples:\n"
    "  rollcall pipeline run ingest --from /var/lib/rollcall --to /data/lake\n"
    "  rollcall pipeline run anomalies --from /data/lake --to /data/results --since 2026-11-20\n"
    "  rollcall pipeline run all --from kafka://127.0.0.1:9092 --to /data/results\n"
    "\n"
    f"Needs pip install '{EXTRA}' and Java 17 or later: `rollcall pipeline doctor` tells.",
)
def pipeline() -> None:
    """Analyse commit logs and group history with Spark."""


@pipeline.command("run")
@click.argument("job", metavar="JOB")
@click.option(
    "--from",
    "source",
    required=True,
    metavar="WHERE",
    help="A data directory (Rollcall's or Kafka's), kafka://HOST:PORT, or a lake.",
)
@click.option("--to", "out", required=True, metavar="DIR", help="Where the tables go, as Parquet.")
@click.option("--since", type=Instant(), default="0", help="The first instant.  [default: all]")
@click.option("--until", type=Instant(), help="The first instant after.  [default: now]")
@click.option("--master", metavar="URL", help="As spark-submit takes it.  [default: local[*]]")
@click.option("--remote", metavar="URL", help="A Spark Connect server, sc://HOST:PORT.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A setting of Spark.")
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
    help="Reads a deployment's version out of client ids, by its first group.",
)
def run(
    *,
    job: str,
    source: str,
    out: str,
    since: int,
    until: int | None,
    master: str | None,
    remote: str | None,
    settings: tuple[str, ...],
    options: tuple[str, ...],
    version_pattern: str | None,
) -> None:
    """Run JOB (or all), and write its tables. `rollcall pipeline list` names the jobs."""
    given, to_connector = _pairs(settings, "--set"), _pairs(options, "--option")
    try:
        from pipeline.command import Order, UnknownJob, carry_out
        from pipeline.java import NoJava
        from pipeline.refusals import Refusal
    except ImportError as missing:
        _not_installed(missing)
    until = until if until is not None else round(datetime.now(UTC).timestamp() * 1000)
    order = Order(
        job, source, out, since, until, master, remote, given, to_connector, version_pattern
    )
    try:
        for line in carry_out(order):
            click.echo(line)
    except UnknownJob as unknown:
        raise click.UsageError(str(unknown)) from None
    except NoJava as missing:
        raise Missing(str(missing)) from None
    except Refusal as refusal:
        raise Refused(str(refusal)) from None


@pipeline.command("list")
def list_jobs() -> None:
    """The jobs, and what each makes."""
    try:
        from pipeline.command import job_lines
    except ImportError as missing:
        _not_installed(missing)
    for line in job_lines():
        click.echo(line)


@pipeline.command("schema")
@click.argument("table", required=False)
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def schema(table: str | None, *, as_json: bool) -> None:
    """The columns of the tables that are read from logs, with their units."""
    try:
        from pipeline.schema_text import schema_json, schema_lines
    except ImportError as missing:
        _not_installed(missing)
    try:
        if as_json:
            click.echo(json.dumps(schema_json(table), indent=2))
        else:
            for line in schema_lines(table):
                click.echo(line)
    except KeyError as unknown:
        raise click.UsageError(f"no table {unknown}") from None


@pipeline.command("doctor")
def doctor() -> None:
    """Check Java, the packages, memory and the Python of the workers."""
    from pipeline.doctor import Verdict, examine

    wrong = False
    for finding in examine():
        wrong |= finding.verdict is Verdict.WRONG
        click.echo(f"{finding.verdict:8} {finding.what}: {finding.said}")
    if wrong:
        sys.exit(1)


def _pairs(words: tuple[str, ...], option: str) -> Mapping[str, str]:
    pairs = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise click.UsageError(f"{option} {word!r}: KEY=VALUE is wanted")
        pairs[key] = value
    return pairs


def _not_installed(missing: ImportError) -> NoReturn:
    name = missing.name or str(missing)
    raise Missing(f"{name} is not installed: pip install '{EXTRA}'") from None
