"""Which groups are in trouble right now? Looks at those that something happened to, and tells.

Told of each fact of the groups' history and of each commit; asked by the sampler to look at each
group in its round. A group without news, lag or verdict is passed over in a microsecond. What a
look finds is compared with what stood before: a verdict that is new, and one that has cleared, is
an event. Bounded: of more than `groups_max` groups the one with the oldest news is forgotten.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from broker.history_log.writer import HistoryLog
from broker.lag.commit_rates import CommitMeter
from broker.lag.reader import CACHED_BYTES_MAX, owned_by
from broker.lag.sampler import Breathe, LagSampler
from broker.lag.skipped_groups import VERDICTS, SkippedGroups
from broker.observe.events import ShellEvent, TroubleCleared, TroubleFound
from broker.observe.observer import Observer
from config.keys import Config
from config.settings import verdict_limits
from coordinator.classic.events import JoinRefused
from coordinator.classic.subscriptions import topics_of_subscription
from coordinator.group import SESSION_PAUSED, GroupView, MemberView
from history.entries import (
    GroupDeletedEntry,
    HistoryEntry,
    VerdictBegunEntry,
    VerdictEndedEntry,
    Who,
)
from history.lag.book import GroupWindows, Key
from history.lag.model import Status
from history.ownership import SUBSCRIPTION_BYTES_MAX
from history.recording.attribution import caller_of
from history.verdicts.detect import find_troubles
from history.verdicts.model import GroupFacts, MemberFacts, Trouble, TroubleKind, TroubleLimits
from history.verdicts.past import Past, Refusal
from protocol.consumer_protocol import PROTOCOL_TYPE
from protocol.names import GroupState, TopicName
from seams.now import Now
from seams.topics_view import TopicsView

MEMBERS_A_BREATH: Final = 20


OF_GENERATION: Final = frozenset(
    {
        TroubleKind.TWO_OWNERS,
        TroubleKind.ORPHAN_PARTITIONS,
        TroubleKind.SKEWED_ASSIGNMENT,
        TroubleKind.NEEDLESS_MOVES,
    }
)
"""Verdicts on an assignment: the next one is to be looked at anew."""


Note = Callable[[HistoryEntry, Now], None]


def _to_nobody(_fact: HistoryEntry, _now: Now) -> None:
    """Where no history is kept."""


class Standing(NamedTuple):
    """A verdict that holds, since when, and of which generation of the group."""

    trouble: Trouble
    since_ms: int
    generation: int = -1

    def is_current(self, group: GroupView | None) -> bool:
        """May it hold still? Between two looks a group goes on, and what it shows is known."""
        if group is None:
            return False
        match self.trouble.kind:
            case TroubleKind.STUCK_GROUP:
                evidence = self.trouble.evidence
                return (group.state.value, group.state_since_ms) == (
                    evidence["state"],
                    evidence["state_since_ms"],
                )
            case TroubleKind.NO_PROGRESS:
                return self.trouble.subject in group.members
            case kind if kind in OF_GENERATION:
                return group.generation_id == self.generation
            case _:
                return True


class TroubleWatch:
    """The sampler's Watcher."""

    def __init__(
        self,
        topics: TopicsView,
        limits: TroubleLimits,
        groups_max: int,
        observe: Callable[[ShellEvent], None],
        note: Note = _to_nobody,
        skipped: SkippedGroups | None = None,
    ) -> None:
        """`note` writes a verdict's beginning and end into the group's history."""
        self.limits = limits
        self.meter = CommitMeter()
        self.found: dict[str, int] = {}  # kind -> how often since the start
        self.forgotten = 0  # groups whose past was dropped, as there were too many
        self.group_of: Callable[[str], GroupView | None] | None = None  # as it is now
        self._topics = topics
        self._groups_max = groups_max
        self._observe = observe
        self._note = note
        self._skipped = skipped or SkippedGroups(observe)
        self._pasts: OrderedDict[str, Past] = OrderedDict()
        self._standing: dict[str, dict[tuple[TroubleKind, str], Standing]] = {}

    # ------------------------------------------------------------ what holds

    def standing(self, group_id: str | None = None) -> Iterator[Standing]:
        """The verdicts on one group, or on all, the longest first."""
        groups = list(self._standing.values())
        if group_id is not None:
            groups = [self._standing.get(group_id, {})]
        every = [
            one
            for of_group in groups
            for one in of_group.values()
            if self.group_of is None or one.is_current(self.group_of(one.trouble.group_id))
        ]
        return iter(sorted(every, key=lambda one: (one.since_ms, one.trouble.group_id)))

    def counts(self) -> dict[str, int]:
        """How many verdicts of each kind hold now."""
        counts = dict.fromkeys((kind.value for kind in TroubleKind), 0)
        for of_group in self._standing.values():
            for kind, _ in of_group:
                counts[kind.value] += 1
        return counts

    @property
    def groups_watched(self) -> int:
        return len(self._pasts)

    # ------------------------------------------------------------ what is told

    def happened(self, event: HistoryEntry) -> None:
        """Within the turn that it happened in."""
        if isinstance(event, GroupDeletedEntry):
            self._pasts.pop(event.group_id, None)  # a namesake has a past of its own
        elif not isinstance(event, VerdictBegunEntry | VerdictEndedEntry):  # those are our own
            self._past(event.group_id).apply(event, self.limits.window_ms)

    def join_refused(self, event: JoinRefused) -> None:
        who = Who("", None, event.client_id, event.client_host)
        refusal = Refusal(event.at_ms, who, event.offered, event.supported)
        self._past(event.group_id).refuse(refusal)

    def _past(self, group_id: str) -> Past:
        past = self._pasts.get(group_id)
        if past is None:
            if len(self._pasts) >= self._groups_max:
                self._pasts.popitem(last=False)
                self.forgotten += 1
            past = self._pasts[group_id] = Past()
        else:
            self._pasts.move_to_end(group_id)
        return past

    # ------------------------------------------------------------ looking

    async def look(
        self, group: GroupView, windows: GroupWindows | None, now: Now, breathe: Breathe
    ) -> None:
        """One group, in the sampler's round."""
        if not self._is_due(group, windows, now.wall_ms):
            return
        before = (group.state, group.generation_id, len(group.members))
        facts = await self._facts(group, windows, now, breathe)
        if facts is None or before != (group.state, group.generation_id, len(group.members)):
            return  # it moved on while it was looked at: the next round will see
        group_id = group.group_id
        troubles = find_troubles(
            facts,
            self._past(group_id),
            self.limits,
            lambda error: self._skipped(VERDICTS, group_id, error),
        )
        self._compare(group.group_id, troubles, now, group.generation_id)

    def _is_due(self, group: GroupView, windows: GroupWindows | None, now_ms: int) -> bool:
        group_id = group.group_id
        if group_id in self._pasts or group_id in self._standing:
            return True
        if self.meter.busy and self.meter.rates_of(group_id):
            return True
        if not group.members:
            return False
        if group.state is not GroupState.STABLE:
            return True
        if windows is None:
            return False
        still_ms = now_ms - windows.still_since_ms if windows.still_since_ms else 0
        return windows.status is not Status.OK or still_ms >= self.limits.no_progress_ms

    def end_round(self, alive: set[str], now: Now) -> None:
        """What is gone has no trouble any more; what was quiet for a window needs no look."""
        for group_id in [g for g in (*self._standing, *self._pasts) if g not in alive]:
            self._compare(group_id, [], now)
            self._pasts.pop(group_id, None)
        horizon_ms = now.wall_ms - self.limits.window_ms
        quiet = [
            group_id
            for group_id, past in self._pasts.items()
            if past.changed_at_ms < horizon_ms and group_id not in self._standing
        ]
        for group_id in quiet:
            del self._pasts[group_id]
        self.meter.turn_over(now.mono_ms, self.limits.commits_per_second)

    def _compare(
        self, group_id: str, troubles: list[Trouble], now: Now, generation: int = -1
    ) -> None:
        now_ms = now.wall_ms
        stood = self._standing.get(group_id, {})
        stands: dict[tuple[TroubleKind, str], Standing] = {}
        for trouble in troubles:
            key = (trouble.kind, trouble.subject)
            known = stood.get(key)
            since_ms = now_ms if known is None else known.since_ms
            stands[key] = Standing(trouble, since_ms, generation)
            if known is None:
                self.found[trouble.kind.value] = self.found.get(trouble.kind.value, 0) + 1
                self._observe(TroubleFound(trouble))
                words = (trouble.kind.value, trouble.subject, trouble.summary, trouble.remedy)
                self._note(VerdictBegunEntry(group_id, now_ms, *words), now)
        for key, one in stood.items():
            if key not in stands:
                lasted_ms = now_ms - one.since_ms
                self._observe(TroubleCleared(one.trouble, lasted_ms))
                kind, subject = key
                self._note(VerdictEndedEntry(group_id, now_ms, kind.value, subject, lasted_ms), now)
        if stands:
            self._standing[group_id] = stands
        else:
            self._standing.pop(group_id, None)

    # ------------------------------------------------------------ facts

    async def _facts(
        self, group: GroupView, windows: GroupWindows | None, now: Now, breathe: Breathe
    ) -> GroupFacts | None:
        members: list[MemberFacts] = []
        topics: set[str] = set()
        for number, member_id in enumerate(tuple(group.members), start=1):
            member = group.members.get(member_id)
            if member is None:
                return None
            facts = _member(group, member, now)
            members.append(facts)
            topics.update(facts.topics or ())
            if number % MEMBERS_A_BREATH == 0:
                await breathe()
        counts = {topic: self._topics.partition_count(topic) for topic in map(TopicName, topics)}
        return GroupFacts(
            group.group_id,
            now.wall_ms,
            group.state.value,
            group.state_since_ms,
            group.generation_id,
            group.protocol_type,
            group.protocol_name,
            group.leader_id,
            members,
            tuple(group.pending_member_ids),
            {topic: count for topic, count in counts.items() if count is not None},
            {} if windows is None else windows.windows,
            0 if windows is None else windows.still_since_ms,
            self.meter.rates_of(group.group_id),
        )


