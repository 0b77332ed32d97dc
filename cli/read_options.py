"""Options to configuration: the Config of the options that commands share.

Each option is a short form of a Kafka property: --listen HOST:PORT is --set listeners=..., and so
on. config/sources.py merges and checks the values; nothing is checked here.
"""

import os
from pathlib import Path

from config.keys import Config
from config.listeners import with_listener_name
from config.sources import command_line_setting, given, load_config
from config.written import ConfigError, Setting


def read_options(
    *,
    data_dir: str | None,
    config_file: Path | None,
    pairs: tuple[str, ...] = (),
    listen: tuple[str, ...] = (),
    advertise: tuple[str, ...] = (),
    admin: str | None = None,
) -> Config:
    """The Config of these options, this environment and that file; raises ConfigError.

    A command that works on the files of a stopped daemon has no ports.
    """
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
