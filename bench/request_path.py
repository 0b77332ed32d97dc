"""Request path: CPU of each request in this process, without sockets, threads and fsync.

    .venv/bin/python -m bench.request_path [--rounds 100] [--only NAME,NAME] [--profile NAME]

The parts of a real daemon (broker/build.py) on an empty directory; each connection gets its bytes
from here, and its transport keeps what it writes. The journal is pumped once for each round of 50
requests, and writes to the page cache. Process time, best of the rounds: it repeats within a few
percent on a loaded machine, so two trees can be compared by it.

`join of a new group` is per member of a group of ten that forms from nothing. `join or leave of 10`
is one rebalance of a group of ten: a heartbeat, a JoinGroup and a SyncGroup of each member, the
record and the history. The frames are made beforehand, or cost what they do in both trees.
`--profile NAME` prints where the time of one of them goes (cProfile, which inflates small calls).
"""

import argparse
import asyncio
import cProfile
import pstats
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import count, repeat
from typing import Any, Final

from bench.daemon import NO_TOPICS, VERSIONS
from broker.build import build
from broker.daemon import Daemon
from broker.net.connection import Connection
from broker.net.sockets import Bound
from broker.observe.observer import Observer, log_to_stderr
from config.keys import Config
from protocol.codec import decode_response, encode_request
from protocol.headers import RequestHeader
from protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    HeartbeatTopicPartitions,
)
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from protocol.names import ApiKey, ErrorCode
from storage.data_dir import DataDir

GROUPS: Final = 50
MEMBERS: Final = 10
TOPIC: Final = "bench"
ALL_VERSIONS = {
    **VERSIONS,
    ApiKey.LEAVE_GROUP: 5,
    ApiKey.OFFSET_FETCH: 9,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: 1,
}
TURNS_AT_ONCE: Final = 20
ASSIGNMENT_WAITS_S: Final = 1.5
"""Longer than the interval between two assignments of a group."""


class KeptTransport(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))

    def writelines(self, list_of_data: Any) -> None:
        self.written.append(b"".join(list_of_data))

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 50_000) if name == "peername" else default

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def close(self) -> None:
        pass

    def abort(self) -> None:
        pass


class Seat:
    """A client on one connection of the daemon."""

    def __init__(self, rig: "Rig", group_id: str) -> None:
        self.rig = rig
        self.group_id = group_id
        self.transport = KeptTransport()
        bound = Bound("PLAINTEXT", (), "127.0.0.1", 0, "127.0.0.1", 0)
        self.connection = Connection(rig.daemon.server, bound)
        self.connection.connection_made(self.transport)
        self.member_id = ""
        self.generation_id = -1
        self.members: tuple[str, ...] = ()

    def ask(self, request: Any) -> Any:
        self.send(frame(request))
        self.rig.run_until(lambda: bool(self.transport.written))
        return self.answer(request.API_KEY)

    def send(self, framed: bytes) -> None:
        self.transport.written.clear()
        self.connection.data_received(framed)

    def answer(self, api_key: ApiKey) -> Any:
        found = b"".join(self.transport.written)
        return decode_response(api_key, ALL_VERSIONS[api_key], found[4:], 0, len(found) - 4)[1]


def frame(request: Any) -> bytes:
    header = RequestHeader(request.API_KEY, ALL_VERSIONS[request.API_KEY], 7, "bench")
    return encode_request(header, request)


class Rig:
    """The daemon, whose loop and journal run when they are told to."""

    def __init__(self, folder: str, *, history: bool, log_level: str = "error") -> None:
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        config = Config(
            log_dirs=(folder,),
            group_initial_rebalance_delay_ms=0,
            rollcall_flush="os",
            rollcall_history_enable=history,
        )
        self.data_dir = DataDir(folder, config.node_id)
        observer: Observer = log_to_stderr("human", log_level)
        self.daemon: Daemon = build(config, observer, self.data_dir, self.loop)
        self.daemon.server.use(self.daemon.dispatcher)
        daemon = self.daemon
        daemon.ticker.start(
            [daemon.coordinator, daemon.transactions, daemon.data_plane, daemon.server]
        )
        self.loop.run_until_complete(daemon.load())
        self.names = count()
        self.create_topic(TOPIC, 500)

    def create_topic(self, name: str, partitions: int) -> None:
        request = CreateTopicsRequest(topics=(CreatableTopic(name, partitions, 1),))
        answer = Seat(self, "").ask(request)
        assert answer.topics[0].error_code is ErrorCode.NONE, answer

    def turn(self) -> None:
        """One flush, and the loop as long as it has something to do at once."""
        self.daemon.journal.pump()
        self.loop.call_soon(self.loop.stop)
        self.loop.run_forever()

    def run_until(self, is_done: Callable[[], bool]) -> None:
        for _ in range(TURNS_AT_ONCE):
            if is_done():
                return
            self.turn()

        deadline = time.monotonic() + 10
        while not is_done():
            assert time.monotonic() < deadline, "no answer"
            time.sleep(0.001)
            self.turn()

    def group(self, members: int) -> list[Seat]:
        group_id = f"group-{next(self.names)}"
        seats = [Seat(self, group_id) for _ in range(members)]
        form(self, seats)
        return seats


