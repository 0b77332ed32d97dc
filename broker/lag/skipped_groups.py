"""Skipped groups: counts and logs faults in the work on single groups, so that a round continues.

For rounds over all groups: the lag sampler, the verdict detectors, a scrape. Whatever state clients
bring one group into, the others are still sampled, inspected and exported.
metrics/rebalance_costs.py reads `counts`.
"""

from collections.abc import Callable
from typing import Final

from broker.observe.events import GroupSkipped, ShellEvent

LAG: Final = "lag"
VERDICTS: Final = "verdicts"
METRICS: Final = "metrics"

LOGGED_GROUPS_MAX: Final = 100
"""Groups with a log line of their own, per kind of work; the others only count."""


class SkippedGroups:
    def __init__(self, observe: Callable[[ShellEvent], None]) -> None:
        self.counts = dict.fromkeys((LAG, VERDICTS, METRICS), 0)
        self._observe = observe
        self._logged: set[tuple[str, str]] = set()

    def __call__(self, work: str, group_id: str, error: Exception) -> None:
        self.counts[work] += 1
        key = (work, group_id)
        if key not in self._logged and len(self._logged) < LOGGED_GROUPS_MAX:
            self._logged.add(key)
            self._observe(GroupSkipped(work, group_id, error))
