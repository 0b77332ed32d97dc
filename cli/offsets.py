"""`rollcall offsets`: how do committed offsets come in from a Kafka or a file, and out again?

Two commands, `import` and `export`; the work is done in transfer/.
"""

import click

from cli.groups import Commands
from cli.offsets_export import offsets_export
from cli.offsets_import import offsets_import


@click.group(
    cls=Commands,
    name="offsets",
    epilog="docs/migration.md walks through a move from a Kafka and back.",
)
def offsets() -> None:
    """Move groups and their offsets: from a Kafka's files, to them, as CSV and as JSON."""


offsets.add_command(offsets_import)
offsets.add_command(offsets_export)
