"""Assigned work besides partitions: Streams standby tasks, Connect and Schema Registry work.

Read for users, in the turn of the leader's SyncGroup, within the limit on the assignments' bytes.
Data that is not of the documented form stays opaque, and the history says so.
"""

from collections.abc import Mapping
from typing import Final

from coordinator.classic.group_view import ClassicGroupView
from history.entry_values import StandbyTasks
from protocol.consumer_protocol import PROTOCOL_TYPE, read_assignment
from protocol.member_metadata import (
    CONNECT,
    SCHEMA_REGISTRY,
    StreamsTasks,
    connect_assignment,
    registry_master,
    streams_tasks,
)
from protocol.names import MemberId
from protocol.primitives import Malformed

STREAMS: Final = "stream"
"""The name of the assignor of Kafka Streams."""


def standby_and_description(
    group: ClassicGroupView, assignments: Mapping[MemberId, bytes], total: int, bytes_max: int
) -> tuple[tuple[StandbyTasks, ...], str]:
    """The members with standby tasks, the most first; and what was assigned, as text.

    `total`: bytes of the assignments together.
    """
    if total > bytes_max:
        return (), ""
    if group.protocol_type == PROTOCOL_TYPE:
        return _streams(group, assignments) if group.protocol_name == STREAMS else ((), "")
    if group.protocol_type == CONNECT:
        return (), _connect(assignments)
    if group.protocol_type == SCHEMA_REGISTRY:
        return (), _registry(assignments)
    kind = group.protocol_type or "none"
    return (), f"{total} bytes, opaque (protocol type {kind})"


def _streams(
    group: ClassicGroupView, assignments: Mapping[MemberId, bytes]
) -> tuple[tuple[StandbyTasks, ...], str]:
    standby: list[StandbyTasks] = []
    for member_id, assignment in assignments.items():
        tasks = _tasks(assignment)
        if tasks is None:
            return (), "opaque user data of Kafka Streams: standby tasks are not known"
        member = group.members.get(member_id)
        if tasks.standby and member is not None:
            standby.append(StandbyTasks(member.caller, *tasks))
    standby.sort(key=lambda tasks: (-tasks.standby, tasks.member.member_id))
    return tuple(standby), ""


def _tasks(assignment: bytes) -> StreamsTasks | None:
    try:
        user_data = read_assignment(assignment).user_data if assignment else None
    except Malformed:
        return None
    return streams_tasks(user_data) if user_data else StreamsTasks(0, 0)


def _connect(assignments: Mapping[MemberId, bytes]) -> str:
    works = [connect_assignment(assignment) for assignment in assignments.values()]
    read = [work for work in works if work is not None]
    if len(read) < len(works) or not read:
        return "an assignment of Kafka Connect that cannot be read (opaque)"
    connectors = sum(work.connectors for work in read)
    tasks = sum(work.tasks for work in read)
    return (
        f"{_count(connectors, 'connector')} and {_count(tasks, 'task')} on "
        f"{_count(len(read), 'worker')}; the leader is {read[0].leader_url}, "
        f"config offset {max(work.config_offset for work in read)}"
    )


def _registry(assignments: Mapping[MemberId, bytes]) -> str:
    masters = {registry_master(assignment) for assignment in assignments.values()}
    master = next(iter(masters)) if len(masters) == 1 else None
    if master is None:
        return "an assignment of Schema Registry that cannot be read (opaque)"
    return f"the master is {master}" if master else "no node can be the master"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
