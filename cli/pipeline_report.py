"""`rollcall pipeline report`: the tables of jobs as an HTML page, CSV and JSON.

Reads the options; pipeline/report/report.py does the work. Exit codes: cli/pipeline_options.py.
"""

from pathlib import Path

import click

from cli.clock import now_ms
from cli.pipeline_options import pairs, progress, span_options, spark_job, spark_options


@click.command(
    "report",
    epilog="\b\nExamples:\n"
    "  rollcall pipeline report --from /data/results --to report.html\n"
    "  rollcall pipeline report --from /data/results --to week.html --since 2026-11-14 "
    "--csv week\n"
    "\n"
    "The page is a single file without scripts, and loads nothing from a network.",
)
@click.option(
    "--from", "source", required=True, metavar="DIR", help="The folder given to `run --to`."
)
@click.option("--to", "page", required=True, metavar="FILE", help="The page, as HTML.")
@span_options
@click.option(
    "--csv",
    type=click.Path(file_okay=False, path_type=Path),
    help="Also write each table as CSV to this folder.",
)
@click.option(
    "--json",
    type=click.Path(file_okay=False, path_type=Path),
    help="Also write each table to this folder as JSON, one object per line.",
)
@click.option(
    "--top",
    type=click.IntRange(1, 200),
    default=20,
    show_default=True,
    help="Number of groups to show.",
)
@spark_options
def report(
    *,
    source: str,
    page: str,
    since: int,
    until: int | None,
    csv: Path | None,
    json: Path | None,
    top: int,
    engine: str,
    master: str | None,
    remote: str | None,
    settings: tuple[str, ...],
) -> None:
    """Make an HTML page of the tables that jobs have written."""
    given = pairs(settings, "--set")
    with spark_job():
        from pipeline.command import ReportOrder, carry_out_report
        from pipeline.engine_choice import Engine

        order = ReportOrder(
            source,
            page,
            since,
            now_ms() if until is None else until,
            csv=csv,
            json=json,
            top=top,
            master=master,
            remote=remote,
            settings=given,
            engine=Engine(engine),
        )
        for line in carry_out_report(order, progress()):
            click.echo(line)
