"""How do programs see a rebalance? As `rollcall why --json` and the console's API list it.

The fields here are a contract, and no others are added: scripts read them. Everything else that is
known of a rebalance is in its record in `__group_history`.
"""

from datetime import UTC, datetime

from history.events import Rebalance, Wait, Who


def shown(rebalance: Rebalance) -> dict[str, object]:
    """One rebalance; null is what is not known, or not yet."""
    return {
        "cause": str(rebalance.cause),
        "trigger": _trigger(rebalance.trigger),
        "began_at": instant(rebalance.began_at_ms),
        "duration_ms": rebalance.duration_ms,
        "waited_for": [_wait(wait) for wait in rebalance.waited_for],
        "generation_before": rebalance.generation_before,
        "generation_after": rebalance.generation_after if _is_over(rebalance) else None,
        "members_before": rebalance.members_before,
        "members_after": rebalance.members_after if _is_over(rebalance) else None,
        "partitions_moved": rebalance.partitions_moved,
        "unowned_partition_seconds": rebalance.unowned_partition_seconds,
    }


def instant(at_ms: int) -> str:
    """ISO 8601, UTC, to the millisecond."""
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at_ms % 1000:03}Z"


def _is_over(rebalance: Rebalance) -> bool:
    return rebalance.duration_ms is not None


def _trigger(who: Who | None) -> dict[str, object]:
    """Nulls where nobody in particular did it: a restart, a topic."""
    if who is None:
        return {"member_id": None, "group_instance_id": None, "client_id": None, "host": None}
    return {
        "member_id": who.member_id or None,
        "group_instance_id": who.group_instance_id,
        "client_id": who.client_id or None,
        "host": who.host or None,
    }


def _wait(wait: Wait) -> dict[str, object]:
    return {
        "member_id": wait.who.member_id,
        "client_id": wait.who.client_id,
        "join_delay_ms": wait.join_delay_ms,
        "how_it_ended": str(wait.end),
    }
