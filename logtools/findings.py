"""Lint findings: what is wrong, and where; each is one line of `lint`."""

from collections.abc import Iterator
from typing import NamedTuple


class Finding(NamedTuple):
    """`check` is the rule's short name; `position` a byte in the file, None for all of it.

    `is_note`: good to know, and nothing wrong.
    """

    file: str
    position: int | None
    check: str
    problem: str
    is_note: bool = False

    def __str__(self) -> str:
        place = self.file if self.position is None else f"{self.file} at byte {self.position}"
        return f"{place}: {self.check}: {self.problem}"


Findings = Iterator[Finding]


class LintCounts:
    """What was looked at, for the last line of a report."""

    __slots__ = ("batches", "bytes", "files", "records")

    def __init__(self) -> None:
        self.files = 0
        self.bytes = 0
        self.batches = 0
        self.records = 0
