"""`rollcall config`: which values would the daemon run with, and where does each come from?

Takes the options of `rollcall serve`, reads the same sources and starts nothing. --markdown prints
the reference of all keys, docs/configuration.md.
"""

import json
from pathlib import Path

import click

from cli.options import configuration_options, warn
from cli.read_options import read_options
from cli.reference import reference
from config.keys import Config, keys
from config.types import BrokerKey
from protocol.config_def import HIDDEN, ConfigType, ConfigValue, convert_to_string


@click.command(name="config")
@configuration_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
@click.option("--changed", is_flag=True, help="Show only values that some source has set.")
@click.option("--markdown", is_flag=True, help="Print the reference of all keys instead.")
def show_config(
    *,
    data_dir: str | None,
    listen: tuple[str, ...],
    advertise: tuple[str, ...],
    admin: str | None,
    config_file: Path | None,
    pairs: tuple[str, ...],
    as_json: bool,
    changed: bool,
    markdown: bool,
) -> None:
    """Print the effective configuration, with the source of each value.

    Takes the options of `rollcall serve`, and reports the same errors.
    """
    if markdown:
        click.echo(reference(), nl=False)
        return
    config = read_options(
        data_dir=data_dir,
        listen=listen,
        advertise=advertise,
        admin=admin,
        config_file=config_file,
        pairs=pairs,
    )
    warn(config)
    shown = [key for key in _sorted_keys() if not changed or key.name in config.origins]
    click.echo(_as_json(config, shown) if as_json else _as_table(config, shown))


def _sorted_keys() -> list[BrokerKey]:
    return sorted(keys().values(), key=lambda key: key.name)


def _shown(config: Config, key: BrokerKey) -> ConfigValue | None:
    """Kafka's `Password.toString` for what is secret."""
    value = config.value(key)
    return HIDDEN if value and key.type is ConfigType.PASSWORD else value


def _as_json(config: Config, shown: list[BrokerKey]) -> str:
    return json.dumps(
        {
            key.name: {
                "value": _shown(config, key),
                "source": config.origin(key).source,
                "place": config.origin(key).place,
            }
            for key in shown
        },
        indent=2,
    )


def _as_table(config: Config, shown: list[BrokerKey]) -> str:
    """Lines that a properties file could hold; the origin stands behind each value."""
    lines = [
        (f"{key.name} = {convert_to_string(_shown(config, key))}", config.origin(key))
        for key in shown
    ]
    width = min(max((len(line) for line, _ in lines), default=0), 60)
    return "\n".join(f"{line:{width}}  ({origin})" for line, origin in lines)
