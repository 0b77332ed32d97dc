"""Delayed operation for tests: does what the test sets."""

from collections.abc import Hashable


class ScriptedOp:
    """Completes once it is told to; its command is its own name."""

    def __init__(self, name: str, keys: tuple[Hashable, ...], deadline_ms: int) -> None:
        self.name = name
        self.keys = keys
        self.deadline_ms = deadline_ms
        self.ready = False
        self.asked = 0
        self.says_on_expiration: str | None = f"{name} expired"

    def __repr__(self) -> str:
        return self.name

    def try_complete(self) -> str | None:
        self.asked += 1
        return f"{self.name} completed" if self.ready else None

    def on_expiration(self) -> str | None:
        return self.says_on_expiration
