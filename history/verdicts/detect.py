"""Which troubles does a group have now? All detectors, one after the other.

Pure: facts of this moment and the group's past go in, verdicts come out; a verdict that does not
come out any more has cleared. Who looks when, and who is told, is broker/lag/verdict_watch.py's.
"""

from collections.abc import Callable, Iterator
from typing import Final

from history.verdicts.assignment import (
    needless_moves,
    orphan_partitions,
    shape_of,
    skewed_assignments,
    two_owners,
)
from history.verdicts.group import (
    mixed_members,
    rebalance_loops,
    refused_joins,
    stuck_groups,
)
from history.verdicts.members import (
    commit_storms,
    flapping_members,
    members_without_progress,
    slow_joiners,
)
from history.verdicts.model import GroupFacts, Trouble, TroubleLimits
from history.verdicts.past import Past

Detector = Callable[[GroupFacts, Past, TroubleLimits], Iterator[Trouble]]

DETECTORS: Final[tuple[Detector, ...]] = (
    stuck_groups,
    rebalance_loops,
    flapping_members,
    slow_joiners,
    members_without_progress,
    commit_storms,
    two_owners,
    orphan_partitions,
    skewed_assignments,
    needless_moves,
    mixed_members,
    refused_joins,
)


def find_troubles(
    facts: GroupFacts,
    past: Past,
    limits: TroubleLimits,
    failed: Callable[[Exception], None] | None = None,
) -> list[Trouble]:
    """Enter this look into the past, and judge. A detector that raises says nothing; `failed` is
    told, or without it the fault is raised.
    """
    past.forget(facts.at_ms, limits.window_ms)
    past.look(facts, shape_of(facts, past.shape))
    found: list[Trouble] = []
    for detect in DETECTORS:
        try:
            found += detect(facts, past, limits)
        except Exception as error:
            if failed is None:
                raise
            failed(error)
    return found
