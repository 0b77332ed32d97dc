"""Segment swaps: whether files that were just read are complete, or the cleaner swapped some.

During a swap there is a moment in which the old segments are set aside and the new one does not
have its name yet: a reader then misses a part of the log.
"""

from collections.abc import Callable
from pathlib import Path

from storage.log.segment_swap import SWAP_SUFFIX


def holds_of_whole(folder: Path, fact: Callable[[], bool]) -> bool:
    """Is this so, of files of which none came, went or was about to while they were looked at?"""
    before = _names(folder)
    if any(name.endswith(SWAP_SUFFIX) for name in before):
        return False
    try:
        return fact() and _names(folder) == before
    except FileNotFoundError:
        return False


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.suffix in (".log", SWAP_SUFFIX)}
