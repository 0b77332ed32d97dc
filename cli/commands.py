"""Commands: what can be asked of Rollcall on a command line.

Only reads the command line and hands on. A command's module is imported when that command is asked
for, and `serve` does the same with broker/main.py: no command, no start of the daemon and no press
of Tab waits for what another one needs.
Bad usage and bad configuration end with exit code 2 and one line; a traceback is always a defect.
"""

import errno
import os
import sys
from importlib import import_module
from typing import Final

import click

from broker.config_sources import BadConfig
from rollcall import __version__

_USAGE_ERROR = 2
_INTERRUPTED = 130  # as a shell reports SIGINT

_COMMANDS: Final = {
    "completion": ("cli.completion", "completion"),
    "config": ("cli.config", "show_config"),
    "history": ("cli.why", "history"),
    "lag": ("cli.lag", "show_lag"),
    "log": ("cli.log", "log"),
    "offsets": ("cli.offsets", "offsets"),
    "pipeline": ("cli.pipeline", "pipeline"),
    "serve": ("cli.serve", "serve"),
    "verdicts": ("cli.verdicts", "show_verdicts"),
    "why": ("cli.why", "why"),
}
"""Each command's module and its name there."""


class _Commands(click.Group):
    def list_commands(self, _context: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, _context: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        module, attribute = _COMMANDS[name]
        command: object = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command


@click.group(
    cls=_Commands,
    name="rollcall",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with `rollcall serve`; then point any Kafka client at 127.0.0.1:9092.",
)
@click.version_option(__version__, message="rollcall %(version)s")
def cli() -> None:
    """A Kafka group coordinator that explains itself and loses nothing.

    Unmodified Kafka clients and tools run their consumer groups on it, on one machine, without a
    JVM. It answers as Apache Kafka 4.3.1 does and keeps its offsets in Kafka's own format.
    """


def run() -> int:
    """The exit code of the command that this process was started with."""
    try:
        outcome: object = cli.main(prog_name="rollcall", standalone_mode=False)
        if sys.stdout is not None:  # closed by who started us (`>&-`)
            sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as bare:
        bare.show()
        return _USAGE_ERROR
    except click.ClickException as wrong:
        context = wrong.ctx if isinstance(wrong, click.UsageError) else None
        command = context.command_path if context is not None else "rollcall"
        return _complain(f"{command}: {wrong.format_message()}", wrong.exit_code)
    except BadConfig as bad:
        return _complain(f"rollcall: {bad}", _USAGE_ERROR)
    except (click.Abort, KeyboardInterrupt):
        return _INTERRUPTED
    except OSError as failed:
        if failed.errno != errno.EPIPE:
            raise
        # The reader has seen enough (`rollcall config | head`); say nothing more to nobody.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return outcome if isinstance(outcome, int) else 0


def _complain(line: str, exit_code: int) -> int:
    click.echo(" ".join(line.split()), err=True)
    return exit_code
