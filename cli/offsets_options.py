"""Transfer options: the options that `rollcall offsets import` and `export` share.

The source or target is a stopped daemon's data directory (--data-dir) or a running cluster
(--bootstrap).
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from cli.options import config_file_option
from seams.operator_error import WrongInput

if TYPE_CHECKING:
    from client.properties import ClientProperties
    from transfer.report import Report

CommandFunction = TypeVar("CommandFunction", bound=Callable[..., object])


_OPTIONS = (
    click.option(
        "--data-dir",
        metavar="DIR",
        type=click.Path(file_okay=False),
        help="The data directory of a stopped daemon.  [default: ./rollcall-data]",
    ),
    click.option(
        "--bootstrap",
        metavar="HOST:PORT",
        help="Use a running cluster, Rollcall or Kafka, instead of a data directory.",
    ),
    click.option(
        "--command-config",
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="With --bootstrap: client properties, as for Kafka's tools: security.protocol, "
        "ssl.*, sasl.*.",
    ),
    config_file_option(),
    click.option(
        "--set", "pairs", metavar="NAME=VALUE", multiple=True, help="As for `rollcall serve`."
    ),
    click.option(
        "--group",
        "wanted",
        metavar="PATTERN",
        multiple=True,
        help="Only these groups: a glob, or re:REGEX. May be repeated.",
    ),
    click.option(
        "--exclude",
        "excluded",
        metavar="PATTERN",
        multiple=True,
        help="Not these groups. May be repeated.",
    ),
    click.option("--dry-run", is_flag=True, help="Report what would be done, and write nothing."),
    click.option(
        "--merge",
        is_flag=True,
        help="If the target has the groups: keep the newer commit of each offset.",
    ),
    click.option(
        "--overwrite",
        is_flag=True,
        help="If the target has the groups: replace them.",
    ),
)


def transfer_options(command: CommandFunction) -> CommandFunction:
    """The options of both commands."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def check_usage(
    bootstrap: str | None,
    command_config: Path | None,
    data_dir: str | None,
    *,
    merge: bool,
    overwrite: bool,
) -> None:
    if merge and overwrite:
        raise click.UsageError("--merge and --overwrite cannot be combined")
    if bootstrap is not None and data_dir is not None:
        raise click.UsageError("--bootstrap and --data-dir cannot be combined")
    if command_config is not None and bootstrap is None:
        raise click.UsageError("--command-config is for --bootstrap")


def client_of(command_config: Path | None) -> "ClientProperties | None":
    """Raises BadClientProperties."""
    from client.properties import read_client_properties

    return None if command_config is None else read_client_properties(command_config)


@contextmanager
def data_dir_in_use() -> Iterator[None]:
    """A running daemon has the data directory: the message names the other way to reach it."""
    from storage.data_dir import DataDirLocked

    try:
        yield
    except DataDirLocked as locked:
        raise WrongInput(f"{locked}, or use --bootstrap") from None


def show(report: "Report", *, machine: bool, to_stderr: bool = False) -> None:
    from transfer.report import report_json, report_text

    text = json.dumps(report_json(report), indent=2) + "\n" if machine else report_text(report)
    click.echo(text, nl=False, err=to_stderr)
