"""`rollcall pipeline lake`: maintenance of a lake: merge the files of its runs, drop old days.

Reads the options; pipeline/lake_maintenance.py does the work, without Spark.
"""

import click

from cli.clock import InstantParam
from cli.pipeline_options import spark_job


@click.group(
    epilog="\b\nExamples:\n"
    "  rollcall pipeline lake compact /data/lake\n"
    "  rollcall pipeline lake expire /data/lake --before 90d"
)
def lake() -> None:
    """Maintain a lake in a local folder."""


@lake.command()
@click.argument("path", metavar="LAKE")
def compact(path: str) -> None:
    """Merge all runs into one: each table has one file for each day."""
    with spark_job():
        from pipeline.lake_maintenance import compact_lake

        done = compact_lake(path)
    click.echo(
        f"{done.runs} runs, {done.files_before} files before, {done.files_after} after; "
        f"removed {done.removed} folders of replaced or incomplete runs"
    )


@lake.command()
@click.argument("path", metavar="LAKE")
@click.option("--before", type=InstantParam(), required=True, help="Days before it are dropped.")
def expire(path: str, *, before: int) -> None:
    """Drop whole days. What jobs derive from them, such as old offsets, is unknown afterwards."""
    with spark_job():
        from pipeline.lake_maintenance import expire_lake

        days = expire_lake(path, before)
    click.echo(f"dropped {len(days)} days" + (f", {days[0]} to {days[-1]}" if days else ""))
