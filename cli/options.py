"""Configuration options: those that `rollcall serve` and `rollcall config` share.

cli/read_options.py makes a Config of them. cli/start.py reads the usual ones without click: an
option that is added here is added there too.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click
from click.shell_completion import CompletionItem

from config.keys import Config, keys

CommandFunction = TypeVar("CommandFunction", bound=Callable[..., object])


def _complete_pair(_c: click.Context, _p: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [
        CompletionItem(f"{name}=", help=key.documentation)
        for name, key in keys().items()
        if name.startswith(incomplete)
    ]


def config_file_option(
    description: str = "The daemon's configuration file.",
) -> Callable[[CommandFunction], CommandFunction]:
    return click.option(
        "--config",
        "config_file",
        metavar="FILE",
        type=click.Path(path_type=Path),
        envvar="ROLLCALL_CONFIG",
        show_envvar=True,
        help=description,
    )


_OPTIONS = (
    click.option(
        "--data-dir",
        metavar="DIR",
        type=click.Path(file_okay=False),
        help="The data directory.  [default: ./rollcall-data]",
    ),
    click.option(
        "--listen",
        metavar="HOST:PORT",
        multiple=True,
        help="Address to listen on; port 0 picks a free port. May be repeated as "
        "NAME://HOST:PORT.  [default: 127.0.0.1:9092]",
    ),
    click.option(
        "--advertise",
        metavar="HOST:PORT",
        multiple=True,
        help="Address that clients connect to.  [default: the address of --listen]",
    ),
    click.option(
        "--admin",
        metavar="HOST:PORT",
        help="Address of the admin port: /metrics, /livez, /readyz.  [default: 127.0.0.1:9180]",
    ),
    config_file_option("A .toml file with Kafka's property names as keys, or a server.properties."),
    click.option(
        "--set",
        "pairs",
        metavar="NAME=VALUE",
        multiple=True,
        shell_complete=_complete_pair,
        help="Set one property, such as group.initial.rebalance.delay.ms=0. May be repeated.",
    ),
)


def configuration_options(command: CommandFunction) -> CommandFunction:
    """Give a command the options from which `read_options` makes a Config."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def warn(config: Config) -> None:
    """Print the warnings about accepted but unused values on stderr."""
    for warning in config.warnings:
        click.echo(f"rollcall: warning: {warning}", err=True)
