"""What can be asked of Rollcall on a command line? The `rollcall` command and its subcommands.

Only reads the command line and hands on: `serve` to broker/main.py, which is imported there and not
here, because every other command, and completion at each press of Tab, should not wait for it.
Bad usage and bad configuration end with exit code 2 and one line; a traceback is always a defect.
"""

import errno
import os
import sys

import click

from broker.config_sources import BadConfig
from cli.completion import completion
from cli.config import show_config
from cli.lag import show_lag
from cli.log import log
from cli.offsets import offsets
from cli.pipeline import pipeline
from cli.serve import serve
from cli.verdicts import show_verdicts
from cli.why import history, why
from rollcall import __version__

_USAGE_ERROR = 2
_INTERRUPTED = 130  # as a shell reports SIGINT


@click.group(
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


cli.add_command(serve)
cli.add_command(show_config)
cli.add_command(log)
cli.add_command(offsets)
cli.add_command(pipeline)
cli.add_command(show_lag)
cli.add_command(show_verdicts)
cli.add_command(why)
cli.add_command(history)
cli.add_command(completion)


def main() -> None:
    """The entry point: run the command and leave with its exit code."""
    sys.exit(run())


def run() -> int:
    """The exit code of the command that this process was started with."""
    try:
        outcome: object = cli.main(prog_name="rollcall", standalone_mode=False)
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
