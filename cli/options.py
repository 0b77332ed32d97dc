"""Configuration options: those that `rollcall serve` and `rollcall config` share.

Each is a short form of a Kafka property: --listen HOST:PORT is --set listeners=..., and so on.
config/sources.py merges and checks the values; nothing is checked here.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click
from click.shell_completion import CompletionItem

from config.keys import Config, keys
from config.listeners import with_listener_name
from config.sources import command_line_setting, given, load_config
from config.written import ConfigError, Setting

CommandFunction = TypeVar("CommandFunction", bound=Callable[..., object])


def _complete_pair(_c: click.Context, _p: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [
        CompletionItem(f"{name}=", help=key.documentation)
        for name, key in keys().items()
        if name.startswith(incomplete)
    ]


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
    click.option(
        "--config",
        "config_file",
        metavar="FILE",
        type=click.Path(path_type=Path),
        envvar="ROLLCALL_CONFIG",
        show_envvar=True,
        help="A .toml file with Kafka's property names as keys, or a server.properties.",
    ),
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


def read_options(
    *,
    data_dir: str | None,
    listen: tuple[str, ...],
    advertise: tuple[str, ...],
    admin: str | None,
    config_file: Path | None,
    pairs: tuple[str, ...],
) -> Config:
    """The Config of these options, this environment and that file; raises ConfigError."""
    settings: list[Setting] = [command_line_setting(pair) for pair in pairs]
    if listen and any(setting.name == "listeners" for setting in settings):
        raise ConfigError("--listen and --set listeners=... say the same: give one of them")
    if data_dir is not None:
        # A list of one: a comma in a folder's name does not make it two.
        settings.append(given("log.dirs", [data_dir], "--data-dir"))
    if listen:
        settings.append(given("listeners", [with_listener_name(at) for at in listen], "--listen"))
    if advertise:
        advertised = [with_listener_name(at) for at in advertise]
        settings.append(given("advertised.listeners", advertised, "--advertise"))
    if admin is not None:
        settings.append(given("rollcall.admin.listener", admin, "--admin"))
    return load_config(command_line=settings, environment=os.environ, file=config_file)


def warn(config: Config) -> None:
    """Print the warnings about accepted but unused values on stderr."""
    for warning in config.warnings:
        click.echo(f"rollcall: warning: {warning}", err=True)
