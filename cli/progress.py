"""Progress bar: how far long work is, on the terminal of standard error and nowhere else.

The work counts, and a thread draws what it has counted so far: the work is not slowed down by its
bar. In a pipe, a file or a log nothing is drawn.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread
from typing import Final

import click

_EVERY_S: Final = 0.2
_WIDTH: Final = 30
_CLEAR: Final = "\r\x1b[K"


class ProgressBar:
    """`part` says how much is done, from 0 to 1."""

    def __init__(self, label: str, part: Callable[[], float]) -> None:
        self._label = label
        self._part = part
        self._lock = Lock()
        self._is_drawn = False

    def echo(self, line: str) -> None:
        """A line of the command's own, on standard output."""
        with self._lock:
            self._clear()
            click.echo(line)

    def draw(self) -> None:
        part = min(self._part(), 1.0)
        full = round(part * _WIDTH)
        bar = "#" * full + "-" * (_WIDTH - full)
        with self._lock:
            self._is_drawn = True
            click.echo(f"{_CLEAR}{self._label} [{bar}] {part:4.0%}", err=True, nl=False)

    def end(self) -> None:
        with self._lock:
            self._clear()

    def _clear(self) -> None:
        if self._is_drawn:
            click.echo(_CLEAR, err=True, nl=False)
            self._is_drawn = False


@contextmanager
def progress_bar(label: str, part: Callable[[], float]) -> Iterator[ProgressBar]:
    """Around the work. The bar is gone afterwards, also after an error."""
    bar = ProgressBar(label, part)
    if not is_terminal():
        yield bar
        return
    ended = Event()

    def draw_often() -> None:
        while not ended.wait(_EVERY_S):
            bar.draw()

    thread = Thread(target=draw_often, name="progress bar", daemon=True)
    thread.start()
    try:
        yield bar
    finally:
        ended.set()
        thread.join()
        bar.end()


def is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()
