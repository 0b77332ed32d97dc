"""Planted defects: a daemon and a client that are wrong on purpose, which a drill has to find.

`python -m tests.drills.planted DEFECT serve ...` is `rollcall serve` with a defect that shows after
its second start, or at once. `python -m tests.drills.planted commits-first SETTINGS` is a member
that commits what it has not processed yet.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec.structs import replace

from protocol.messages.heartbeat import HeartbeatResponse
from protocol.messages.join_group import JoinGroupResponse
from protocol.messages.offset_commit import OffsetCommitResponse
from protocol.messages.offset_fetch import OffsetFetchResponse
from protocol.messages.sync_group import SyncGroupResponse

FORGOTTEN = 7  # offsets by which the daemon falls back that has lost commits
PROCESSING_S = 0.3

DAEMON_DEFECTS = ("loses-commits", "two-owners", "never-recovers")

Reply = Callable[[object, object], None]


def is_second_start(arguments: list[str]) -> bool:
    """Of a data directory; leaves a mark beside it."""
    mark = Path(arguments[arguments.index("--data-dir") + 1]).with_name("was-started")
    was_started = mark.exists()
    mark.touch()
    return was_started


def planted(defect: str, reply: Reply, *, is_second: bool) -> Reply:
    """The coordinator's `reply`, with the defect before it."""
    largest = [b""]

    def with_older_offsets(token: object, response: object) -> None:
        if is_second and isinstance(response, OffsetFetchResponse):
            for topics in (response.topics, *(group.topics for group in response.groups)):
                for partition in (p for topic in topics for p in topic.partitions):
                    partition.committed_offset = max(partition.committed_offset - FORGOTTEN, -1)
        reply(token, response)

    def with_the_share_of_another(token: object, response: object) -> None:
        if isinstance(response, SyncGroupResponse):
            largest[0] = max(largest[0], response.assignment, key=len)
            response = replace(response, assignment=largest[0])
        reply(token, response)

    def without_answers(token: object, response: object) -> None:
        groups = HeartbeatResponse | JoinGroupResponse | SyncGroupResponse | OffsetCommitResponse
        if not (is_second and isinstance(response, groups)):
            reply(token, response)

    return {
        "loses-commits": with_older_offsets,
        "two-owners": with_the_share_of_another,
        "never-recovers": without_answers,
    }[defect]


def serve(defect: str, arguments: list[str]) -> None:
    import broker.build
    from cli.main import main as run

    is_second = is_second_start(arguments)
    original = broker.build.fail_at

    def fail_at(config: object, reply: Reply, observe: object) -> object:
        answer, watch = original(config, reply, observe)
        return planted(defect, answer, is_second=is_second), watch

    broker.build.fail_at = fail_at
    sys.argv = ["rollcall", *arguments]
    run()


def commit_first(settings: str) -> None:
    """A member that loses what it was processing when it died."""
    from drills.clients import member, model
    from drills.clients.interface import ClientSettings
    from drills.clients.stop import stop_with_stdin, stopping

    stop_with_stdin()
    client = model.open_client(msgspec.json.decode(settings, type=ClientSettings))
    client.subscribe(member._Reporter())
    while not stopping.is_set():
        read = client.poll()
        if read:
            member._commit(client, {p: offsets[-1] + 1 for p, offsets in read.items()})
            time.sleep(PROCESSING_S)
        for partition, offsets in read.items():
            member.report_event("read", partition=partition, offsets=offsets)
    member.report_event("closing")
    client.close()


if __name__ == "__main__":
    if sys.argv[1] in DAEMON_DEFECTS:
        serve(sys.argv[1], sys.argv[2:])
    else:
        commit_first(sys.argv[2])
