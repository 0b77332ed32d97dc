"""Which options have the `rollcall log` commands in common, and how are their values read?

Paths, and the topic of a file whose folder does not say it.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import click

from cli.exits import BadNews, of_disk
from logtools.places import DataPlace, NothingThere, place_at
from protocol.names import OFFSETS_TOPIC

CommandFunction = TypeVar("CommandFunction", bound=Callable[..., object])

paths_argument = click.argument(
    "paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path)
)

log_topic_option = click.option(
    "--log-topic",
    "log_topics",
    metavar="TOPIC",
    multiple=True,
    help="Whose logs to read in a data directory, and what a lone file is taken for. May be "
    f"repeated; `all` is every topic.  [default: {OFFSETS_TOPIC}]",
)

partition_option = click.option(
    "--partition",
    "partitions",
    metavar="N",
    multiple=True,
    type=click.IntRange(min=0),
    help="Only this partition's log. May be repeated.",
)


def look_at(path: Path, log_topics: tuple[str, ...], partitions: tuple[int, ...] = ()) -> DataPlace:
    """What is at the path, of these topics; a wrong path is a usage error."""
    named = [topic for topic in log_topics if topic != "all"]
    try:
        place = place_at(path, topic=named[0] if named else OFFSETS_TOPIC)
    except NothingThere as nothing:
        raise click.UsageError(str(nothing)) from None
    except OSError as fault:
        raise click.UsageError(f"{path}: {fault.strerror or fault}") from None
    if not place.is_data_dir:
        return place.only((), partitions)
    topics = () if "all" in log_topics else tuple(named) or (OFFSETS_TOPIC,)
    chosen = place.only(topics, partitions)
    if not chosen.partitions:
        there = ", ".join(sorted(place.topics))
        raise click.UsageError(f"{path} has no such log; it has {there}")
    return chosen


@contextmanager
def reading() -> Iterator[None]:
    """Read files and print what may be long.

    A reader that has seen enough (`| head`) ends it, and is no fault; a file that cannot be read is
    one line. A running daemon's cleaner may take a file away that was there a moment ago.
    """
    try:
        yield
    except BrokenPipeError:
        # What is still buffered goes nowhere, without another complaint.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except FileNotFoundError as gone:
        said = f"{gone.filename} is gone: was its log cleaned meanwhile? Try again"
        raise BadNews(said) from None
    except OSError as failed:
        raise of_disk(failed) from None


def note_running_daemon(place: DataPlace) -> None:
    """Say so if somebody writes to these files: then what is half written is no damage."""
    if place.is_data_dir and (_is_locked(place.path) or _is_locked(place.path / ".lock")):
        click.echo(
            f"rollcall: note: a daemon runs on {place.path}; what it just writes may look wrong",
            err=True,
        )


def _is_locked(lock: Path) -> bool:
    """Does any process hold it? Asks the system's list, and so never stands in a daemon's way.

    A daemon of Rollcall locks the directory and its file, a Kafka the file alone.
    """
    try:
        inode = lock.stat().st_ino
        held = Path("/proc/locks").read_text()
    except OSError:
        return False
    return any(line.split()[5].endswith(f":{inode}") for line in held.splitlines())
