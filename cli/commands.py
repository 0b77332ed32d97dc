"""Commands: the commands of the `rollcall` command line.

Only parses the command line and calls the command. A command's module is imported when that command
is called, and `serve` does the same with broker/main.py. So no command, no start of the daemon and
no press of Tab loads what only another one needs.
Exit codes are those of exits.py, each error is one line; a traceback is always a defect.
"""

import errno
import os
import sys
from importlib import import_module
from io import TextIOWrapper
from typing import Final

import click

from cli.exits import INTERRUPTED, WRONG, of_disk
from cli.groups import Commands
from protocol.printable import printable
from rollcall import __version__
from rollcall.compiled import describe_build, describe_interpreter

_COMMANDS: Final = {
    "completion": ("cli.completion", "completion"),
    "config": ("cli.config", "show_config"),
    "drill": ("cli.drill", "drill"),
    "group": ("cli.group", "group"),
    "history": ("cli.why", "history"),
    "lag": ("cli.lag", "show_lag"),
    "log": ("cli.log", "log"),
    "offsets": ("cli.offsets", "offsets"),
    "pipeline": ("cli.pipeline", "pipeline"),
    "scram": ("cli.scram", "scram"),
    "serve": ("cli.serve", "serve"),
    "top": ("cli.top", "top"),
    "topic": ("cli.topic", "topic"),
    "verdicts": ("cli.verdicts", "show_verdicts"),
    "why": ("cli.why", "why"),
}
"""Each command's module and its name there."""


class _Commands(Commands):
    opens_logs = False  # broker/main.py reports what `serve` finds in its data directory

    def list_commands(self, _context: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, _context: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        module, attribute = _COMMANDS[name]
        command: object = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command


def _show_version(context: click.Context, _option: click.Parameter, is_asked: object) -> None:
    if is_asked and not context.resilient_parsing:
        click.echo(f"rollcall {__version__} ({describe_build()}; {describe_interpreter()})")
        context.exit()


@click.group(
    cls=_Commands,
    name="rollcall",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with `rollcall serve`; then point any Kafka client at 127.0.0.1:9092.\n\n"
    "Exit codes of every command: 0: done; 1: done, and the answer is bad news or a refusal; "
    "2: wrong usage, no such group, folder or file, or no daemon answers.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version, the build and the Python, and exit.",
)
def cli() -> None:
    """A Kafka group coordinator that shows why groups rebalance and loses no acknowledged commit.

    Unmodified Kafka clients and tools use it for their consumer groups, on one machine, without a
    JVM. It answers as Apache Kafka 4.3.1 does and stores offsets in Kafka's own format.
    """


def run() -> int:
    """The exit code of the command that this process was started with."""
    if isinstance(sys.stdout, TextIOWrapper):
        # A terminal that cannot show a group's name shows its code points.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        outcome: object = cli.main(prog_name="rollcall", standalone_mode=False)
        if sys.stdout is not None:  # closed by who started us (`>&-`)
            sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as bare:
        bare.show()
        return WRONG
    except click.ClickException as wrong:
        context = wrong.ctx if isinstance(wrong, click.UsageError) else None
        command = context.command_path if context is not None else "rollcall"
        return _report(f"{command}: {wrong.format_message()}", wrong.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except OSError as failed:
        return report_output_error(failed)
    return outcome if isinstance(outcome, int) else 0


def report_output_error(failed: OSError) -> int:
    """Of the standard output, since commands have reported theirs; the exit code."""
    _drop_what_cannot_be_written()
    if failed.errno == errno.EPIPE:
        return 0  # the reader has closed the pipe (`rollcall config | head`): no error
    error = of_disk(failed)
    return _report(f"rollcall: {error}", error.exit_code)


def _drop_what_cannot_be_written() -> None:
    """Discard buffered output: the interpreter's own flush at exit would fail again."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report(line: str, exit_code: int) -> int:
    click.echo(printable(" ".join(line.split())), err=True)
    return exit_code
