"""Pipeline options: spans and Spark settings that the `rollcall pipeline` commands share.

Also what every command that imports the pipeline needs: a missing package of the extra is an
operator error, and a signal ends a job with one line.
"""

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Final, TypeVar

import click

from cli.clock import InstantParam
from seams.operator_error import OperatorError, WrongInput

if TYPE_CHECKING:
    from pipeline.progress import Progress

EXTRA: Final = "rollcall-broker[pipeline]"
OF_THE_EXTRA: Final = (
    "duckdb",
    "google_crc32c",
    "numpy",
    "pandas",
    "py4j",
    "pyarrow",
    "pyspark",
    "sqlframe",
    "sqlglot",
)

CommandFunction = TypeVar("CommandFunction", bound=Callable[..., object])


def spark_options(command: CommandFunction) -> CommandFunction:
    """Options that say which engine runs, and where Spark runs."""
    for option in reversed(
        (
            click.option(
                "--engine",
                type=click.Choice(["auto", "local", "spark"]),
                default="auto",
                show_default=True,
                help="local: in this process, without Java; auto: local for small logs.",
            ),
            click.option(
                "--master",
                metavar="URL",
                help="Spark master, as for spark-submit; implies Spark.  [default: local[*]]",
            ),
            click.option("--remote", metavar="URL", help="A Spark Connect server, sc://HOST:PORT."),
            click.option(
                "--set",
                "settings",
                multiple=True,
                metavar="KEY=VALUE",
                help="A setting of Spark.",
            ),
        )
    ):
        command = option(command)
    return command


def cluster_option(command: CommandFunction) -> CommandFunction:
    """Which of several clusters in a lake."""
    option = click.option(
        "--as",
        "cluster",
        metavar="NAME",
        help="The cluster's name in a lake that has several. For ingest: land it under this name.",
    )
    return option(command)


def span_options(command: CommandFunction) -> CommandFunction:
    """Options for the time span."""
    until = click.option(
        "--until", type=InstantParam(), help="End of the span, exclusive.  [default: now]"
    )
    since = click.option(
        "--since",
        type=InstantParam(),
        default="0",
        help="Start of the span, inclusive.  [default: all]",
    )
    return since(until(command))


def pairs(words: tuple[str, ...], option: str) -> Mapping[str, str]:
    """Parses words of the form KEY=VALUE."""
    found = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise click.UsageError(f"{option} {word!r}: expected KEY=VALUE")
        found[key] = value
    return found


@contextmanager
def spark_job() -> Iterator[None]:
    """Around a job and the imports of the pipeline: missing packages, signals, Spark's own log."""
    from pipeline.spark_log import keep

    try:
        with _stop_signals():
            yield
    except _Signalled as signalled:
        raise _stopped(signalled.number) from None
    except OperatorError:
        raise
    except ImportError as missing:
        raise not_installed(missing) from None
    except Exception:
        if (log := keep()) is not None:
            click.echo(f"Spark's output is in {log}", err=True)
        raise


class _Signalled(BaseException):
    """Can be raised anywhere, so it must not be caught as an Exception."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def _stopped(number: int) -> click.ClickException:
    """SIGINT or SIGTERM came; the exit code is the one that a shell reports."""
    stopped = click.ClickException("stopped: tables that were already written are complete")
    stopped.exit_code = 128 + number  # type: ignore[misc]  # its own, as click reads it
    return stopped


@contextmanager
def _stop_signals() -> Iterator[None]:
    """The first signal ends the command with one line; a second one ends the process at once."""

    def stop(number: int, _frame: FrameType | None) -> None:
        for handled in before:
            signal.signal(handled, signal.SIG_DFL)
        raise _Signalled(number)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def progress() -> "Progress":
    """Lines on standard error; what a program reads is on standard output."""
    from pipeline.progress import Progress

    return Progress(lambda line: click.echo(line, err=True))


def not_installed(missing: ImportError) -> WrongInput:
    """A package of the extra is missing; any other ImportError is a bug and is raised."""
    package = (missing.name or "").partition(".")[0]
    if package not in OF_THE_EXTRA:
        raise missing
    return WrongInput(f"{package} is not installed: pip install '{EXTRA}'")
