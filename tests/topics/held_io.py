"""Held executor: runs nothing until the test releases it, between a request and its disk work."""

from collections import deque
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class HeldIo:
    """An IoExecutor. `step` runs the next piece of work, `run` all that there is."""

    def __init__(self) -> None:
        self.is_held = True
        self._tasks: deque[tuple[Callable[[], object], Callable[..., None]]] = deque()

    def submit(self, work: Callable[[], T], done: Callable[[T | Exception], None]) -> None:
        self._tasks.append((work, done))
        if not self.is_held:
            self.run()

    def pause(self) -> None:
        pass

    @property
    def waiting(self) -> int:
        return len(self._tasks)

    def work(self) -> Callable[[], None]:
        """Do the next piece of work, and return what hands its result back."""
        work, done = self._tasks.popleft()
        try:
            result: object = work()
        except Exception as error:
            result = error
        return lambda: done(result)

    def step(self) -> None:
        self.work()()

    def run(self) -> None:
        while self._tasks:
            self.step()
