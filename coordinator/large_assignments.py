"""Large assignments: made outside of the turn that asks for them; they come back as a command.

The broker's runner computes them in a thread. Kafka has no counterpart.
"""

from collections.abc import Callable, Sequence
from functools import partial

from coordinator.consumer.assignment_job import AssignmentJob
from coordinator.consumer.assignors.assignor import AssignorFailed
from coordinator.consumer.commands import TargetAssignmentComputed
from coordinator.shard import Shard
from seams.assignment_runner import AssignmentRunner
from seams.now import Now


class LargeAssignments:
    """Reads the coordinator's own table of shards."""

    def __init__(
        self,
        active: Sequence[Shard | None],
        runner: AssignmentRunner | None,
        fail: Callable[[Shard, Exception, Now], None],
    ) -> None:
        """`fail` ends a shard after a bug."""
        self._active = active
        self._runner = runner
        self._fail = fail

    def compute(self, partition: int, job: AssignmentJob) -> None:
        assert self._runner is not None, "nobody makes large assignments"
        self._runner.submit(job.computed, partial(self._computed, partition, job))

    def _computed(
        self,
        partition: int,
        job: AssignmentJob,
        result: TargetAssignmentComputed | Exception,
        now: Now,
    ) -> None:
        shard = self._active[partition]
        if shard is None:
            return
        if not shard.has_room():
            result = AssignorFailed("the log has no room")  # A heartbeat asks again.
        try:
            shard.turn(job.failed(result) if isinstance(result, Exception) else result, now)
        except Exception as failure:  # noqa: BLE001 - whatever it is, it ends the shard alone
            self._fail(shard, failure, now)
