"""Health: what /livez and /readyz answer, and why the daemon is not ready.

Not ready while partitions load, while the journal is closed (on a full disk, for example: reads are
still served, writes are refused) or a flush of it hangs, while a partition is not served because
its load failed or a bug ended its shard, and from the begin of a stop. The body of /readyz names
such partitions; the others are served.
"""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import asdict

from broker.partitions.ownership import Ownership
from seams.text import first_of

FAILED_NAMED_MAX: Final = 5


def _named(partitions: Sequence[int]) -> str:
    return f"partition {first_of([*map(str, partitions)], FAILED_NAMED_MAX)}"


class Health:
    """Reads the state of the parts; `stopping` and `journal_failed` are set by daemon.py."""

    def __init__(
        self,
        ownership: Ownership,
        partitions: int,
        flush_stalled: Callable[[], str | None] = lambda: None,
    ) -> None:
        """`flush_stalled` gives the reason while a flush takes too long, else None."""
        self._ownership = ownership
        self._flush_stalled = flush_stalled
        self._partitions = partitions
        self.stopping = False
        self.journal_failed: str | None = None

    @property
    def reason(self) -> str | None:
        """Why it is not ready; None when it is."""
        if self.stopping:
            return "stopping"
        if self.journal_failed is not None:
            return f"the journal has failed: {self.journal_failed}"
        if (stalled := self._flush_stalled()) is not None:
            return stalled
        ownership = self._ownership
        # The disk has room again: the partitions are about to be loaded with writable logs.
        if ownership.loading or not ownership.owned or ownership.writes_are_refused:
            return "loading"
        failed = sorted(ownership.failed)
        if failed:
            return f"not served: {_named(failed)}"
        return None

    @property
    def ready(self) -> bool:
        return self.reason is None

    def report(self) -> dict[str, object]:
        """For the body of /readyz."""
        ownership = self._ownership
        failed = {str(partition): why for partition, why in sorted(ownership.failed.items())}
        progress = ownership.progress
        return {
            "ready": self.ready,
            "reason": self.reason,
            "partitions": {
                "total": self._partitions,
                "owned": ownership.owned,
                "loading": ownership.loading,
                "failed": failed,
            },
            "loading": None if progress is None else asdict(progress),
        }
