"""Rebalances: CPU of joins and rebalances by the number of members, in this process.

    .venv/bin/python -m bench.rebalances [--sizes 10,100,500,1000,5000] [--rounds 4]
        [--protocol classic,consumer] [--partitions 0] [--no-history] [--log-lines] [--profile]

The parts of a real daemon, as in request_path.py. Only the server's part is timed: bytes that
arrive and the loop that follows; frames are made and answers are read outside of it. `form` is a
group from nothing, `join` one member more and the rebalance of all, `leave` one less; µs of CPU for
each member of the group, best of the rounds. In a rebalance a classic member sends a heartbeat, a
JoinGroup and a SyncGroup; a member of a consumer group (KIP-848) sends heartbeats until it owns
what it is assigned. `longest` are the longest single calls of the loop, in ms of its thread's CPU.
With `--log-lines` the daemon writes its log lines, to /dev/null. With `--partitions` the leader of
a classic group assigns so many to each member, as consumers do; by default its assignments are
empty, and the history has nothing to compare.
"""

import argparse
import cProfile
import functools
import pstats
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from bench.request_path import Rig, Seat, beat, frame, heartbeat_frame, join, sync_frame
from protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    TopicPartitions,
    write_assignment,
)
from protocol.messages.consumer_group_heartbeat import (
    LEAVE_EPOCH,
    ConsumerGroupHeartbeatRequest,
    HeartbeatTopicPartitions,
)
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.names import ApiKey, ErrorCode, GroupId, GroupState

SIZES: Final = "10,100,500,1000"
JOIN_EPOCH: Final = 0
LONGEST_SHOWN: Final = 4
PARTITIONS_PER_MEMBER: Final = 2
ASSIGNMENT_INTERVAL_S: Final = 1.0
"""The default: clients that have nothing to learn before then send no heartbeats."""


class TimedRig(Rig):
    """Times what the server does, and nothing of what its clients do."""

    def __init__(self, folder: str, *, history: bool, log_level: str) -> None:
        self.server_s = 0.0
        self.longest: dict[str, float] = {}
        self.profile: cProfile.Profile | None = None
        self._is_inside = False
        super().__init__(folder, history=history, log_level=log_level)
        self._time_callbacks()

    @contextmanager
    def timed(self) -> Iterator[None]:
        if self._is_inside:
            yield
            return
        self._is_inside = True
        began_s = time.process_time()
        if self.profile is not None:
            self.profile.enable()
        try:
            yield
        finally:
            if self.profile is not None:
                self.profile.disable()
            self.server_s += time.process_time() - began_s
            self._is_inside = False

    def turn(self) -> None:
        with self.timed():
            super().turn()

    def receive(self, seats: Sequence[Seat], frames: Sequence[bytes]) -> None:
        """Bytes arrive on these connections, one after the other."""
        for seat in seats:
            seat.transport.written.clear()
        with self.timed():
            longest_s, before_s = 0.0, time.thread_time()
            for seat, framed in zip(seats, frames, strict=True):
                seat.connection.data_received(framed)
                now_s = time.thread_time()
                longest_s, before_s = max(longest_s, now_s - before_s), now_s
            self._took("data_received", longest_s)

    def one_call(self, name: str, call: Callable[[], None]) -> None:
        began_s = time.thread_time()
        call()
        self._took(name, time.thread_time() - began_s)

    def _took(self, name: str, seconds: float) -> None:
        self.longest[name] = max(self.longest.get(name, 0.0), seconds)

    def _time_callbacks(self) -> None:
        """Every callback of the loop is one call; the loop looks at the sockets between two."""
        self.loop.call_soon = self._timing(self.loop.call_soon)  # type: ignore[method-assign]
        threadsafe = self._timing(self.loop.call_soon_threadsafe)
        self.loop.call_soon_threadsafe = threadsafe  # type: ignore[method-assign]

    def _timing(self, schedule: Callable[..., Any]) -> Callable[..., Any]:
        def call_soon(callback: Callable[..., Any], *arguments: Any, **context: Any) -> Any:
            name = getattr(callback, "__qualname__", type(callback).__name__)
            return schedule(lambda: self.one_call(name, lambda: callback(*arguments)), **context)

        return call_soon

    def until(self, is_done: Callable[[], bool]) -> None:
        """Threads of the server count as well, so waiting for them does."""
        idle = 0
        while not is_done():
            self.turn()
            idle += 1
            if idle > 20:
                with self.timed():
                    time.sleep(0.0005)
            assert idle < 20_000, "no answer"

    def ask_all(self, seats: list[Seat], frames: list[bytes]) -> None:
        self.receive(seats, frames)
        self.until(lambda: all(seat.transport.written for seat in seats))


