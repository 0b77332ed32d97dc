"""How far behind is a group? The numbers that people, programs and dashboards are shown.

`Reading` is what was found of one partition at one instant: the group's commit and the ends of the
log, read together. `PartitionLag` is what that means, with the rates and the status of its window
(window.py); `GroupLag` gathers the partitions of a group. Nothing here reads a clock or a log.
None is "not known" or "there is none", never zero: a group that has committed nothing has no lag
yet, and one that will never catch up has no time to do it in. Times: `*_ms` wall clock.
Kafka's counterpart: `ConsumerGroupCommand`, `PartitionAssignmentState`.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from msgspec import Struct

from coordinator.member_identity import MemberIdentity

PartitionKey = tuple[str, int]
"""Topic and partition."""


class LagStatus(StrEnum):
    """Burrow's words. Of a group only OK, WARN and ERR are said; ERR is any of the last three."""

    OK = "OK"
    WARN = "WARN"  # it commits, and falls behind
    ERR = "ERR"
    STOP = "STOP"  # it commits no more
    STALL = "STALL"  # it commits, always the same offset
    REWIND = "REWIND"  # it went back, and has not made up for it


LAG_SEVERITY: Final[Mapping[LagStatus, int]] = {
    LagStatus.OK: 0, LagStatus.WARN: 1, LagStatus.ERR: 2,
    LagStatus.STOP: 2, LagStatus.STALL: 2, LagStatus.REWIND: 2,
}  # fmt: skip


class LagNote(StrEnum):
    """What is odd about a partition's numbers; in words in `LAG_NOTE_TEXTS`."""

    NONE = ""
    NO_COMMIT = "no_commit"
    NO_PARTITION = "no_partition"
    RECREATED = "recreated"
    BEYOND_END = "beyond_end"
    LOST = "lost"
    NEGATIVE = "negative"


LAG_NOTE_TEXTS: Final[Mapping[LagNote, str]] = {
    LagNote.NONE: "",
    LagNote.NO_COMMIT: "nothing was committed yet",
    LagNote.NO_PARTITION: "there is no such partition",
    LagNote.RECREATED: "the topic was recreated after this commit",
    LagNote.BEYOND_END: "committed beyond the end of the log: the topic was truncated or recreated",
    LagNote.LOST: "records were deleted before they were read",
    LagNote.NEGATIVE: "a negative offset was committed, which clients treat as no commit",
}


class Reading(NamedTuple):
    """One partition at one instant. `committed_offset` None: no commit; the ends None: no log."""

    topic: str
    partition: int
    committed_offset: int | None
    committed_at_ms: int | None
    log_start_offset: int | None
    log_end_offset: int | None
    recreated: bool = False
    topic_id: str = ""  # of the topic that is there now

    @property
    def waits(self) -> bool:
        """Is there no commit, though the log holds records?"""
        return (
            self.committed_offset is None
            and self.log_end_offset is not None
            and self.log_end_offset > (self.log_start_offset or 0)
        )

    @property
    def lag(self) -> int | None:
        """Records behind: never negative, and None where one of the two offsets is missing."""
        if self.committed_offset is None or self.log_end_offset is None or self.recreated:
            return None
        if self.committed_offset < 0:
            return None  # Kafka takes it, and its clients take it for no commit
        return max(self.log_end_offset - self.committed_offset, 0)

    @property
    def note(self) -> LagNote:
        if self.log_end_offset is None:
            return LagNote.NO_PARTITION
        if self.committed_offset is None:
            return LagNote.NO_COMMIT
        if self.committed_offset < 0:
            return LagNote.NEGATIVE
        if self.recreated:
            return LagNote.RECREATED
        if self.committed_offset > self.log_end_offset:
            return LagNote.BEYOND_END
        if self.log_start_offset is not None and self.committed_offset < self.log_start_offset:
            return LagNote.LOST
        return LagNote.NONE


class LagRates(NamedTuple):
    """Records a second over the window; None while too little was seen.

    `patience_s`: of so many seconds' records a lag is small, for commits come no more often.
    `recovers`: it came down from such a lag within the window, and commits on.
    """

    consumed: float | None = None
    produced: float | None = None
    patience_s: float = 0.0
    recovers: bool = False


NO_LAG_RATES: Final = LagRates()


class CatchUp(StrEnum):
    """What becomes of a lag if both rates stay as they are; docs/lag.md has the rules."""

    CAUGHT_UP = "caught_up"
    KEEPS_UP = "keeps_up"  # a small lag that comes and goes
    CATCHES_UP = "catches_up"
    FALLS_BEHIND = "falls_behind"  # or stays as far behind as it is
    NO_READERS = "nobody_reads"  # the group has no members
    UNKNOWN = "unknown"


class PartitionLag(Struct, frozen=True):
    """`seconds` is the age of the oldest record that was not consumed; see docs/lag.md."""

    topic: str
    partition: int
    committed_offset: int | None
    committed_at_ms: int | None
    log_start_offset: int | None
    log_end_offset: int | None
    lag: int | None
    seconds: float | None
    seconds_exact: bool
    rates: LagRates
    catch_up_seconds: float | None
    catch_up: CatchUp
    status: LagStatus
    note: LagNote
    owner: MemberIdentity | None
    other_owners: tuple[MemberIdentity, ...] = ()  # the assignment gives it to several


class LagSum(NamedTuple):
    """Partitions taken together: all of a group, of a topic, of a member."""

    partitions: int
    lag: int | None  # of those whose lag is known
    lag_max: int | None
    seconds_max: float | None
    status: LagStatus


