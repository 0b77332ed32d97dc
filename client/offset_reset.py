"""Offset reset: moves the committed offsets of a group without members, after a dry run.

A plan says for each partition the offset from before and the new one; it is made as Kafka's
`ConsumerGroupCommand.resetOffsets` makes it: new offsets outside the log are moved to its nearest
end, with a warning. `reset_offsets` carries a plan out with OffsetCommit, outside a generation.
"""

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from typing import Final

from msgspec import Struct

from client.cluster import Cluster
from client.connection import BrokerConnection
from client.errors import RequestRefused
from client.groups import committed_offsets, find_group
from client.log_offsets import END, START, Place, read_log_offsets
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from protocol.names import ErrorCode, GroupId, TopicName
from seams.operator_error import OperationFailed, WrongInput

PARTITIONS_PER_RESET: Final = 2_000
OFFSET_MAX: Final = 2**63 - 1
REMOVES_OFFSET: Final = "-"
"""In a CSV file: the partition gets no committed offset."""

_EMPTY: Final = "Empty"


class ResetTarget(StrEnum):
    """Where the new offsets are."""

    EARLIEST = "to-earliest"
    LATEST = "to-latest"
    CURRENT = "to-current"
    OFFSET = "to-offset"
    SHIFT = "shift-by"
    TIME = "to-datetime"  # and by-duration
    FILE = "from-file"


class Move(Struct, frozen=True):
    """One partition. `old_offset` None: nothing was committed; `new_offset` None: nothing is."""

    topic: str
    partition: int
    old_offset: int | None
    new_offset: int | None


class ResetPlan(Struct, frozen=True):
    group: str
    moves: Sequence[Move]
    warnings: Sequence[str]


class GroupActive(OperationFailed):
    """The group has members, whose commits would overwrite the new offsets."""


class BadReset(WrongInput):
    """A partition, an offset or a file that a reset cannot be made with."""


def plan_reset(
    cluster: Cluster,
    group_id: str,
    places: Iterable[Place],
    target: ResetTarget,
    value: int | Mapping[Place, int | None] = 0,
) -> ResetPlan:
    """`value`: an offset, a number to shift by, a time in ms, or what a file says.

    Raises ClusterFault, RequestRefused, GroupActive, BadReset.
    """
    check_inactive(cluster, group_id)
    committed = committed_offsets(cluster, group_id)
    asked = sorted(set(places))
    starts = read_log_offsets(cluster, dict.fromkeys(asked, START))
    ends = read_log_offsets(cluster, dict.fromkeys(asked, END))
    missing = [place for place in asked if place not in ends]
    if missing:
        names = ", ".join(f"{topic}-{partition}" for topic, partition in missing[:5])
        raise BadReset(f"there is no partition {names}")
    wanted = _wanted(cluster, asked, target, value, committed, starts, ends)
    moves: list[Move] = []
    warnings: list[str] = []
    for place in asked:
        new = wanted[place]
        if new is not None:
            new = _in_log(place, new, starts[place] or 0, ends[place] or 0, warnings)
        moves.append(Move(*place, committed.get(place), new))
    return ResetPlan(group_id, moves, warnings)


def check_inactive(cluster: Cluster, group_id: str) -> None:
    """Raises GroupActive, ClusterFault, RequestRefused."""
    group = find_group(cluster, group_id)
    if group is not None and group.state != _EMPTY:
        raise GroupActive(
            f"offsets can only be reset while the group {group_id!r} is inactive, but its state "
            f"is {group.state}: stop its members first"
        )


