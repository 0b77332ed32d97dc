"""History world: a world with consumers whose coordinator has a history.

`MemoryHistory` replaces the daemon's history writer: the same recorder and index, and a list of
encoded records instead of the topic. Every read of the history checks that folding those records
gives what memory has.
"""

from collections.abc import Sequence

from coordinator.classic.group_view import ClassicGroupView
from coordinator.events import Event
from history.encoding import decode, encode
from history.entries import HistoryEntry, Rebalance
from history.index import HistoryIndex, IndexLimits
from history.recording.record_limits import RecordLimits
from history.recording.recorder import HistoryRecorder
from history.story import GroupStory
from protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartitions,
    write_assignment,
    write_subscription,
)
from protocol.messages.join_group import JoinGroupResponse
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.names import GroupId, GroupState, MemberId, TopicName
from seams.now import Now
from tests.memory_log import MemoryLog
from tests.world import Asked, World


class MemoryHistory:
    """Implements the coordinator's HistorySink."""

    def __init__(self, records: Sequence[tuple[bytes, bytes]] = ()) -> None:
        self.index = HistoryIndex(IndexLimits())
        self.recorder = HistoryRecorder(self.index, RecordLimits())
        self.records = list(records)
        self.turns: list[list[HistoryEntry]] = []
        self.holding = False
        for _, value in records:
            event = decode(value)
            assert event is not None
            self.index.apply(event)

    def begin(self) -> None:
        assert not self.holding
        self.holding = True

    def end(self) -> None:
        assert self.holding
        self.holding = False

    def record(self, group: ClassicGroupView | None, happened: Sequence[Event], now: Now) -> None:
        assert self.holding
        self._add(self.recorder.record(group, happened, now))

    def loaded(self, group: ClassicGroupView, now: Now) -> None:
        self._add(self.recorder.loaded(group, now))

    def _add(self, events: list[HistoryEntry]) -> None:
        self.turns.append(events)
        self.records.extend(map(encode, events))
        self.index.check()


class HistoryWorld(World):
    """Members subscribe to `t` and get its four partitions by turns."""

    recorded: MemoryHistory

    def start(self, logs: dict[int, MemoryLog]) -> None:
        self.recorded = self.history_sink = MemoryHistory(
            self.recorded.records if hasattr(self, "recorded") else ()
        )
        self.recorded.recorder.name_topics(self.topics.topic_name)
        super().start(logs)

    # ------------------------------------------------------------ what is remembered

    @property
    def history(self) -> list[HistoryEntry]:
        return [event for turn in self.recorded.turns for event in turn]

    def rebalances(self, group_id: str = "g") -> list[Rebalance]:
        """Newest first; and it is checked that the records tell the same."""
        story = GroupStory()
        for key, value in self.recorded.records:
            event = decode(value)
            assert event is not None
            if key == group_id.encode():
                story.apply(event)
        found = self.recorded.index.rebalances(group_id)
        assert found == story.newest_first
        return found

    @property
    def last(self) -> Rebalance:
        return self.rebalances()[0]

    # ------------------------------------------------------------ consumers

    def consumers(self, count: int = 2, *, instances: Sequence[str] = ()) -> list[str]:
        """A Stable group of consumers; their ids, the leader's first."""
        named: list[str | None] = list(instances) or [None] * count
        answers = self.given_joined(
            members=count, instances=named, protocols=offers("t"), rebalance_timeout_ms=30_000
        )
        self.assign(answers)
        assert self.group().state is GroupState.STABLE
        return [answer.member_id for answer in answers]

    def rejoin(self, member_id: str, **changes: object) -> Asked:
        changes.setdefault("protocols", offers("t"))
        changes.setdefault("rebalance_timeout_ms", 30_000)
        return self.join("g", member_id, **changes)  # type: ignore[arg-type]

    def newcomer(self, client_id: str = "client", **changes: object) -> Asked:
        return self.rejoin("", version=3, client_id=client_id, **changes)

    def leaving_as(self, client_id: str, member_id: str) -> Asked:
        """Somebody else's LeaveGroup for a member."""
        named = [MemberIdentity(MemberId(member_id), None, None)]
        request = LeaveGroupRequest(GroupId("g"), MemberId(member_id), named)
        return self.ask(request, version=5, client_id=client_id)

    def assign(
        self, answers: Sequence[JoinGroupResponse], *, late: Sequence[str] = ()
    ) -> list[Asked]:
        """All but the `late` sync, the leader last; partitions go round by member id."""
        ids = sorted(answer.member_id for answer in answers)
        shares = {
            member_id: assignment(t=[n for n in range(4) if n % len(ids) == at])
            for at, member_id in enumerate(ids)
        }
        asked = []
        for answer in sorted(answers, key=lambda joined: joined.member_id == joined.leader):
            if answer.member_id in late:
                continue
            given = shares if answer.member_id == answer.leader else None
            asked.append(self.sync("g", answer.member_id, answer.generation_id, assignments=given))
        return asked


def offers(*topics: str, owned: Sequence[int] = ()) -> list[tuple[str, bytes]]:
    """A subscription; with `owned` partitions of `t`, that of a cooperative member."""
    parts = [TopicPartitions(TopicName("t"), list(owned))] if owned else []
    names = [TopicName(topic) for topic in topics]
    said = ConsumerProtocolSubscription(topics=names, owned_partitions=parts)
    return [("range", write_subscription(said))]


def assignment(**topics: list[int]) -> bytes:
    parts = [TopicPartitions(TopicName(name), indexes) for name, indexes in topics.items()]
    return write_assignment(ConsumerProtocolAssignment(assigned_partitions=parts))
