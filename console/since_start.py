"""Since the start: what the admin port shows of the time before its first connection.

Counted and kept from the start of the daemon on, while the rest of the console is not even imported
(start.py): the costs of rebalances for /metrics, and the steps of members for the timeline.
"""

from broker.daemon import Daemon
from broker.metrics.rebalance_costs import RebalanceCosts
from console.member_steps import MemberSteps


class SinceStart:
    """Of one daemon."""

    def __init__(self, daemon: Daemon) -> None:
        self.started_s = daemon.clock.now().wall_ms / 1000
        self.costs = RebalanceCosts()
        self.steps = MemberSteps()
        if daemon.history is not None:
            daemon.history.subscribe(self.costs.add)
            daemon.history.subscribe_turns(self.steps.take)
