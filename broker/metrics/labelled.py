"""Labelled series: which groups get series of their own, those with the most lag first.

Clients choose group ids, and each label value is a series that Prometheus keeps for hours: so
there are two limits, `rollcall.metrics.groups.max` and `rollcall.metrics.partitions.max`. Within
them everything is shown. Beyond them groups are ranked by their lag; one that was shown last time
keeps its place unless another one lags a quarter more, because series that come and go are worse
than missing series; of two equals the id that sorts first is shown. What is left out is summed and
counted by three metrics of its own (group_series.py).

`read` walks over all groups in slices: each partition is read at one instant, all of them within
the time of the scrape.
"""

from collections.abc import Callable, Generator, Iterator
from heapq import heappush, heappushpop, merge
from operator import attrgetter
from typing import Final

from broker.lag.skipped_groups import METRICS, SkippedGroups
from broker.metrics.family import escaped, number
from broker.metrics.lag import LagSource, ShownLag
from broker.metrics.owners import NO_OWNER, LabelsOfOwners, OwnerLabels
from coordinator.coordinator import GroupCoordinator
from coordinator.group_types import AnyGroupView, generation_of
from history.lag.model import LagStatus
from protocol.consumer_protocol import PROTOCOL_TYPE
from protocol.names import GroupId, TopicId, TopicName

STEPS_PER_SLICE: Final = 250
"""Groups and partitions together; about half a millisecond."""

Pauses = Generator[None, None, None]
GroupRank = tuple[int, bool, bytes]
PartitionRow = tuple[str, str, int, int | None, str | None, str, LagStatus | None]
"""Of a shown partition: the group's id in quotes, topic and partition as labels, committed offset,
lag in records and (as text) in seconds, the owner's labels, the status."""

GROUP_STATUSES: Final = (LagStatus.OK, LagStatus.WARN, LagStatus.ERR)

_KEEPS_PLACE: Final = 5  # against 4: a quarter more
_BY_LAG: Final = attrgetter("lag_records")

_END_OF_ID: Final = b"\xff"
_REVERSED: Final = bytes(0xFE - byte for byte in range(0xFF)) + b"\0"
"""A byte of UTF-8, which is never above 0xF4, as one that sorts in the reverse, below the end."""


class ShownGroup:
    """The values of one group's series. `quoted` is its id as a label's value."""

    __slots__ = (
        "generation_id",
        "group_id",
        "has_offsets",
        "lag_max",
        "lag_records",
        "lag_seconds_max",
        "members",
        "partitions",
        "quoted",
        "state",
        "status",
        "topics",
    )  # fmt: skip

    def __init__(self, group: AnyGroupView, status: LagStatus | None) -> None:
        self.status = status
        self.group_id = group.group_id
        self.quoted = f'"{escaped(group.group_id)}"'
        self.state = group.state.value
        self.members = len(group.members)
        self.generation_id = generation_of(group)
        # Kafka Connect's workers, for one, commit nothing: no lag, rather than a lag of 0.
        self.has_offsets = group.protocol_type in (None, PROTOCOL_TYPE) or bool(group.offsets)
        self.partitions: list[ShownLag] = []
        self.topics: dict[str, list[int]] = {}  # -> sums of committed offsets and of lag
        self.lag_records = self.lag_max = 0
        self.lag_seconds_max: float | None = None

    def add(self, lag: ShownLag) -> None:
        self.partitions.append(lag)
        sums = self.topics.get(lag.topic)
        if sums is None:
            sums = self.topics[lag.topic] = [0, 0]
        sums[0] += lag.committed_offset
        records = lag.lag_records
        if records:
            sums[1] += records
            self.lag_records += records
            self.lag_max = max(self.lag_max, records)
        seconds = lag.lag_seconds
        longest = self.lag_seconds_max
        if seconds is not None and (longest is None or seconds > longest):
            self.lag_seconds_max = seconds