def _wanted(
    cluster: Cluster,
    places: Sequence[Place],
    target: ResetTarget,
    value: int | Mapping[Place, int | None],
    committed: Mapping[Place, int],
    starts: Mapping[Place, int | None],
    ends: Mapping[Place, int | None],
) -> Mapping[Place, int | None]:
    if not isinstance(value, int):
        return value
    match target:
        case ResetTarget.EARLIEST:
            return starts
        case ResetTarget.LATEST:
            return ends
        case ResetTarget.CURRENT:
            return {place: committed.get(place, ends[place]) for place in places}
        case ResetTarget.SHIFT:
            without = [place for place in places if place not in committed]
            if without:
                topic, partition = without[0]
                raise BadReset(
                    f"{topic}-{partition} has no committed offset to shift from: leave it out, or "
                    "use --to-earliest or --to-latest"
                )
            return {place: committed[place] + value for place in places}
        case ResetTarget.TIME:
            found = read_log_offsets(cluster, dict.fromkeys(places, value))
            # As in Kafka: where no record is that young, the end of the log.
            return {
                place: ends[place] if found.get(place) is None else found[place] for place in places
            }
        case _:
            return dict.fromkeys(places, value)


def _in_log(place: Place, offset: int, start: int, end: int, warnings: list[str]) -> int:
    name = f"{place[0]}-{place[1]}"
    if offset > end:
        warnings.append(
            f"New offset ({offset}) is higher than latest offset for topic partition {name}. "
            f"Value will be set to {end}"
        )
        return end
    if offset < start:
        warnings.append(
            f"New offset ({offset}) is lower than earliest offset for topic partition {name}. "
            f"Value will be set to {start}"
        )
        return start
    return offset


def reset_offsets(cluster: Cluster, plan: ResetPlan) -> None:
    """Carry the plan out. Raises GroupActive, ClusterFault, RequestRefused.

    What was committed before an error stays committed; the coordinator refuses all while the group
    has members.
    """
    commits = [move for move in plan.moves if move.new_offset is not None]
    for start in range(0, len(commits), PARTITIONS_PER_RESET):
        part = commits[start : start + PARTITIONS_PER_RESET]
        error, _ = cluster.at_coordinator(GroupId(plan.group), partial(_commit, plan.group, part))
        _check(error, plan.group)
    gone = [move for move in plan.moves if move.new_offset is None and move.old_offset is not None]
    if gone:
        error, _ = cluster.at_coordinator(GroupId(plan.group), partial(_delete, plan.group, gone))
        _check(error, plan.group)


def _check(error: ErrorCode, group_id: str) -> None:
    if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
        raise GroupActive(f"the group {group_id!r} has members again: stop them first")
    if error is not ErrorCode.NONE:
        raise RequestRefused(f"offsets of group {group_id!r} cannot be reset", error)


def _commit(
    group_id: str, moves: Sequence[Move], broker: BrokerConnection
) -> tuple[ErrorCode, None]:
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for move in moves:
        assert move.new_offset is not None
        row = OffsetCommitRequestPartition(move.partition, move.new_offset, -1, "")
        topics.setdefault(move.topic, []).append(row)
    request = OffsetCommitRequest(
        group_id=GroupId(group_id),
        topics=[
            OffsetCommitRequestTopic(TopicName(name), partitions=rows)
            for name, rows in topics.items()
        ],
    )
    answer = broker.ask(request, OffsetCommitResponse)
    errors = [row.error_code for topic in answer.topics for row in topic.partitions]
    return next((error for error in errors if error), ErrorCode.NONE), None


def _delete(
    group_id: str, moves: Sequence[Move], broker: BrokerConnection
) -> tuple[ErrorCode, None]:
    topics: dict[str, list[OffsetDeleteRequestPartition]] = {}
    for move in moves:
        topics.setdefault(move.topic, []).append(OffsetDeleteRequestPartition(move.partition))
    request = OffsetDeleteRequest(
        GroupId(group_id),
        [OffsetDeleteRequestTopic(TopicName(name), rows) for name, rows in topics.items()],
    )
    answer = broker.ask(request, OffsetDeleteResponse)
    if answer.error_code is ErrorCode.GROUP_ID_NOT_FOUND:
        return ErrorCode.NONE, None  # there is nothing to delete
    errors = [row.error_code for topic in answer.topics for row in topic.partitions]
    return answer.error_code or next((error for error in errors if error), ErrorCode.NONE), None


# Which partitions, and what a file says.