class ClassicGroup:
    def __init__(self, rig: TimedRig, size: int, partitions: int) -> None:
        self.rig = rig
        self.partitions = partitions  # of each member
        self.group_id = f"classic-{next(rig.names)}"
        self.seats: list[Seat] = []
        self.size = size

    def form(self) -> None:
        """All at once, as after a deployment."""
        seats = [Seat(self.rig, self.group_id) for _ in range(self.size)]
        self.rig.ask_all(seats, [frame(join(seat)) for seat in seats])
        for seat in seats:
            seat.member_id = seat.answer(ApiKey.JOIN_GROUP).member_id
        self.seats = seats
        self._rejoin()

    def join(self) -> None:
        new = Seat(self.rig, self.group_id)
        self.rig.ask_all([new], [frame(join(new))])
        new.member_id = new.answer(ApiKey.JOIN_GROUP).member_id
        self.rig.receive([new], [frame(join(new))])
        self._heartbeats()
        self.seats.append(new)
        self._rejoin(joined=[new])

    def leave(self) -> None:
        gone = self.seats.pop()
        leaving = LeaveGroupRequest(gone.group_id, members=(MemberIdentity(gone.member_id),))
        self.rig.ask_all([gone], [frame(leaving)])
        close(gone)
        self._heartbeats()
        self._rejoin()

    def end(self) -> None:
        for seat in self.seats:
            close(seat)
        self.rig.turn()

    def _assignments(self) -> list[bytes]:
        """In the order in which the leader has the members."""
        each = self.partitions
        if not each:
            return []
        numbers = range(0, each * len(self.seats), each)
        return [
            write_assignment(
                ConsumerProtocolAssignment((TopicPartitions("topic", tuple(range(n, n + each))),))
            )
            for n in numbers
        ]

    def _heartbeats(self) -> None:
        self.rig.ask_all(self.seats, [heartbeat_frame(seat) for seat in self.seats])

    def _rejoin(self, joined: "list[Seat] | None" = None) -> None:
        waiting = [seat for seat in self.seats if seat not in (joined or ())]
        frames = {id(seat): frame(join(seat)) for seat in self.seats}
        answered: list[Seat] = []
        while len(answered) < len(self.seats):
            self.rig.receive(waiting, [frames[id(seat)] for seat in waiting])
            before = -1
            while len(answered) != before:
                before = len(answered)
                for _ in range(20):
                    self.rig.turn()
                answered = [seat for seat in self.seats if seat.transport.written]
            waiting = answered  # some were in the first generation of a new group: they rejoin
        for seat in self.seats:
            answer = seat.answer(ApiKey.JOIN_GROUP)
            assert answer.error_code is ErrorCode.NONE, answer
            seat.generation_id = answer.generation_id
            seat.members = tuple(member.member_id for member in answer.members)
        assignments = self._assignments()
        self.rig.ask_all(self.seats, [sync_frame(seat, assignments) for seat in self.seats])
        for seat in self.seats:
            assert seat.answer(ApiKey.SYNC_GROUP).error_code is ErrorCode.NONE


