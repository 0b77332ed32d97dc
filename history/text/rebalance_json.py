"""How do programs see a rebalance? As `rollcall why --json` and the console's API list it.

The fields here are a contract: scripts read them. None goes, and none changes its meaning; more may
come at the end. Times and durations for people are written here too, in one form each.
"""

import re
from datetime import UTC, datetime

from coordinator.member_identity import MemberIdentity
from history.entries import MemberWait, Rebalance

_EPOCH_MS = re.compile(r"(?<![0-9.\-])1[0-9]{12}(?![0-9.])")
"""From 2001 to 2033."""


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
        "with_trigger": [_trigger(who) for who in rebalance.with_trigger],
        "replaced": None if rebalance.replaced is None else _trigger(rebalance.replaced),
        "note": rebalance.note or None,
        "topics_changed": [one._asdict() for one in rebalance.topics],
        "moves": [one._asdict() for one in rebalance.moves],
        "standby_tasks": [{**_trigger(one.member), "tasks": one.standby} for one in rebalance.held],
        "assigned": rebalance.described or None,
        "protocol_type": rebalance.protocol_type or None,
        "away_ms": rebalance.away_ms,
        "stopped": rebalance.stopped or None,
    }


def instant(at_ms: int) -> str:
    """ISO 8601, UTC, to the millisecond."""
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at_ms % 1000:03}Z"


def duration(ms: float) -> str:
    """To the accuracy that people use: 5 ms, 1.5 s, 45 s, 5 min 3 s, 3 h 20 min."""
    if ms < 1_000:
        return f"{ms:.0f} ms"
    if ms < 10_000:
        return f"{ms / 1000:.1f} s"
    whole = round(ms / 1000)
    if whole < 120:
        return f"{whole} s"
    if whole < 7_200:
        return f"{whole // 60} min" + (f" {whole % 60} s" if whole % 60 else "")
    minutes = whole // 60
    return f"{minutes // 60} h" + (f" {minutes % 60} min" if minutes % 60 else "")


def with_times(said: str) -> str:
    """A client's words, with each time in ms since 1970 as a time."""
    return _EPOCH_MS.sub(lambda found: instant(int(found[0])), said)


def _is_over(rebalance: Rebalance) -> bool:
    return rebalance.duration_ms is not None


def _trigger(who: MemberIdentity | None) -> dict[str, object]:
    """Nulls where nobody in particular did it: a restart, a topic."""
    if who is None:
        return {"member_id": None, "group_instance_id": None, "client_id": None, "host": None}
    return {
        "member_id": who.member_id or None,
        "group_instance_id": who.group_instance_id,
        "client_id": who.client_id or None,
        "host": who.client_host or None,
    }


def _wait(wait: MemberWait) -> dict[str, object]:
    return {
        "member_id": wait.member.member_id,
        "client_id": wait.member.client_id,
        "join_delay_ms": wait.join_delay_ms,
        "how_it_ended": str(wait.end),
    }
