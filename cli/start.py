"""Start of the daemon: reads the usual command lines of `rollcall serve` itself, without click.

click takes 15 ms of a start and 1.5 MB. What scripts and units write is options in full with their
values; these are read here. Whatever else there is (help, a word that is no option, a mistake, a
file that cannot be read) is left to click, which reads the same words again, and reports.
"""

import gc
import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Final

from cli.read_options import read_options
from config.keys import Config
from config.written import ConfigError

REPAIR: Final = "--repair"
ONE_VALUE: Final = {"--data-dir": "data_dir", "--admin": "admin", "--config": "config_file"}
"""The last one counts."""

MANY_VALUES: Final = {"--listen": "listen", "--advertise": "advertise", "--set": "pairs"}

CONFIG_VARIABLE: Final = "ROLLCALL_CONFIG"


class ServeOptions:
    """What `cli.serve.serve` gets of click."""

    def __init__(self) -> None:
        self.repair = False
        self.single: dict[str, str] = {}
        self.repeated: dict[str, list[str]] = {name: [] for name in MANY_VALUES.values()}

    def config(self) -> Config | None:
        """None: click reports what is wrong with a path. Raises ConfigError."""
        data_dir = self.single.get("data_dir")
        file = self.single.get("config_file") or os.environ.get(CONFIG_VARIABLE)
        if not (_may_be_read(data_dir) and _may_be_read(file)):
            return None
        if data_dir is not None and os.path.isfile(data_dir):  # noqa: PTH113  as click looks at it
            return None
        return read_options(
            data_dir=data_dir,
            listen=tuple(self.repeated["listen"]),
            advertise=tuple(self.repeated["advertise"]),
            admin=self.single.get("admin"),
            config_file=None if not file else Path(file),
            pairs=tuple(self.repeated["pairs"]),
        )


def _may_be_read(path: str | None) -> bool:
    """Or is not there yet."""
    return not path or not os.path.exists(path) or os.access(path, os.R_OK)  # noqa: PTH110


def read_words(words: Sequence[str]) -> ServeOptions | None:
    """The options of `rollcall serve`; None: click has to read them."""
    options = ServeOptions()
    left = list(reversed(words))
    while left:
        name, equals, value = left.pop().partition("=")
        if name == REPAIR and not equals:
            options.repair = True
            continue
        if not equals:
            value = left.pop() if left else ""
        if not value or (value.startswith("-") and not equals):
            return None
        if name in ONE_VALUE:
            options.single[ONE_VALUE[name]] = value
        elif name in MANY_VALUES:
            options.repeated[MANY_VALUES[name]].append(value)
        else:
            return None
    return options


def serve_at_once(words: Sequence[str]) -> int | None:
    """Run the daemon until it ends; None: nothing was done, click has to read the words."""
    options = read_words(words)
    if options is None:
        return None
    try:
        config = options.config()
    except (ConfigError, OSError):
        return None
    if config is None:
        return None
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as cli/commands.py does
    try:
        return start_daemon(config, repair=options.repair)
    except OSError as failed:
        from cli.commands import report_output_error

        return report_output_error(failed)


def start_daemon(config: Config, *, repair: bool) -> int:
    """Run the daemon until it ends; the exit code."""
    gc.disable()  # a start makes much and drops little; Daemon.load turns it on again
    from broker.loop.without_openssl import import_event_loop

    import_event_loop()
    from broker.main import run_daemon
    from console.start import open_console

    return run_daemon(config, open_console, repair=repair)
