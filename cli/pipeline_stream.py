"""`rollcall pipeline stream`: the health of groups, kept up to date by Structured Streaming."""

import click

from cli.clock import SecondsParam
from cli.pipeline_options import pairs, spark_job


@click.command(
    "stream",
    epilog="\b\nExamples:\n"
    "  rollcall pipeline stream --from kafka://127.0.0.1:9092 --to /data/health\n"
    "  rollcall pipeline stream --from kafka://127.0.0.1:9092 --to /data/health "
    "--verdicts-topic verdicts --once",
)
@click.option("--from", "source", required=True, metavar="WHERE", help="kafka://HOST:PORT.")
@click.option(
    "--to",
    "out",
    required=True,
    metavar="DIR",
    help="Folder for tables and checkpoint, used by this stream only.",
)
@click.option(
    "--verdicts-topic", metavar="NAME", help="Topic for each change of a group's status, as JSON."
)
@click.option(
    "--every", type=SecondsParam(), default="30s", show_default=True, help="Time between batches."
)
@click.option("--once", is_flag=True, help="Process what is new since the last run, then end.")
@click.option(
    "--master", metavar="URL", help="Spark master, as for spark-submit.  [default: local[*]]"
)
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A setting of Spark.")
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="An option of Spark's Kafka connector.",
)
def stream(
    *,
    source: str,
    out: str,
    verdicts_topic: str | None,
    every: int,
    once: bool,
    master: str | None,
    settings: tuple[str, ...],
    options: tuple[str, ...],
) -> None:
    """Keep group_health and anomalies up to date, and write changes of status to a topic.

    Each row and each record is written once, however often the command is stopped, killed and
    restarted with the same --to.
    """
    given, to_connector = pairs(settings, "--set"), pairs(options, "--option")
    with spark_job():
        from pipeline.stream.health_stream import StreamOrder, follow

        order = StreamOrder(source, out, verdicts_topic, None if once else every, to_connector)
        if follow(order, master, given):
            click.echo("stopped: the next start continues from here", err=True)