class GroupLag(Struct, frozen=True):
    """A group's partitions, ordered by topic and partition, all as of `at_ms`; see `of`."""

    group_id: str
    state: str
    at_ms: int
    partitions: tuple[PartitionLag, ...]

    @classmethod
    def of(
        cls, group_id: str, state: str, at_ms: int, partitions: Iterable[PartitionLag]
    ) -> "GroupLag":
        ordered = sorted(partitions, key=lambda one: (one.topic, one.partition))
        return cls(group_id, state, at_ms, tuple(ordered))

    @property
    def total(self) -> LagSum:
        return lag_sum(self.partitions)

    @property
    def status(self) -> LagStatus:
        return group_status(one.status for one in self.partitions)

    @property
    def rates(self) -> LagRates:
        """Of all partitions whose rates are known, together."""
        consumed = [one.rates.consumed for one in self.partitions if one.rates.consumed is not None]
        produced = [
            one.rates.produced
            for one in self.partitions
            if one.rates.consumed is not None and one.rates.produced is not None
        ]
        if not consumed or not produced:
            return NO_LAG_RATES
        patience_s = max(one.rates.patience_s for one in self.partitions)
        return LagRates(sum(consumed), sum(produced), patience_s)

    @property
    def catch_up(self) -> CatchUp:
        """Of all records together: one partition that falls behind does not decide for all."""
        of_all = catch_up_state(self.total.lag, self.rates, has_readers=self.has_readers)
        known = {one.catch_up for one in self.partitions} - {CatchUp.CAUGHT_UP, CatchUp.UNKNOWN}
        if of_all is CatchUp.FALLS_BEHIND and CatchUp.FALLS_BEHIND not in known:
            return CatchUp.CATCHES_UP if CatchUp.CATCHES_UP in known else CatchUp.KEEPS_UP
        return of_all

    @property
    def has_readers(self) -> bool:
        return self.state not in STATES_WITHOUT_MEMBERS

    @property
    def catch_up_seconds(self) -> float | None:
        """Until what waits now is read, of all partitions; None: never, or not known.

        Where some fall behind: of all records together.
        """
        if self.falling_behind:
            return catch_up_seconds(self.total.lag, self.rates, self.catch_up)
        if self.catch_up in (CatchUp.UNKNOWN, CatchUp.NO_READERS):
            return None
        known = (one.catch_up_seconds for one in self.partitions)
        return max((one for one in known if one is not None), default=None)

    @property
    def falling_behind(self) -> int:
        """Partitions that fall behind, whatever the others do."""
        return sum(one.catch_up is CatchUp.FALLS_BEHIND for one in self.partitions)

    def by_topic(self) -> dict[str, LagSum]:
        of_topic: dict[str, list[PartitionLag]] = {}
        for one in self.partitions:
            of_topic.setdefault(one.topic, []).append(one)
        return {topic: lag_sum(ones) for topic, ones in of_topic.items()}

    def by_member(self) -> dict[MemberIdentity | None, LagSum]:
        """None stands for the partitions that nobody has."""
        of_member: dict[MemberIdentity | None, list[PartitionLag]] = {}
        for one in self.partitions:
            of_member.setdefault(one.owner, []).append(one)
        return {owner: lag_sum(ones) for owner, ones in of_member.items()}


def lag_sum(partitions: Sequence[PartitionLag]) -> LagSum:
    lags = [one.lag for one in partitions if one.lag is not None]
    seconds = [one.seconds for one in partitions if one.seconds is not None]
    return LagSum(
        len(partitions),
        sum(lags) if lags else None,
        max(lags, default=None),
        max(seconds, default=None),
        group_status(one.status for one in partitions),
    )


def group_status(statuses: Iterable[LagStatus]) -> LagStatus:
    """The worst, in the words for a group."""
    worst = max((LAG_SEVERITY[status] for status in statuses), default=0)
    return (LagStatus.OK, LagStatus.WARN, LagStatus.ERR)[worst]


STATES_WITHOUT_MEMBERS: Final = ("Empty", "Dead")
"""States of a group that has no members. A client that commits for it without being a member is not
assumed to continue: there is no estimate."""


def catch_up_state(lag: int | None, rates: LagRates, *, has_readers: bool = True) -> CatchUp:
    """What is to become of a lag, of a partition or of a group."""
    if lag == 0:
        return CatchUp.CAUGHT_UP
    if lag is None:
        return CatchUp.UNKNOWN
    if not has_readers:
        return CatchUp.NO_READERS
    if rates.consumed is None or rates.produced is None:
        return CatchUp.UNKNOWN
    if rates.consumed and (rates.recovers or lag <= rates.consumed * rates.patience_s):
        return CatchUp.KEEPS_UP
    return CatchUp.CATCHES_UP if rates.consumed > rates.produced else CatchUp.FALLS_BEHIND


def catch_up_seconds(lag: int | None, rates: LagRates, seen: CatchUp) -> float | None:
    """How long until what waits now is read; None: never, or not known."""
    if lag is None or rates.consumed is None or rates.produced is None:
        return 0.0 if lag == 0 else None
    match seen:
        case CatchUp.CAUGHT_UP:
            return 0.0
        case CatchUp.KEEPS_UP:
            return lag / rates.consumed
        case CatchUp.CATCHES_UP:
            return lag / (rates.consumed - rates.produced)
        case _:
            return None
