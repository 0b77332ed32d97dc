"""Verdict detection: runs all detectors on one group.

Pure. The input is the group as observed now, and its recent activity; the output are the verdicts
that hold. A verdict that is not returned any more has cleared. broker/lag/verdict_watch.py decides
when a group is inspected, and reports the changes.
"""

from collections.abc import Callable, Generator
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
from history.verdicts.model import ObservedGroup, VerdictLimits, VerdictSteps
from history.verdicts.recent_activity import RecentActivity
from history.verdicts.reconciliation import stuck_reconciliations, unrevoked_partitions

Detector = Callable[[ObservedGroup, RecentActivity, VerdictLimits], VerdictSteps]

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
) -> VerdictSteps:
    """Add this observation to the activity, and run the detectors, in steps of about a millisecond
    in a group of thousands. The activity may change at a pause.

    A detector that raises returns no more verdicts: `failed` gets the exception. Without `failed`
    it is raised.
    """
    activity.prune(group.at_ms, limits.window_ms)
    member_ids = yield from _member_ids(group)
    assignment = yield from assignment_of(group, member_ids, activity.assignment)
    activity.observe(group, member_ids, assignment)
    yield None
    for detect in DETECTORS:
        try:
            yield from detect(group, activity, limits)
        except Exception as error:
            if failed is None:
                raise
            failed(error)
        yield None


def _member_ids(group: ObservedGroup) -> Generator[None, None, frozenset[str]]:
    member_ids: set[str] = set()
    for part in group.members_in_parts():
        member_ids.update([member.identity.member_id for member in part])
        yield None
    return frozenset(member_ids)
