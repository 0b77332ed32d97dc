"""All steps: what every detector says of one observation, as the verdict watch collects it."""

from history.verdicts.detect import verdicts_in_steps
from history.verdicts.model import ObservedGroup, Verdict, VerdictLimits
from history.verdicts.recent_activity import RecentActivity


def find_verdicts(
    group: ObservedGroup, activity: RecentActivity, limits: VerdictLimits
) -> list[Verdict]:
    steps = verdicts_in_steps(group, activity, limits)
    return [verdict for verdict in steps if verdict is not None]
