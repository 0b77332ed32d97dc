"""Options that the `rollcall log` commands share: paths, topics, partitions.

The topic option also names the topic of a file whose folder does not.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

import click

from logtools.layout import DataPlace, place_at
from protocol.names import OFFSETS_TOPIC
from seams.operator_error import OperationFailed, WrongInput
from seams.text import first_of

CommandFunction = TypeVar("CommandFunction", bound=Callable[..., object])

_TOPICS_SHOWN: Final = 20
"""In a message of one line."""

paths_argument = click.argument(
    "paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path)
)

log_topic_option = click.option(
    "--log-topic",
    "log_topics",
    metavar="TOPIC",
    multiple=True,
    help="The topic whose logs are read in a data directory, or to which a single file belongs. "
    f"May be repeated; `all` is every topic.  [default: {OFFSETS_TOPIC}]",
)

partition_option = click.option(
    "--partition",
    "partitions",
    metavar="N",
    multiple=True,
    type=click.IntRange(min=0),
    help="Only this partition's log. May be repeated.",
)


def logs_at(path: Path, log_topics: tuple[str, ...], partitions: tuple[int, ...] = ()) -> DataPlace:
    """The logs of these topics at the path. Raises WrongInput."""
    named = [topic for topic in log_topics if topic != "all"]
    try:
        place = place_at(path, topic=named[0] if named else OFFSETS_TOPIC)
    except OSError as fault:
        raise WrongInput(f"{path}: {fault.strerror or fault}") from None
    if not place.is_data_dir:
        return place.only((), partitions)
    topics = () if "all" in log_topics else tuple(named) or (OFFSETS_TOPIC,)
    chosen = place.only(topics, partitions)
    if not chosen.partitions:
        there = first_of(sorted(place.topics), _TOPICS_SHOWN)
        raise WrongInput(f"{path} has no such log; its topics are {there}")
    return chosen


@contextmanager
def reading() -> Iterator[None]:
    """Around reading files and printing long output.

    A closed pipe (`| head`) ends the output without an error. A file that is gone has a message of
    its own: the cleaner of a running daemon may have removed it.
    """
    try:
        yield
    except BrokenPipeError:
        # Discards what is still buffered, without another error at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except FileNotFoundError as gone:
        said = f"{gone.filename} is gone: its log may have been cleaned. Try again"
        raise OperationFailed(said) from None


def note_running_daemon(place: DataPlace) -> None:
    """Prints a note if a process writes to these files: half-written batches are not damage."""
    if place.is_data_dir and (_is_locked(place.path) or _is_locked(place.path / ".lock")):
        click.echo(
            f"rollcall: note: a daemon runs on {place.path}; batches in progress may look wrong",
            err=True,
        )


def _is_locked(lock: Path) -> bool:
    """Does any process hold the lock? Reads /proc/locks, so it never blocks a starting daemon.

    Rollcall locks the directory and its file, a Kafka only the file.
    """
    try:
        inode = lock.stat().st_ino
        held = Path("/proc/locks").read_text()
    except OSError:
        return False
    return any(line.split()[5].endswith(f":{inode}") for line in held.splitlines())
