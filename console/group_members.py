"""Group members: what each member of a group is doing, and which partitions it owns.

For /api/group. What a member owns is read from its assignment as the group has it; of a classic
group while it is Stable, as before that no assignment is in effect.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from broker.lag.reader import owned_by
from console.slices import Slices
from coordinator.classic.group_view import SESSION_PAUSED, ClassicGroupView, ClassicMemberView
from coordinator.consumer.group_view import ConsumerMemberView
from coordinator.consumer.member import ConsumerMemberState, OwnedPartitions
from coordinator.group_types import AnyGroupView, as_classic, as_consumer
from protocol.consumer_protocol import PROTOCOL_TYPE
from protocol.names import GroupState, MemberId
from seams.now import Now
from topics.registry import TopicRegistry

OWNED_PARTITIONS_MAX: Final = 1_000
"""Of one member that are listed; `partitions_total` counts the others too."""

OWNS: Final = "owns its partitions"
WAITS_FOR_OTHERS: Final = "waits for the others"
HAS_TO_REJOIN: Final = "has to rejoin"
WAITS_FOR_ASSIGNMENT: Final = "waits for its assignment"
HAS_TO_SYNC: Final = "has to fetch its assignment"
GIVES_BACK: Final = "has to give partitions back"
WAITS_FOR_PARTITIONS: Final = "waits for partitions of others"
AWAY: Final = "left for a while"


class MemberRow(NamedTuple):
    """One member. `session_ends_at_ms`: wall clock; None: its session is paused."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    doing: str
    is_leader: bool
    session_ends_at_ms: int | None

    def as_json(self) -> dict[str, object]:
        return self._asdict()


async def member_rows(group: AnyGroupView, now: Now, slices: Slices) -> list[MemberRow]:
    """By client id, then instance id, then member id."""
    rows: list[MemberRow] = []
    classic, consumers = as_classic(group), as_consumer(group)
    if classic is not None:
        for member in tuple(classic.members.values()):
            rows.append(_classic(classic, member, now))
            await slices.pause_if_due()
    elif consumers is not None:
        for each in tuple(consumers.members.values()):
            rows.append(_consumer(each, now))
            await slices.pause_if_due()
    rows.sort(key=lambda row: (row.client_id, row.group_instance_id or "", row.member_id))
    return rows


def _wall(deadline_ms: int, now: Now) -> int | None:
    return None if deadline_ms >= SESSION_PAUSED else now.wall_ms + deadline_ms - now.mono_ms


def _classic(group: ClassicGroupView, member: ClassicMemberView, now: Now) -> MemberRow:
    return MemberRow(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        _doing(group, member),
        member.member_id == group.leader_id,
        _wall(member.session_deadline_ms, now),
    )


def _doing(group: ClassicGroupView, member: ClassicMemberView) -> str:
    if group.state is GroupState.PREPARING_REBALANCE:
        return HAS_TO_REJOIN if member.awaiting_join is None else WAITS_FOR_OTHERS
    if member.awaiting_sync is not None:
        return WAITS_FOR_ASSIGNMENT
    if group.state is GroupState.COMPLETING_REBALANCE or member.member_id in group.pending_sync_ids:
        return HAS_TO_SYNC
    return OWNS


_CONSUMER_STATES: Final[Mapping[ConsumerMemberState, str]] = {
    ConsumerMemberState.STABLE: OWNS,
    ConsumerMemberState.UNREVOKED_PARTITIONS: GIVES_BACK,
    ConsumerMemberState.UNRELEASED_PARTITIONS: WAITS_FOR_PARTITIONS,
    ConsumerMemberState.UNKNOWN: OWNS,
}


def _consumer(member: ConsumerMemberView, now: Now) -> MemberRow:
    about = member.metadata
    away = member.current.has_left_for_a_while
    return MemberRow(
        member.member_id,
        about.instance_id,
        about.client_id,
        about.client_host,
        AWAY if away else _CONSUMER_STATES[member.current.state],
        is_leader=False,
        session_ends_at_ms=_wall(member.session_deadline_ms, now),
    )


def partitions_json(
    group: AnyGroupView, row: MemberRow, registry: TopicRegistry
) -> dict[str, object]:
    """`owned` and `to_give_back` by topic; null where the assignment is not a consumer's."""
    classic, consumers = as_classic(group), as_consumer(group)
    owned: dict[str, list[int]] | None = None
    giving: dict[str, list[int]] = {}
    member_id = MemberId(row.member_id)
    if classic is not None:
        member = classic.members.get(member_id)
        if member is not None and classic.protocol_type == PROTOCOL_TYPE:
            is_stable = classic.state is GroupState.STABLE
            keys = owned_by(member.assignment) if is_stable else ()
            owned = None if keys is None else _by_topic(keys)
    elif consumers is not None and (each := consumers.members.get(member_id)) is not None:
        owned = _named(each.current.assigned, registry)
        giving = _named(each.current.pending_revocation, registry)
    return {
        "owned": None if owned is None else _limited(owned),
        "partitions_total": None if owned is None else sum(map(len, owned.values())),
        "to_give_back": _limited(giving),
        "to_give_back_total": sum(map(len, giving.values())),
    }


def _by_topic(keys: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in keys:
        found.setdefault(topic, []).append(partition)
    return found


def _named(owned: OwnedPartitions, registry: TopicRegistry) -> dict[str, list[int]]:
    """Without topics that are deleted."""
    return {
        name: list(partitions)
        for topic_id, partitions in owned.items()
        if (name := registry.topic_name(topic_id)) is not None
    }


def _limited(by_topic: dict[str, list[int]]) -> list[dict[str, object]]:
    left = OWNED_PARTITIONS_MAX
    shown: list[dict[str, object]] = []
    for topic, partitions in sorted(by_topic.items()):
        some = sorted(partitions)[:left]
        if some:
            shown.append({"topic": topic, "partitions": some})
        left -= len(some)
    return shown
