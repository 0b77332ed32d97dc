"""Group selection: globs, or regular expressions after `re:`."""

import re
from collections.abc import Iterable, Sequence
from fnmatch import translate
from typing import Final

from protocol.names import GroupId
from transfer.errors import BadPattern

REGEX_MARK: Final = "re:"


class Selection:
    """Groups that match one of the patterns, all if there are none, and none of the excluded."""

    __slots__ = ("_excluded", "_wanted")

    def __init__(self, wanted: Sequence[str], excluded: Sequence[str]) -> None:
        """Raises BadPattern."""
        self._wanted = [_compiled(pattern) for pattern in wanted]
        self._excluded = [_compiled(pattern) for pattern in excluded]

    def of(self, group_ids: Iterable[GroupId]) -> list[GroupId]:
        return [group_id for group_id in group_ids if self.has(group_id)]

    def has(self, group_id: GroupId) -> bool:
        wanted = not self._wanted or any(pattern.fullmatch(group_id) for pattern in self._wanted)
        return wanted and not any(pattern.fullmatch(group_id) for pattern in self._excluded)


def _compiled(pattern: str) -> re.Pattern[str]:
    if not pattern.startswith(REGEX_MARK):
        return re.compile(translate(pattern))
    try:
        return re.compile(pattern.removeprefix(REGEX_MARK), re.DOTALL)
    except re.error as fault:
        raise BadPattern(f"{pattern!r} is not a regular expression: {fault}") from None