def answered(seats: list[Seat]) -> bool:
    return all(seat.transport.written for seat in seats)


def form(rig: Rig, seats: list[Seat]) -> None:
    """The group as clients form it: ids, a generation of all, assignments."""
    for seat in seats:
        if not seat.member_id:
            seat.member_id = seat.ask(join(seat)).member_id
    rejoin(rig, seats)


def rejoin(rig: Rig, seats: list[Seat], *, waiting: Sequence[Seat] = ()) -> None:
    """All of the group join the next generation, and get their assignments.

    The JoinGroups of `waiting` have been sent: a second one would have an answer of its own.
    """
    for seat in seats:
        seat.send(frame(join(seat)))
    seats = [*seats, *waiting]
    while not answered(seats):
        for _ in range(TURNS_AT_ONCE):
            rig.turn()
            if answered(seats):
                break
        for seat in seats:
            if seat.transport.written and not answered(seats):
                seat.send(frame(join(seat)))  # it was alone in a generation
    for seat in seats:
        joined = seat.answer(ApiKey.JOIN_GROUP)
        assert joined.error_code is ErrorCode.NONE
        seat.generation_id = joined.generation_id
        seat.members = tuple(member.member_id for member in joined.members)
    for seat in seats:
        seat.send(sync_frame(seat))
    rig.run_until(lambda: answered(seats))
    for seat in seats:
        assert seat.answer(ApiKey.SYNC_GROUP).error_code is ErrorCode.NONE


def one_more(rig: Rig, seats: list[Seat]) -> Callable[[], None]:
    """A member joins the group, and leaves it; the others learn that with their heartbeats."""
    heartbeats = [heartbeat_frame(seat) for seat in seats]

    def others(new: list[Seat]) -> None:
        for number, seat in enumerate(seats):
            seat.send(heartbeats[number])
        rig.run_until(lambda: answered(seats))
        rejoin(rig, seats, waiting=new)
        heartbeats[:] = [heartbeat_frame(seat) for seat in seats]

    def run() -> None:
        new = Seat(rig, seats[0].group_id)
        new.member_id = new.ask(join(new)).member_id
        new.send(frame(join(new)))
        others([new])
        leaving = LeaveGroupRequest(new.group_id, members=(MemberIdentity(new.member_id),))
        new.ask(leaving)
        new.connection.connection_lost(None)
        others([])

    return run


def join(seat: Seat) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=seat.group_id,
        member_id=seat.member_id,
        session_timeout_ms=60_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol("range", NO_TOPICS),),
    )


def sync_frame(seat: Seat, assignments: Sequence[bytes] = ()) -> bytes:
    """With these assignments for the members, if it is the leader; by default empty ones."""
    return frame(
        SyncGroupRequest(
            group_id=seat.group_id,
            generation_id=seat.generation_id,
            member_id=seat.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=tuple(
                SyncGroupRequestAssignment(member_id, assignment)
                for member_id, assignment in zip(
                    seat.members, assignments or repeat(b"\0\1"), strict=False
                )
            ),
        )
    )


def heartbeat_frame(seat: Seat) -> bytes:
    return frame(HeartbeatRequest(seat.group_id, seat.generation_id, seat.member_id))


def commit_frame(partitions: int) -> Callable[[Seat], bytes]:
    def of(seat: Seat) -> bytes:
        rows = tuple(OffsetCommitRequestPartition(n, 42) for n in range(partitions))
        topics = (OffsetCommitRequestTopic(name=TOPIC, partitions=rows),)
        return frame(
            OffsetCommitRequest(
                group_id=seat.group_id,
                generation_id_or_member_epoch=seat.generation_id,
                member_id=seat.member_id,
                topics=topics,
            )
        )

    return of


