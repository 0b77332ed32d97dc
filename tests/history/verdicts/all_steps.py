"""All steps: what every detector says of one observation, as the verdict watch collects it."""

from itertools import chain

from history.verdicts.detect import verdicts_in_steps
from history.verdicts.model import ObservedGroup, Verdict, VerdictLimits
from history.verdicts.recent_activity import RecentActivity


def find_verdicts(
    group: ObservedGroup, activity: RecentActivity, limits: VerdictLimits
) -> list[Verdict]:
    return list(chain.from_iterable(verdicts_in_steps(group, activity, limits)))
