"""Offset fixtures: groups, topics and requests for the tests of offsets, one line each."""

from collections.abc import Collection, Sequence
from uuid import UUID

from coordinator.classic.group import ClassicGroup, ClassicMember
from coordinator.group import CommittedOffset
from coordinator.group_counts import GroupCounts
from coordinator.group_store import GroupStore
from coordinator.outcome import Outcome
from coordinator.settings import GroupSettings
from protocol.messages import Response
from protocol.names import (
    ZERO_TOPIC_ID,
    GenerationId,
    GroupId,
    GroupInstanceId,
    GroupState,
    MemberId,
    TopicId,
    TopicName,
)
from seams.next_deadline import NextDeadline
from seams.now import Now
from seams.reply_token import ReplyToken
from tests.memory_log import MemoryLog

GROUP = GroupId("g")
MEMBER = MemberId("m-1")
STATIC_MEMBER = MemberId("m-static")
INSTANCE = GroupInstanceId("i-1")
GENERATION = GenerationId(5)
ORDERS, AUDIT = TopicName("orders"), TopicName("audit")
NOW = Now(mono_ms=1_000_000, wall_ms=1_700_000_000_000)
SESSION_TIMEOUT_MS = 45_000
SETTINGS = GroupSettings()


class Topics:
    """The topics that exist, by their partition counts; ids are made up unless given."""

    def __init__(
        self, counts: dict[str, int] | None = None, ids: dict[str, TopicId] | None = None
    ) -> None:
        self.counts = {"orders": 3, "audit": 1} if counts is None else counts
        self.ids = {name: UUID(int=n) for n, name in enumerate(self.counts, 1)} | (ids or {})

    @property
    def topics_version(self) -> int:
        return 0

    def topic_names(self) -> Collection[TopicName]:
        return tuple(map(TopicName, self.counts))

    def partition_count(self, name: TopicName) -> int | None:
        return self.counts.get(name)

    def partition_racks(self, name: TopicName) -> Sequence[Sequence[str]]:
        return ((),) * self.counts.get(name, 0)

    def topic_id(self, name: TopicName) -> TopicId | None:
        return self.ids.get(name)

    def topic_name(self, topic_id: TopicId) -> TopicName | None:
        return next((TopicName(n) for n, known in self.ids.items() if known == topic_id), None)


TOPICS = Topics()


def token(version: int) -> ReplyToken:
    return ReplyToken(version, "a-client", "/10.0.0.1")


def member(
    member_id: MemberId = MEMBER, instance_id: GroupInstanceId | None = None, kind: str = "consumer"
) -> ClassicMember:
    made = ClassicMember(
        member_id=member_id,
        group_instance_id=instance_id,
        client_id="c",
        client_host="/127.0.0.1",
        session_timeout_ms=SESSION_TIMEOUT_MS,
        rebalance_timeout_ms=60_000,
        protocol_type=kind,
        protocols=(("range", b"subscription of " + member_id.encode()),),
        assignment=b"assignment of " + member_id.encode(),
    )
    made.session_deadline_ms = NOW.mono_ms + 1
    return made


def given_group(
    state: GroupState,
    kind: str | None = "consumer",
    subscribed: frozenset[str] | None = frozenset(),
) -> ClassicGroup:
    """A group in generation 5, with one dynamic and one static member unless Empty or Dead.

    `kind` None: a simple group.
    """
    group = ClassicGroup(GROUP, NOW.wall_ms)
    group.generation_id = group.newest_generation_id = GENERATION
    if state not in (GroupState.EMPTY, GroupState.DEAD):
        assert kind is not None
        for known in (member(kind=kind), member(STATIC_MEMBER, INSTANCE, kind)):
            group.admit(known)
            if state is GroupState.PREPARING_REBALANCE:
                known.awaiting_join = token(9)
                group.awaiting_join_count += 1
        group.protocol_name = "range"
    group.protocol_type = kind
    group.state = state
    group.subscribed_topics = None if subscribed is None else frozenset(map(TopicName, subscribed))
    group.check()
    return group


def with_offsets(group: ClassicGroup, *offsets: tuple[str, int, CommittedOffset]) -> ClassicGroup:
    for topic, partition, commit in offsets:
        group.offsets.setdefault(TopicName(topic), {})[partition] = commit
    return group


def committed(
    offset: int, at_ms: int = NOW.wall_ms, expire_at_ms: int = -1, topic_id: TopicId = ZERO_TOPIC_ID
) -> CommittedOffset:
    return CommittedOffset(offset, 3, "note", at_ms, expire_at_ms, topic_id)


def the_answer(outcome: Outcome) -> Response:
    (reply,) = outcome.replies
    return reply.response


def carry_out(group: ClassicGroup | None, outcome: Outcome) -> ClassicGroup:
    """Evolve the events, as a shard does at the end of the turn."""
    store = GroupStore(MemoryLog(), GroupSettings(), GroupCounts(), NextDeadline())
    for event in outcome.events:
        if group is not None:
            store.groups[event.group_id] = group
        store.apply(event.group_id, (event,))
        group = store.groups.get(event.group_id, group)
    assert group is not None
    return group
