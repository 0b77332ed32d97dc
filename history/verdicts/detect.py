"""Verdict detection: runs all detectors on one group.

Pure. The input is the group as observed now, and its recent activity; the output are the verdicts
that hold. A verdict that is not returned any more has cleared. broker/lag/verdict_watch.py decides
when a group is inspected, and reports the changes.
"""

from collections.abc import Callable, Iterator
from typing import Final

from history.verdicts.assignment import (
    assignment_of,
    needless_moves,
    orphan_partitions,
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
from history.verdicts.model import ObservedGroup, Verdict, VerdictLimits
from history.verdicts.recent_activity import RecentActivity
from history.verdicts.reconciliation import stuck_reconciliations, unrevoked_partitions

Detector = Callable[[ObservedGroup, RecentActivity, VerdictLimits], Iterator[Verdict]]

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
    unrevoked_partitions,
    stuck_reconciliations,
)


def verdicts_in_steps(
    group: ObservedGroup,
    activity: RecentActivity,
    limits: VerdictLimits,
    failed: Callable[[Exception], None] | None = None,
) -> Iterator[list[Verdict]]:
    """Add this observation to the activity, and run the detectors: a step each, in which a group
    of thousands takes milliseconds. The activity may change between steps.

    A detector that raises returns no verdicts: `failed` gets the exception. Without `failed` it is
    raised.
    """
    activity.prune(group.at_ms, limits.window_ms)
    activity.observe(group, assignment_of(group, activity.assignment))
    yield []
    for detect in DETECTORS:
        found: list[Verdict] = []
        try:
            found += detect(group, activity, limits)
        except Exception as error:
            if failed is None:
                raise
            failed(error)
        yield found
