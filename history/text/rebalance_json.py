"""Rebalance as JSON: the object that `rollcall why --json` and the console's API list.

The fields are a contract, because scripts read them: none is removed or changes its meaning; new
ones may be added at the end.
"""

import re
from typing import Final

from coordinator.member_identity import MemberIdentity
from history.entries import Rebalance
from history.entry_values import MemberWait
from seams.text import instant

_EPOCH_MS = re.compile(r"(?<![0-9.\-])1[0-9]{12}(?![0-9.])")
"""From 2001 to 2033."""


REACHED_MAX: Final = 20
"""Members of a consumer group that are listed, those that reached the target last first."""


def rebalance_json(rebalance: Rebalance) -> dict[str, object]:
    """One rebalance; null: not known, or not known yet."""
    return {
        "cause": str(rebalance.cause),
        "trigger": _member(rebalance.trigger),
        "began_at": instant(rebalance.began_at_ms),
        "duration_ms": rebalance.duration_ms,
        "waited_for": [_wait(wait) for wait in rebalance.waited_for],
        "generation_before": rebalance.generation_before,
        "generation_after": rebalance.generation_after if _is_over(rebalance) else None,
        "members_before": rebalance.members_before,
        "members_after": rebalance.members_after if _is_over(rebalance) else None,
        "partitions_moved": rebalance.partitions_moved,
        "unowned_partition_seconds": rebalance.unowned_partition_seconds,
        "with_trigger": [_member(member) for member in rebalance.with_trigger],
        "replaced": None if rebalance.replaced is None else _member(rebalance.replaced),
        "note": rebalance.note or None,
        "topics_changed": [change._asdict() for change in rebalance.topics],
        "moves": [move._asdict() for move in rebalance.moves],
        "standby_tasks": [
            {**_member(tasks.member), "tasks": tasks.standby} for tasks in rebalance.held
        ],
        "assigned": rebalance.described or None,
        "protocol_type": rebalance.protocol_type or None,
        "away_ms": rebalance.away_ms,
        "stopped": rebalance.stopped or None,
        "group_type": rebalance.group_type or "classic",
        "assignor": rebalance.assignor or None,
        "reached_target": [
            {**_member(joined.member), "delay_ms": joined.join_delay_ms}
            for joined in rebalance.joined[:REACHED_MAX]
            if rebalance.group_type
        ],
    }


def replace_epoch_times(text: str) -> str:
    """A client's text, with each time in ms since 1970 written as an instant."""
    return _EPOCH_MS.sub(lambda match: instant(int(match[0])), text)


def _is_over(rebalance: Rebalance) -> bool:
    return rebalance.duration_ms is not None


def _member(member: MemberIdentity | None) -> dict[str, object]:
    """Nulls without a member: a restart, a topic."""
    member = member or MemberIdentity()
    return {
        "member_id": member.member_id or None,
        "group_instance_id": member.group_instance_id,
        "client_id": member.client_id or None,
        "host": member.client_host or None,
        "principal": member.principal,
    }


def _wait(wait: MemberWait) -> dict[str, object]:
    return {
        "member_id": wait.member.member_id,
        "client_id": wait.member.client_id,
        "join_delay_ms": wait.join_delay_ms,
        "how_it_ended": str(wait.end),
        "waited_ms": wait.waited_ms,
        "partitions": wait.partitions,
    }
