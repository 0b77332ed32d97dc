"""Lag: how far a group is behind, as users, programs and dashboards see it.

`Reading` is one partition at one instant: the group's commit and the ends of the log, read
together. `PartitionLag` is computed from it, with the rates and the status of its window
(window.py); `GroupLag` has the partitions of a group. Nothing here reads a clock or a log.
None is "not known" or "does not exist", never zero: a group without commits has no lag yet, and one
that will never catch up has no time to do it in. Times: `*_ms` wall clock.
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
    """Burrow's words. A group has OK, WARN or ERR only; ERR stands for the last three."""

    OK = "OK"
    WARN = "WARN"  # it commits, and falls behind
    ERR = "ERR"
    STOP = "STOP"  # it stopped committing
    STALL = "STALL"  # it commits the same offset again and again
    REWIND = "REWIND"  # its offset went back, and is still lower


LAG_SEVERITY: Final[Mapping[LagStatus, int]] = {
    LagStatus.OK: 0, LagStatus.WARN: 1, LagStatus.ERR: 2,
    LagStatus.STOP: 2, LagStatus.STALL: 2, LagStatus.REWIND: 2,
}  # fmt: skip


class LagNote(StrEnum):
    """What is unusual about a partition's numbers; `LAG_NOTE_TEXTS` has the texts."""

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
        """Whether there is no commit although the log has records."""
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
            return None  # Kafka accepts it; its clients treat it as no commit
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
    """Records per second over the window; None while too few commits are known.

    `small_lag_s`: a lag of so many seconds' records is small, because commits are as far apart.
    `recovers`: a lag of this size became small within the window, and commits continue.
    """

    consumed: float | None = None
    produced: float | None = None
    small_lag_s: float = 0.0
    recovers: bool = False


NO_LAG_RATES: Final = LagRates()


class CatchUp(StrEnum):
    """How a lag develops if both rates stay as they are; docs/lag.md has the rules."""

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
    """The partitions of a group, of a topic or of a member together."""

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
        ordered = sorted(partitions, key=lambda partition: (partition.topic, partition.partition))
        return cls(group_id, state, at_ms, tuple(ordered))

    @property
    def total(self) -> LagSum:
        return lag_sum(self.partitions)

    @property
    def status(self) -> LagStatus:
        return group_status(partition.status for partition in self.partitions)

    @property
    def rates(self) -> LagRates:
        """Of all partitions whose rates are known, together."""
        consumed = [
            partition.rates.consumed
            for partition in self.partitions
            if partition.rates.consumed is not None
        ]
        produced = [
            partition.rates.produced
            for partition in self.partitions
            if partition.rates.consumed is not None and partition.rates.produced is not None
        ]
        if not consumed or not produced:
            return NO_LAG_RATES
        small_lag_s = max(partition.rates.small_lag_s for partition in self.partitions)
        return LagRates(sum(consumed), sum(produced), small_lag_s)

    @property
    def catch_up(self) -> CatchUp:
        """Of all records together: a single partition that falls behind does not decide it."""
        of_all = catch_up_state(self.total.lag, self.rates, has_readers=self.has_readers)
        known = {partition.catch_up for partition in self.partitions} - {
            CatchUp.CAUGHT_UP,
            CatchUp.UNKNOWN,
        }
        if of_all is CatchUp.FALLS_BEHIND and CatchUp.FALLS_BEHIND not in known:
            return CatchUp.CATCHES_UP if CatchUp.CATCHES_UP in known else CatchUp.KEEPS_UP
        return of_all

    @property
    def has_readers(self) -> bool:
        return self.state not in STATES_WITHOUT_MEMBERS

    @property
    def catch_up_seconds(self) -> float | None:
        """Until the present records of all partitions are read; None: never, or not known.

        If some partitions fall behind: of all records together.
        """
        if self.falling_behind:
            return catch_up_seconds(self.total.lag, self.rates, self.catch_up)
        if self.catch_up in (CatchUp.UNKNOWN, CatchUp.NO_READERS):
            return None
        known = (partition.catch_up_seconds for partition in self.partitions)
        return max((seconds for seconds in known if seconds is not None), default=None)

    @property
    def falling_behind(self) -> int:
        """The number of partitions that fall behind."""
        return sum(partition.catch_up is CatchUp.FALLS_BEHIND for partition in self.partitions)

    def by_topic(self) -> dict[str, LagSum]:
        of_topic: dict[str, list[PartitionLag]] = {}
        for partition in self.partitions:
            of_topic.setdefault(partition.topic, []).append(partition)
        return {topic: lag_sum(partitions) for topic, partitions in of_topic.items()}

    def by_member(self) -> dict[MemberIdentity | None, LagSum]:
        """None: the partitions without an owner."""
        of_member: dict[MemberIdentity | None, list[PartitionLag]] = {}
        for partition in self.partitions:
            of_member.setdefault(partition.owner, []).append(partition)
        return {owner: lag_sum(partitions) for owner, partitions in of_member.items()}


def lag_sum(partitions: Sequence[PartitionLag]) -> LagSum:
    lags = [partition.lag for partition in partitions if partition.lag is not None]
    seconds = [partition.seconds for partition in partitions if partition.seconds is not None]
    return LagSum(
        len(partitions),
        sum(lags) if lags else None,
        max(lags, default=None),
        max(seconds, default=None),
        group_status(partition.status for partition in partitions),
    )


def group_status(statuses: Iterable[LagStatus]) -> LagStatus:
    """The worst status, as a group has it."""
    worst = max((LAG_SEVERITY[status] for status in statuses), default=0)
    return (LagStatus.OK, LagStatus.WARN, LagStatus.ERR)[worst]


STATES_WITHOUT_MEMBERS: Final = ("Empty", "Dead")
"""States of a group that has no members. A client that commits for it without being a member is not
assumed to continue: there is no estimate."""


def catch_up_state(lag: int | None, rates: LagRates, *, has_readers: bool = True) -> CatchUp:
    """How the lag of a partition or of a group develops."""
    if lag == 0:
        return CatchUp.CAUGHT_UP
    if lag is None:
        return CatchUp.UNKNOWN
    if not has_readers:
        return CatchUp.NO_READERS
    if rates.consumed is None or rates.produced is None:
        return CatchUp.UNKNOWN
    if rates.consumed and (rates.recovers or lag <= rates.consumed * rates.small_lag_s):
        return CatchUp.KEEPS_UP
    return CatchUp.CATCHES_UP if rates.consumed > rates.produced else CatchUp.FALLS_BEHIND


def catch_up_seconds(lag: int | None, rates: LagRates, state: CatchUp) -> float | None:
    """Time until the present records are read; None: never, or not known."""
    if lag is None or rates.consumed is None or rates.produced is None:
        return 0.0 if lag == 0 else None
    match state:
        case CatchUp.CAUGHT_UP:
            return 0.0
        case CatchUp.KEEPS_UP:
            return lag / rates.consumed
        case CatchUp.CATCHES_UP:
            return lag / (rates.consumed - rates.produced)
        case _:
            return None
