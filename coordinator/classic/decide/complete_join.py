"""The joins are answered: who is in this generation, who leads it, and by which protocol?

Follows when all have rejoined, or when the rest is not waited for any longer. Dynamic members that
did not come are dropped; static ones stay, so that they may restart in peace. The generation is
stored before the joins are answered, in a record of its own; see generation_record.py.
Kafka's counterpart: `GroupMetadataManager.completeClassicGroupJoin`.
"""

from collections.abc import Sequence
from typing import Final

from coordinator.classic import events
from coordinator.classic.commands import CompleteJoin
from coordinator.classic.decide.join_answers import generation_answer, members_for_leader
from coordinator.classic.decide.protocol_choice import choose_of_group
from coordinator.classic.decide.sessions import beat_ops
from coordinator.classic.delayed import DelayedJoin, DelayedSync, is_in_rebalance
from coordinator.classic.events import LeaderCause, RemovalCause, RemovedMember
from coordinator.classic.generation_record import end_generation_record, generation_record
from coordinator.classic.generations import next_generation
from coordinator.classic.group_view import ClassicGroupView, ClassicMemberView
from coordinator.classic.subscriptions import subscribed_topics
from coordinator.outcome import Outcome, Reply, replies_to_many
from coordinator.records import batch_bytes_at_most, group_metadata_record
from coordinator.settings import GroupSettings
from protocol.names import GenerationId, MemberId
from seams.now import Now
from storage.api import Record

REJOIN_WAIT_MS_MIN: Final = 1_000
"""Static members that are all away are looked for again no sooner, whatever timeout they asked for.

Kafka differs: with a rebalance timeout of 0 it asks again at once, and again, until they expire.
"""


def decide_complete_join(
    group: ClassicGroupView | None, command: CompleteJoin, now: Now, settings: GroupSettings
) -> Outcome:
    """Drop a stale command; else drop who is missing first, and go on with who is there."""
    if group is None or not is_in_rebalance(group, command.rebalance_id):
        return Outcome()
    missing = [m for m in group.members.values() if m.awaiting_join is None]
    dropped = [m for m in missing if m.group_instance_id is None]
    if dropped:
        return Outcome(events=(_removed(group, dropped, now),), then=(command,))
    if not group.members:
        return _become_empty(group, now)
    if len(missing) == len(group.members):
        return _wait_longer(group, missing, now)
    return _begin_generation(group, missing, now, settings)


def _removed(
    group: ClassicGroupView, dropped: list[ClassicMemberView], now: Now
) -> events.MembersRemoved:
    return events.MembersRemoved(
        group.group_id,
        now.wall_ms,
        group.state,
        group.generation_id,
        RemovalCause.DID_NOT_REJOIN,
        tuple(RemovedMember(member.caller) for member in dropped),
    )


def _become_empty(group: ClassicGroupView, now: Now) -> Outcome:
    generation_id = next_generation(group.newest_generation_id)
    record = group_metadata_record(
        group.group_id,
        protocol_type=group.protocol_type,
        generation_id=generation_id,
        protocol_name=None,
        leader_id=None,
        state_since_ms=now.wall_ms,
        members=(),
    )
    emptied = events.GroupEmptied(group.group_id, now.wall_ms, generation_id)
    return Outcome(events=(emptied,), records=(record, *end_generation_record(group)))


def _wait_longer(group: ClassicGroupView, missing: list[ClassicMemberView], now: Now) -> Outcome:
    """Only static members are left, and none of them is here: their sessions will tell."""
    waiting_for = tuple(member.caller for member in missing)
    wait_ms = max(group.rebalance_timeout_ms, REJOIN_WAIT_MS_MIN)
    op = DelayedJoin(group, group.rebalance_id, now.mono_ms + wait_ms)
    return Outcome(
        events=(events.NoMemberRejoined(group.group_id, now.wall_ms, waiting_for),), ops=(op,)
    )


def _begin_generation(
    group: ClassicGroupView, missing: list[ClassicMemberView], now: Now, settings: GroupSettings
) -> Outcome:
    members = list(group.members.values())
    joined = [m for m in members if m.awaiting_join is not None]
    happened: list[events.ClassicEvent] = []
    leader = group.members[group.leader_id]
    if leader.awaiting_join is None:
        new_leader = joined[0]
        happened.append(
            events.LeaderChanged(
                group.group_id,
                now.wall_ms,
                LeaderCause.DID_NOT_REJOIN,
                leader.caller,
                new_leader.caller,
                new_leader.rebalance_timeout_ms,
                new_leader.session_timeout_ms,
                new_leader.protocol_type,
                tuple(name for name, _ in new_leader.protocols),
            )
        )
        leader = new_leader
    assert group.protocol_type is not None
    protocol_name = choose_of_group(group)
    generation_id = next_generation(group.newest_generation_id)
    happened.append(
        events.GenerationBegun(
            group_id=group.group_id,
            at_ms=now.wall_ms,
            now_ms=now.mono_ms,
            generation_id=generation_id,
            protocol_type=group.protocol_type,
            protocol_name=protocol_name,
            leader_id=leader.member_id,
            subscribed_topics=subscribed_topics(
                group.protocol_type,
                protocol_name,
                (m.metadata_for(protocol_name) for m in members),
            ),
            recorded=settings.generation_records,
            joined=[member.caller for member in joined],
            waited_ms=[now.mono_ms - member.join_parked_at_ms for member in joined],
            absent=tuple([member.caller for member in missing]),
        )
    )
    sync = DelayedSync(group, generation_id, now.mono_ms + group.rebalance_timeout_ms)
    records: tuple[Record, ...] = ()
    if settings.generation_records:
        records = (_record(group, generation_id, protocol_name, leader.member_id, now, settings),)
    return Outcome(
        replies=_answers(group, joined, leader.member_id, generation_id, protocol_name),
        events=happened,
        records=records,
        ops=(*beat_ops(group, members, now), sync),
    )


def _record(
    group: ClassicGroupView,
    generation_id: GenerationId,
    protocol_name: str,
    leader_id: MemberId,
    now: Now,
    settings: GroupSettings,
) -> Record:
    """Kafka differs: it stores nothing here, and may use the number again after a crash."""
    assert group.protocol_type is not None
    protocol = (group.protocol_type, protocol_name)
    members = group.members.values()
    record = generation_record(
        group.group_id, generation_id, protocol, leader_id, now.wall_ms, members
    )
    if batch_bytes_at_most((record,)) <= settings.max_batch_bytes:
        return record
    return generation_record(group.group_id, generation_id, protocol, leader_id, now.wall_ms, ())


def _answers(
    group: ClassicGroupView,
    joined: list[ClassicMemberView],
    leader_id: MemberId,
    generation_id: GenerationId,
    protocol_name: str,
) -> Sequence[Reply]:
    """All get the generation; the leader also gets its members, absent ones included."""
    assert group.protocol_type is not None
    protocol = (group.protocol_type, protocol_name)
    member_ids = [member.member_id for member in joined]
    tokens = [member.awaiting_join for member in joined]
    listed = members_for_leader(group.members.values(), protocol_name)

    def make(first: int, end: int) -> list[Reply]:
        replies: list[Reply] = []
        for n in range(first, end):
            member_id, token = member_ids[n], tokens[n]
            assert token is not None
            members = listed if member_id == leader_id else ()
            replies.append(
                generation_answer(token, generation_id, protocol, leader_id, member_id, members)
            )
        return replies

    return replies_to_many(len(joined), make)
