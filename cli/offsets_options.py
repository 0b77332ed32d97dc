"""Options of `rollcall offsets import` and `export`, and where offsets are read and written.

A place is a stopped daemon's data directory (--data-dir) or a running cluster (--bootstrap). What
transfer/ refuses in one line becomes a usage error here: exit code 2.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from cli.exits import BadNews, WrongInput, of_disk
from cli.options import read_options
from config.keys import Config

if TYPE_CHECKING:
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
        "--config",
        "config_file",
        metavar="FILE",
        type=click.Path(path_type=Path),
        envvar="ROLLCALL_CONFIG",
        show_envvar=True,
        help="The daemon's configuration file.",
    ),
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


def config_of(data_dir: str | None, config_file: Path | None, pairs: tuple[str, ...]) -> Config:
    return read_options(
        data_dir=data_dir,
        listen=(),
        advertise=(),
        admin=None,
        config_file=config_file,
        pairs=pairs,
    )


def check_usage(
    bootstrap: str | None, data_dir: str | None, *, merge: bool, overwrite: bool
) -> None:
    if merge and overwrite:
        raise click.UsageError("--merge and --overwrite cannot be combined")
    if bootstrap is not None and data_dir is not None:
        raise click.UsageError("--bootstrap and --data-dir cannot be combined")


@contextmanager
def in_one_line() -> Iterator[None]:
    """Wrong places and files end the command with exit code 2, a failing disk and damage with 1."""
    from storage.api import Corrupt, LogClosed
    from storage.data_dir import DataDirLocked, DataDirRefused
    from transfer.errors import BadText, Unusable

    try:
        yield
    except DataDirLocked as locked:
        raise click.UsageError(f"{locked}, or use --bootstrap") from None
    except (Unusable, DataDirRefused) as refused:
        raise click.UsageError(str(refused)) from None
    except BadText as bad:
        raise WrongInput(str(bad)) from None
    except (Corrupt, LogClosed) as bad:
        raise BadNews(str(bad)) from None
    except OSError as failed:
        raise of_disk(failed) from None


def show(report: "Report", *, machine: bool, to_stderr: bool = False) -> None:
    from transfer.report import as_json, as_text

    text = json.dumps(as_json(report), indent=2) + "\n" if machine else as_text(report)
    click.echo(text, nl=False, err=to_stderr)
