"""Health: what /livez and /readyz answer, and why the daemon is not ready.

Not ready while partitions load, while the journal is closed (on a full disk, for example: reads are
still served, writes are refused) or a flush of it hangs, while a partition is not served because
its load failed or a bug ended its shard, and from the begin of a stop. The body of /readyz names
such partitions; the others are served.
"""

from collections.abc import Callable
from typing import Final

from msgspec.structs import asdict

from broker.partitions.ownership import Ownership
from protocol.names import OFFSETS_TOPIC
from seams.text import first_of

FAILED_NAMED_MAX: Final = 5


def _not_served(ownership: Ownership) -> str | None:
    """Which partitions are not served; None if all are."""
    failed = sorted(ownership.failed)
    if not failed:
        return None
    topic = "" if ownership.topic == OFFSETS_TOPIC else f"{ownership.topic} "
    return f"not served: {topic}partition {first_of([*map(str, failed)], FAILED_NAMED_MAX)}"


def _report(ownership: Ownership, total: int) -> dict[str, object]:
    return {
        "total": total,
        "owned": ownership.owned,
        "loading": ownership.loading,
        "failed": {str(partition): why for partition, why in sorted(ownership.failed.items())},
    }


class Health:
    """Reads the state of the parts; `stopping` and `journal_failed` are set by daemon.py."""

    def __init__(
        self,
        ownership: Ownership,
        partitions: int,
        flush_stalled: Callable[[], str | None] = lambda: None,
        transactions: Ownership | None = None,
    ) -> None:
        """`flush_stalled` gives the reason while a flush takes too long, else None.

        `transactions` owns nothing before a client has needed a coordinator of transactions.
        """
        self._ownership = ownership
        self._all = [ownership, *([] if transactions is None else [transactions])]
        self._transactions = transactions
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
        # The disk has room again: the partitions are about to be loaded with writable logs.
        if not self._ownership.owned or any(
            ownership.loading or ownership.writes_are_refused for ownership in self._all
        ):
            return "loading"
        return next(filter(None, map(_not_served, self._all)), None)

    @property
    def ready(self) -> bool:
        return self.reason is None

    def report(self) -> dict[str, object]:
        """For the body of /readyz."""
        progress = self._ownership.progress
        report: dict[str, object] = {
            "ready": self.ready,
            "reason": self.reason,
            "partitions": _report(self._ownership, self._partitions),
            "loading": None if progress is None else asdict(progress),
        }
        if self._transactions is not None and self._transactions.owned:
            report["transaction_partitions"] = _report(self._transactions, self._transactions.owned)
        return report
