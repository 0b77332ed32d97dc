"""`rollcall log`: what do the log files contain, are they intact, and what uses the space?"""

import click

from cli.groups import Commands
from cli.log_clean import log_clean
from cli.log_dump import log_dump
from cli.log_lint import log_lint
from cli.log_stat import log_stat


@click.group(
    cls=Commands,
    name="log",
    epilog="PATH is a data directory, a partition's folder or a segment's file, of Rollcall or "
    "of a real Kafka. Only `clean` changes anything.",
)
def log() -> None:
    """Inspect log files (dump, lint, stat), and compact them (clean)."""


log.add_command(log_clean)
log.add_command(log_dump)
log.add_command(log_lint)
log.add_command(log_stat)