def fetch_frame(seat: Seat) -> bytes:
    topics = (OffsetFetchRequestTopics(TOPIC, partition_indexes=tuple(range(10))),)
    return frame(
        OffsetFetchRequest(groups=(OffsetFetchRequestGroup(seat.group_id, topics=topics),))
    )


def round_of(rig: Rig, seats: list[Seat], frames: list[bytes]) -> Callable[[], None]:
    """One request of each, and their answers."""

    def run() -> None:
        for seat, framed in zip(seats, frames, strict=True):
            seat.transport.written.clear()
            seat.connection.data_received(framed)
        rig.run_until(lambda: answered(seats))

    return run


def rounds(rig: Rig) -> dict[str, tuple[Callable[[], None], int]]:
    """By name: one round, and the operations in it."""
    seats = [seat for _ in range(GROUPS // MEMBERS) for seat in rig.group(MEMBERS)]
    table: dict[str, tuple[Callable[[], None], int]] = {}
    for name, framed in (
        ("heartbeat", heartbeat_frame),
        ("commit-1", commit_frame(1)),
        ("commit-10", commit_frame(10)),
        ("fetch-10", fetch_frame),
    ):
        table[name] = round_of(rig, seats, [framed(seat) for seat in seats]), len(seats)
    consumers = [Seat(rig, f"consumers-{n % 5}") for n in range(GROUPS)]
    table["consumer heartbeat"] = round_of(rig, consumers, join_consumers(rig, consumers)), GROUPS

    def joins() -> None:
        for seat in rig.group(MEMBERS):
            seat.connection.connection_lost(None)

    table["join of a new group"] = joins, MEMBERS
    for size in (10, 100):
        table[f"join or leave of {size}"] = one_more(rig, rig.group(size)), 2
    return table


def join_consumers(rig: Rig, seats: list[Seat]) -> list[bytes]:
    for number, seat in enumerate(seats):
        seat.member_id = f"member-{number}"
        request = ConsumerGroupHeartbeatRequest(
            group_id=seat.group_id,
            member_id=seat.member_id,
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=(TOPIC,),
            topic_partitions=(),
        )
        answer: ConsumerGroupHeartbeatResponse = seat.ask(request)
        assert answer.error_code is ErrorCode.NONE, answer
        seat.generation_id = answer.member_epoch
    owned: dict[str, Any] = {seat.member_id: () for seat in seats}
    quiet_since = time.monotonic()
    while time.monotonic() < quiet_since + ASSIGNMENT_WAITS_S:
        rig.turn()
        for seat in seats:
            answer = seat.ask(beat(seat, owned[seat.member_id]))
            assert answer.error_code is ErrorCode.NONE, answer
            if answer.member_epoch != seat.generation_id or answer.assignment is not None:
                quiet_since = time.monotonic()
            seat.generation_id = answer.member_epoch
            if answer.assignment is not None:
                owned[seat.member_id] = tuple(
                    HeartbeatTopicPartitions(each.topic_id, tuple(each.partitions))
                    for each in answer.assignment.topic_partitions
                )
    return [frame(beat(seat, None)) for seat in seats]


def beat(seat: Seat, owned: Any) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=seat.group_id,
        member_id=seat.member_id,
        member_epoch=seat.generation_id,
        topic_partitions=owned,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--only", default="")
    parser.add_argument("--no-history", action="store_true")
    parser.add_argument("--profile")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rig = Rig(folder, history=not arguments.no_history)
        only = arguments.profile or arguments.only
        chosen = only.split(",") if only else None
        print(f"{'request':<20}{'CPU us each':>12}")
        for name, (run, operations) in rounds(rig).items():
            if chosen is not None and name not in chosen:
                continue
            if arguments.profile:
                rig.daemon.server.stopwatch = lambda: 0.0  # or turns end early for the profiler
                profile = cProfile.Profile(time.process_time)
                profile.enable()
                for _ in range(arguments.rounds):
                    run()
                profile.disable()
                pstats.Stats(profile).sort_stats("tottime").print_stats(70)
                continue
            best = float("inf")
            for _ in range(arguments.rounds):
                began = time.process_time()
                run()
                best = min(best, time.process_time() - began)
            print(f"{name:<20}{best / operations * 1e6:>12.1f}", flush=True)


if __name__ == "__main__":
    main()
