"""Guard per group: a fault in the work on one group is counted and told, and the round goes on.

For rounds over all groups: the lag sampler, the detectors of verdicts, a scrape. Whatever a client
made a group hold, the other groups are sampled, judged and shown. `counts` is read by
metrics/rebalance_costs.py.
"""

from collections.abc import Callable
from typing import Final

from broker.observe.events import GroupSkipped, ShellEvent

LAG: Final = "lag"
VERDICTS: Final = "verdicts"
METRICS: Final = "metrics"

TOLD_MAX: Final = 100
"""Groups that get a line in the log, one for each kind of work; after them the metric tells."""


class SkippedGroups:
    def __init__(self, observe: Callable[[ShellEvent], None]) -> None:
        self.counts = dict.fromkeys((LAG, VERDICTS, METRICS), 0)
        self._observe = observe
        self._told: set[tuple[str, str]] = set()

    def __call__(self, work: str, group_id: str, error: Exception) -> None:
        self.counts[work] += 1
        key = (work, group_id)
        if key not in self._told and len(self._told) < TOLD_MAX:
            self._told.add(key)
            self._observe(GroupSkipped(work, group_id, error))