def places_of(cluster: Cluster, topics: Sequence[str]) -> list[Place]:
    """Of words like `T` (all its partitions) and `T:0,1`. Raises BadReset, NotThere."""
    places: list[Place] = []
    for word in topics:
        name, colon, numbers = word.rpartition(":")
        if not colon:
            name = word
        existing = [partition.partition_index for partition in cluster.topic(name).partitions]
        chosen = existing
        if colon:
            if not re.fullmatch(r"[0-9]{1,9}(,[0-9]{1,9})*", numbers):
                raise BadReset(f"{word!r} is not TOPIC or TOPIC:PARTITION,PARTITION")
            chosen = [int(number) for number in numbers.split(",")]
        missing = sorted(set(chosen) - set(existing))
        if missing:
            raise BadReset(f"topic {name!r} has no partition {missing[0]}")
        places += [(name, partition) for partition in chosen]
    return places


def undo_csv(plan: ResetPlan) -> str:
    """The offsets from before, as a file for another reset."""
    return offsets_csv((move.topic, move.partition, move.old_offset) for move in plan.moves)


def offsets_csv(rows: Iterable[tuple[str, int, int | None]]) -> str:
    return "".join(
        f"{topic},{partition},{REMOVES_OFFSET if offset is None else offset}\n"
        for topic, partition, offset in rows
    )


def parse_csv(text: str, group_id: str) -> dict[Place, int | None]:
    """Rows `topic,partition,offset`, or `group,topic,partition,offset` as Kafka's export of several
    groups has them; those of other groups are left out. Raises BadReset.
    """
    offsets: dict[Place, int | None] = {}
    for number, row in enumerate(csv.reader(text.splitlines()), 1):
        if not row:
            continue
        cells = [cell.strip() for cell in row]
        if len(cells) == 4:
            if cells[0] != group_id:
                continue
            cells = cells[1:]
        if len(cells) != 3 or not re.fullmatch(r"[0-9]{1,9}", cells[1]):
            raise BadReset(f"line {number} is not topic,partition,offset: {','.join(row)[:80]}")
        topic, partition, offset = cells
        if offset != REMOVES_OFFSET and not re.fullmatch(r"[0-9]{1,19}", offset):
            raise BadReset(f"line {number} has no offset: {offset[:80]!r}")
        offsets[topic, int(partition)] = (
            None if offset == REMOVES_OFFSET else min(int(offset), OFFSET_MAX)
        )
    if not offsets:
        raise BadReset(f"there is no row for group {group_id!r}")
    return offsets


# Times.

_DATETIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d(:?\d\d)?)?")
_DURATION: Final = re.compile(
    r"(?P<sign>-?)P(?:(?P<days>\d{1,15})D)?"
    r"(?:T(?:(?P<hours>\d{1,15})H)?(?:(?P<minutes>\d{1,15})M)?"
    r"(?:(?P<seconds>\d{1,15}(?:\.\d{1,9})?)S)?)?"
)


def parse_datetime(text: str) -> int:
    """YYYY-MM-DDTHH:MM:SS.sss, in UTC without a zone, as ms since 1970. Raises BadReset."""
    if not _DATETIME.fullmatch(text):
        raise BadReset(
            f"{text!r} is not a time: YYYY-MM-DDTHH:MM:SS.sss, with +HH:MM or Z if need be"
        )
    try:
        at = datetime.fromisoformat(text)
    except ValueError as bad:
        raise BadReset(f"{text!r} is not a time: {bad}") from None
    # A negative timestamp of ListOffsets is the name of an offset: -1 is the end of the log.
    return max(0, round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000))


def parse_duration(text: str) -> int:
    """PnDTnHnMnS in ms. Raises BadReset."""
    match = _DURATION.fullmatch(text)
    parts = (
        {} if match is None else {k: v for k, v in match.groupdict().items() if v and k != "sign"}
    )
    if match is None or not parts or text.endswith("T") or match["sign"]:
        raise BadReset(f"{text!r} is not a duration: PnDTnHnMnS, such as PT1H30M or P1D")
    seconds = {"days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}
    return round(sum(float(count) * seconds[unit] for unit, count in parts.items()) * 1000)