def _member(group: GroupView, member: MemberView, now: Now) -> MemberFacts:
    topics: frozenset[str] | None = None
    assigned: tuple[Key, ...] | None = None
    if group.protocol_type == PROTOCOL_TYPE:
        subscription = member.metadata_for(group.protocol_name)
        if not subscription and member.protocols:
            subscription = member.protocols[0][1]
        is_small = len(subscription) <= CACHED_BYTES_MAX
        if len(subscription) <= SUBSCRIPTION_BYTES_MAX:
            topics = (_cached_topics_of if is_small else _topics_of)(subscription)
        if group.state is GroupState.STABLE:
            assigned = owned_by(member.assignment)
    silent_ms = 0
    if member.session_deadline_ms != SESSION_PAUSED:
        heard_ms = member.session_deadline_ms - member.session_timeout_ms
        silent_ms = max(now.mono_ms - heard_ms, 0)
    return MemberFacts(
        caller_of(member),
        member.session_timeout_ms,
        member.rebalance_timeout_ms,
        silent_ms,
        has_rejoined=member.awaiting_join is not None,
        waits_for_sync=member.awaiting_sync is not None,
        is_to_sync=member.member_id in group.pending_sync_ids,
        protocols=tuple(name for name, _ in member.protocols),
        topics=topics,
        assigned=assigned,
    )


def _topics_of(subscription: bytes) -> frozenset[str] | None:
    topics = topics_of_subscription(subscription)
    return None if topics is None else frozenset(topics)


_cached_topics_of = lru_cache(maxsize=4_096)(_topics_of)


def build_watch(
    config: Config,
    topics: TopicsView,
    history: HistoryLog | None,
    lag: LagSampler,
    observer: Observer,
) -> TroubleWatch:
    """The watch, told of what it has to know. Without a history it sees only how groups are now."""
    note = _to_nobody if history is None else history.note
    groups_max = config.rollcall_trouble_groups_max
    limits = verdict_limits(config)
    watch = TroubleWatch(topics, limits, groups_max, observer, note, lag.skipped)
    if history is not None:
        history.subscribe(watch.happened)
    observer.counters.meter = watch.meter
    observer.counters.join_refused = watch.join_refused
    observer.counters.group_deleted = lag.group_deleted
    watch.group_of = lag.group
    lag.watcher = watch
    return watch