class Labelled:
    """The groups and partitions that get series; rebuilt by each `read`."""

    def __init__(
        self,
        coordinator: GroupCoordinator,
        lag: LagSource,
        *,
        groups_max: int,
        partitions_max: int,
        with_owners: bool,
        skipped: SkippedGroups | None = None,
        topic_id: Callable[[TopicName], TopicId | None] = lambda _: None,
    ) -> None:
        """`topic_id` is needed for the owners of consumer groups."""
        self._coordinator = coordinator
        self._lag = lag
        self._groups_max = groups_max
        self._partitions_max = partitions_max
        self._owners = OwnerLabels(topic_id) if with_owners else None
        self._shown: frozenset[GroupId] = frozenset()  # last time, if there was a choice
        self._skipped = skipped or SkippedGroups(lambda _: None)
        self._quoted_topics: dict[str, str] = {}
        self.groups: list[ShownGroup] = []
        self.rows: list[PartitionRow] = []
        self.statuses = dict.fromkeys(GROUP_STATUSES, 0)  # how many groups have each, of all
        self.groups_left_out = 0
        self.partitions_left_out = 0
        self.lag_left_out = 0

    def read(self) -> Pauses:
        """Choose and collect; at each pause other work of the event loop may run."""
        steps = partitions = lag_records = seen = 0
        must_choose = self._coordinator.group_counts.groups > self._groups_max
        ranked: list[tuple[GroupRank, ShownGroup]] = []
        groups: list[ShownGroup] = []
        statuses = dict.fromkeys(GROUP_STATUSES, 0)
        for group in self._all_groups():
            status = self._lag.status(group)
            if status is not None:
                statuses[status] += 1
            shown = ShownGroup(group, status)
            try:
                for lag in self._lag.of(group):
                    shown.add(lag)
                    steps += 1
                    if steps % STEPS_PER_SLICE == 0:
                        yield
            except Exception as error:  # noqa: BLE001 - one group does not end the scrape of all
                self._skipped(METRICS, group.group_id, error)
                continue
            seen += 1
            partitions += len(shown.partitions)
            lag_records += shown.lag_records
            if not must_choose:
                groups.append(shown)
            elif len(ranked) < self._groups_max:
                heappush(ranked, (self._rank(shown), shown))
            elif self._groups_max:
                heappushpop(ranked, (self._rank(shown), shown))
            steps += 1
            if steps % STEPS_PER_SLICE == 0:
                yield
        if must_choose or partitions > self._partitions_max:
            for shown in groups:
                ranked.append((self._rank(shown), shown))
                if len(ranked) % STEPS_PER_SLICE == 0:
                    yield
            groups = yield from _best_first(ranked)
            self._shown = frozenset(shown.group_id for shown in groups)
            yield
        self.groups, self.statuses = groups, statuses
        self.groups_left_out = seen - len(groups)
        self.lag_left_out = lag_records - sum(map(_BY_LAG, groups))
        yield from self._collect_rows()
        self.partitions_left_out = partitions - len(self.rows)

    def release(self) -> Pauses:
        """The scrape is over: free in slices what the next one does not need."""
        for kept in (self.groups, self.rows):
            while kept:
                del kept[-STEPS_PER_SLICE:]
                yield
        self.drop()

    def drop(self) -> None:
        self.groups, self.rows = [], []
        self._quoted_topics = {}

    def quoted_topic(self, topic: str) -> str:
        """A topic's name as a label's value."""
        quoted = self._quoted_topics.get(topic)
        if quoted is None:
            quoted = self._quoted_topics[topic] = f'"{escaped(topic)}"'
        return quoted

    def _all_groups(self) -> Iterator[AnyGroupView]:
        for groups in self._lag.groups():
            yield from groups

    def _rank(self, shown: ShownGroup) -> GroupRank:
        was_shown = shown.group_id in self._shown
        weight = _KEEPS_PLACE if was_shown else _KEEPS_PLACE - 1
        # Of two ids the one that sorts first ranks higher.
        order = shown.group_id.encode("utf-8", "surrogatepass").translate(_REVERSED)
        return (shown.lag_records * weight, was_shown, order + _END_OF_ID)

    def _collect_rows(self) -> Pauses:
        rows: list[PartitionRow] = []
        places: dict[tuple[str, int], str] = {}  # their labels: many groups share them
        room = self._partitions_max
        owners = self._owners
        steps = 0
        for shown in self.groups:
            if not room:
                break
            partitions = shown.partitions
            if len(partitions) > room:
                partitions = sorted(partitions, key=_most_lag)[:room]
            room -= len(partitions)
            owned: LabelsOfOwners = {}
            if owners is not None:
                owned = yield from owners.of(self._coordinator.group(shown.group_id))
            quoted = shown.quoted
            for topic, partition, committed, lag, seconds, status in partitions:
                place = (topic, partition)
                labels = places.get(place)
                if labels is None:
                    labels = places[place] = (
                        f'topic={self.quoted_topic(topic)},partition="{partition}"'
                    )
                owner = owned.get(place, NO_OWNER)
                behind = None if seconds is None else number(seconds)
                rows.append((quoted, labels, committed, lag, behind, owner, status))
                steps += 1
                if steps % STEPS_PER_SLICE == 0:
                    yield
            steps += 1
            if steps % STEPS_PER_SLICE == 0:
                yield
        if owners is not None:
            owners.forget_others()
        self.rows = rows


def _best_first(
    ranked: list[tuple[GroupRank, ShownGroup]],
) -> Generator[None, None, list[ShownGroup]]:
    """Sorted, but in slices: runs of some, which are then merged. Empties `ranked`."""
    runs: list[list[tuple[GroupRank, ShownGroup]]] = []
    while ranked:
        runs.append(sorted(ranked[-STEPS_PER_SLICE:], reverse=True))
        del ranked[-STEPS_PER_SLICE:]
        yield
    best_first: list[ShownGroup] = []
    for _, shown in merge(*runs, reverse=True):
        best_first.append(shown)
        if len(best_first) % STEPS_PER_SLICE == 0:
            yield
    return best_first


def _most_lag(lag: ShownLag) -> tuple[int, str, int]:
    return (-(lag.lag_records or 0), lag.topic, lag.partition)