class ConsumerGroup:
    """Members that give back at once what they are to give back."""

    def __init__(self, rig: TimedRig, size: int, partitions: int) -> None:
        self.rig = rig
        self.group_id = f"consumers-{next(rig.names)}"
        self.topics = tuple(
            f"{self.group_id}-{n}" for n in range(partitions or PARTITIONS_PER_MEMBER)
        )
        for topic in self.topics:
            rig.create_topic(topic, size)
            rig.longest.clear()
        self.seats: list[Seat] = []
        self.owned: dict[str, Any] = {}
        self.size = size

    def form(self) -> None:
        for _ in range(self.size):
            self._add()
        self._reconcile()

    def join(self) -> None:
        self._add()
        self._reconcile()

    def leave(self) -> None:
        gone = self.seats.pop()
        gone.generation_id = LEAVE_EPOCH
        self.rig.ask_all([gone], [frame(beat(gone, None))])
        close(gone)
        self._reconcile()

    def end(self) -> None:
        for seat in self.seats:
            close(seat)
        self.rig.turn()

    def _add(self) -> None:
        seat = Seat(self.rig, self.group_id)
        seat.member_id = f"member-{next(self.rig.names)}"
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=seat.member_id,
            member_epoch=JOIN_EPOCH,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=self.topics,
            topic_partitions=(),
        )
        self.owned[seat.member_id] = ()
        self.rig.ask_all([seat], [frame(request)])
        self.seats.append(seat)
        self._take(seat)

    def _take(self, seat: Seat) -> bool:
        """The answer; True if it says something new."""
        answer = seat.answer(ApiKey.CONSUMER_GROUP_HEARTBEAT)
        assert answer.error_code is ErrorCode.NONE, answer
        is_new: bool = answer.member_epoch != seat.generation_id or answer.assignment is not None
        seat.generation_id = answer.member_epoch
        if answer.assignment is not None:
            self.owned[seat.member_id] = tuple(
                HeartbeatTopicPartitions(each.topic_id, tuple(each.partitions))
                for each in answer.assignment.topic_partitions
            )
        return is_new

    def _reconcile(self) -> None:
        """Heartbeats of all who have something to report or to learn, until all is settled."""
        to_report = {seat.member_id for seat in self.seats}
        while True:
            frames = [
                frame(
                    beat(seat, self.owned[seat.member_id] if seat.member_id in to_report else None)
                )
                for seat in self.seats
            ]
            self.rig.ask_all(self.seats, frames)
            to_report = {seat.member_id for seat in self.seats if self._take(seat)}
            group = self.rig.daemon.coordinator.group(GroupId(self.group_id))
            assert group is not None
            if not to_report and group.state is GroupState.STABLE:
                return
            if not to_report:
                time.sleep(ASSIGNMENT_INTERVAL_S)


def close(seat: Seat) -> None:
    with seat.rig.timed():
        seat.connection.connection_lost(None)


KINDS: Final = {"classic": ClassicGroup, "consumer": ConsumerGroup}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--protocol", default="classic,consumer")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--partitions", type=int, default=0)
    parser.add_argument("--no-history", action="store_true")
    parser.add_argument("--log-lines", action="store_true")
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    log_level = "error"
    if arguments.log_lines:
        log_level = "info"
        sys.stderr = Path("/dev/null").open("w")  # noqa: SIM115  until the process ends
    print(f"{'µs a member':<18}{'form':>10}{'join':>10}{'leave':>10}   longest, ms")
    for protocol in arguments.protocol.split(","):
        for size in map(int, arguments.sizes.split(",")):
            with tempfile.TemporaryDirectory() as folder:
                rig = TimedRig(folder, history=not arguments.no_history, log_level=log_level)
                if arguments.profile:
                    rig.profile = cProfile.Profile(time.process_time)
                    rig.daemon.server.stopwatch = lambda: 0.0  # or turns end early for the profiler
                kind = functools.partial(KINDS[protocol], rig, size, arguments.partitions)
                best = measure(rig, kind, arguments.rounds)
                each = "".join(f"{spent / size * 1e6:>10.1f}" for spent in best)
                longest = sorted(rig.longest.items(), key=lambda item: -item[1])[:LONGEST_SHOWN]
                calls = ", ".join(f"{name} {seconds * 1e3:.1f}" for name, seconds in longest)
                print(f"{protocol} {size:<{17 - len(protocol)}}{each}   {calls}", flush=True)
                if rig.profile is not None:
                    pstats.Stats(rig.profile).sort_stats("tottime").print_stats(60)


def measure(
    rig: TimedRig, new_group: Callable[[], ClassicGroup | ConsumerGroup], rounds: int
) -> list[float]:
    """Seconds of the server's CPU, best of the rounds: to form, for one more, for one less."""
    best = [float("inf")] * 3
    for _ in range(rounds):
        group = new_group()
        for number, step in enumerate((group.form, group.join, group.leave)):
            before_s = rig.server_s
            step()
            best[number] = min(best[number], rig.server_s - before_s)
        group.end()
    return best


if __name__ == "__main__":
    main()
