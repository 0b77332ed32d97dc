"""Record limits: how much of a list one record of the history names; it counts the rest."""

from collections.abc import Sequence
from typing import TypeVar

from msgspec import Struct

T = TypeVar("T")


class RecordLimits(Struct, frozen=True):
    members: int = 200  # of a list in one record; the slowest come first
    moves: int = 200  # partitions by name in one record
    assignment_bytes: int = 1 << 20  # of all members; larger ones are not read
    offsets: int = 1_000  # in one record; more go into several

    def cut(self, members: Sequence[T]) -> tuple[tuple[T, ...], int]:
        """The first members of a list, and how many are left out."""
        first = tuple(members[: self.members])
        return first, len(members) - len(first)
