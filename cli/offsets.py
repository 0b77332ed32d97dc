"""`rollcall offsets`: import and export of groups and committed offsets.

Two commands, `import` and `export`; the work is done in transfer/.
"""

import click

from cli.groups import Commands
from cli.offsets_export import offsets_export
from cli.offsets_import import offsets_import


@click.group(
    cls=Commands,
    name="offsets",
    epilog="docs/migration.md describes a move from a Kafka and back.",
)
def offsets() -> None:
    """Import and export groups and their offsets: Kafka's files, CSV and JSON."""


offsets.add_command(offsets_import)
offsets.add_command(offsets_export)
