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
        from pipeline.lake_maintenance import compact_lake, compacted_text

        click.echo(compacted_text(compact_lake(path)))


@lake.command()
@click.argument("path", metavar="LAKE")
@click.option("--before", type=InstantParam(), required=True, help="Days before it are dropped.")
def expire(path: str, *, before: int) -> None:
    """Drop whole days. What jobs derive from them, such as old offsets, is unknown afterwards."""
    with spark_job():
        from pipeline.lake_maintenance import expire_lake, expired_text

        click.echo(expired_text(expire_lake(path, before)))
