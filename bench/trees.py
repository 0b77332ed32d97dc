"""Two trees: does the daemon of one checkout use more CPU, or start later, than the other's?

    .venv/bin/python bench/trees.py BASE [HEAD] [--rounds 5] [--check PERCENT]

BASE and HEAD are each a git commit or a directory (`.` is the working tree); HEAD is git's HEAD if
left out. `pure:.` and `compiled:.` say which build runs; without a word it is the sources, so that
two commits are compared alike. Each tree is compiled to bytecode and runs its own packages, with
this Python and its installed dependencies. The trees alternate: each round has several starts of
each, then two new daemons and slices of equal work in the order base, head, head, base. CPU time is
the process's own clock (nanoseconds, all threads, also ended ones). Wall time and rates are not
printed where CPU time answers the question.

The load is heartbeats (pipelined) and commits (one in flight on each connection, answered after the
fsync) of stable groups, and rebalances in which all members of a group join and sync. A start is
measured from exec to the ready line: on no data directory, and on a copy of one with 100,000
offsets, which the base wrote and closed with a clean stop.

The table has each tree's median, the ratio head/base (the median of the ratios of measurements
that are next to each other in time, which other load affects equally), the lowest and highest such
median of a round, and the ratio of the two minima. A difference within the range of the rounds is
noise: compare a commit with itself first to see how large that is. Starts are few and long: on a
shared machine use more rounds, and read the CPU and the minima, not the wall time.

`--check PERCENT` measures no starts. It exits with code 1 if a request costs more CPU than in the
base by more than this, in the median of all rounds and in each round: `make bench-check`.
"""

import argparse
import asyncio
import io
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import uvloop

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.daemon import TOPIC, VERSIONS, Seat, commit, form_group, heartbeat
from protocol.codec import decode_response
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.list_groups import ListGroupsRequest
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from protocol.names import ApiKey, ErrorCode, GroupId, TopicName

ROOT = Path(__file__).resolve().parents[1]
VERSIONS[ApiKey.LIST_GROUPS] = 4
GROUPS, MEMBERS = 2, 20
STORED_GROUPS, STORED_PARTITIONS = 1_000, 100  # 100,000 offsets
STARTS = 3  # of each tree, on each kind of directory, in a round
SLICES = 16  # of each tree and kind of request, in a round
WARM_UP_SLICES = 2  # the first requests compile their codecs and fill caches
READY_S, STOP_S = 60, 60
READY = b"rollcall ready: clients "
# Members that join an empty group one after the other are in its first generation.
SETTINGS = ("group.initial.rebalance.delay.ms=200",)
CPUCLOCK_SCHED = 2  # include/linux/posix-timers.h: the low bits of a process's clock id


@dataclass
class Tree:
    """One checkout and its measured values, by kind of measurement, then by round."""

    name: str
    folder: Path
    is_compiled: bool = False
    rounds: dict[str, list[list[float]]] = field(default_factory=lambda: defaultdict(list))

    def new_round(self) -> None:
        for kind in KINDS:
            self.rounds[kind].append([])

    def add(self, kind: str, value: float) -> None:
        self.rounds[kind][-1].append(value)

    def values(self, kind: str) -> list[float]:
        return [value for values in self.rounds[kind] for value in values]

    def environment(self) -> dict[str, str]:
        # A fixed hash seed: the order of a set must not make one process faster than the next.
        chosen = {"PYTHONHASHSEED": "0", "ROLLCALL_PURE": "0" if self.is_compiled else "1"}
        return {**os.environ, "PYTHONPATH": str(self.folder), **chosen}


@dataclass
class Daemon:
    """A running daemon of a tree, and the cost of its start."""

    process: subprocess.Popen[bytes]
    host: str
    port: int
    start_wall_s: float
    start_cpu_s: float

    def cpu_s(self) -> float:
        return cpu_s(self.process.pid)

    async def seat(self, group_id: str = "", number: int = 0) -> Seat:
        return Seat(group_id, number, *await asyncio.open_connection(self.host, self.port))


def cpu_s(pid: int) -> float:
    """CPU time of all threads of a process, from its clock: /proc/PID/stat counts by 10 ms."""
    return time.clock_gettime((~pid << 3) | CPUCLOCK_SCHED)


@contextmanager
def running(tree: Tree, folder: Path, end: signal.Signals = signal.SIGKILL) -> Iterator[Daemon]:
    """A daemon of the tree on a data directory; killed if the directory is not needed again."""
    command = [
        *(sys.executable, "-m", "rollcall", "serve", "--data-dir", str(folder)),
        *("--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"),
        *itertools.chain(*(("--set", setting) for setting in SETTINGS)),
    ]
    with tempfile.TemporaryFile() as log:
        began = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=tree.folder, env=tree.environment(), stdout=subprocess.PIPE, stderr=log
        )
        give_up = threading.Timer(READY_S, process.kill)
        give_up.start()
        assert process.stdout is not None
        try:
            ready = next((line for line in process.stdout if line.startswith(READY)), b"")
            wall_s = time.perf_counter() - began
            give_up.cancel()
            if not ready:
                log.seek(0)
                raise SystemExit(f"{tree.name} did not get ready: {log.read().decode()[-2_000:]}")
            host, _, port = ready.split()[3].decode().rpartition(":")
            yield Daemon(process, host, int(port), wall_s, cpu_s(process.pid))
        finally:
            give_up.cancel()
            process.send_signal(end)
            process.communicate(timeout=STOP_S)


# The two trees


def checked_out(name: str, scratch: Path) -> Tree:
    """A directory, or the files of a commit; compiled, so that no start compiles them."""
    build, _, rest = name.rpartition(":")
    if build not in {"", "pure", "compiled"}:
        build, rest = "", name
    folder, label = Path(rest).resolve(), name
    if not (folder / "rollcall" / "__main__.py").is_file():
        found = subprocess.run(
            ["git", "rev-parse", "--verify", "--quiet", "--short", f"{rest}^{{commit}}"],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if found.returncode:
            print(f"neither a checkout nor a commit: {name}", file=sys.stderr)
            sys.exit(2)
        commit, folder = found.stdout.strip(), scratch / "tree"
        label = f"{build}:{commit}" if build else commit
        archive = subprocess.run(
            ["git", "archive", commit], cwd=ROOT, capture_output=True, check=True
        )
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
            files.extractall(folder, filter="data")
    tree = Tree(label, folder, is_compiled=build == "compiled")
    packages = sorted(str(path.parent) for path in folder.glob("*/__init__.py"))
    subprocess.run([sys.executable, "-m", "compileall", "-q", "-j", "0", *packages], check=True)
    if tree.is_compiled:
        command = [sys.executable, "-m", "native.compile"]
        # What it leaves undone, without a compiler for one, the version below says.
        subprocess.run(command, cwd=folder, env=tree.environment(), check=False)
        command = [sys.executable, "-m", "rollcall", "--version"]
        said = subprocess.check_output(command, cwd=folder, env=tree.environment(), text=True)
        if "(compiled" not in said:
            raise SystemExit(f"{name} would not run compiled: {said}")
    lies_in = subprocess.run(
        [sys.executable, "-c", "import rollcall; print(rollcall.__file__)"],
        cwd=folder, env=tree.environment(), capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    if not Path(lies_in).is_relative_to(folder):
        raise SystemExit(f"a daemon of {name} would run {lies_in.strip()}")
    return tree


def in_turn(trees: Sequence[Tree], turn: int) -> Sequence[Tree]:
    """The order alternates: the second tree finds warmer caches."""
    return trees if turn % 2 == 0 else trees[::-1]


# Starts


def measure_starts(trees: Sequence[Tree], stored: Path, scratch: Path) -> None:
    for turn in range(STARTS):
        for tree in in_turn(trees, turn):
            start_once(tree, EMPTY, scratch / "empty", groups=0)
            folder = scratch / "copy"
            shutil.copytree(stored, folder)
            start_once(tree, STORED, folder, groups=STORED_GROUPS)


def start_once(tree: Tree, kind: str, folder: Path, groups: int) -> None:
    with running(tree, folder) as daemon:
        tree.add(f"{kind}: wall", daemon.start_wall_s * 1e3)
        tree.add(f"{kind}: CPU", daemon.start_cpu_s * 1e3)
        found = uvloop.run(count_groups(daemon))
    if found != groups:
        raise SystemExit(f"{tree.name} has {found} groups after a start with {groups}")
    shutil.rmtree(folder)


async def count_groups(daemon: Daemon) -> int:
    seat = await daemon.seat()
    answer = await seat.ask(ListGroupsRequest())
    require_no_error(answer.error_code)
    seat.writer.close()
    return len(answer.groups)


async def store_offsets(daemon: Daemon) -> None:
    seat = await daemon.seat()
    await create_topic(seat, STORED_PARTITIONS)
    rows = tuple(OffsetCommitRequestPartition(n, 42) for n in range(STORED_PARTITIONS))
    topics = (OffsetCommitRequestTopic(name=TopicName(TOPIC), partitions=rows),)
    for number in range(STORED_GROUPS):
        answer = await seat.ask(OffsetCommitRequest(GroupId(f"stored-{number}"), topics=topics))
        require_no_error(*commit_errors(answer))
    seat.writer.close()


async def create_topic(seat: Seat, partitions: int) -> None:
    topic = CreatableTopic(TopicName(TOPIC), num_partitions=partitions, replication_factor=1)
    created = await seat.ask(CreateTopicsRequest(topics=(topic,)))
    require_no_error(*(topic.error_code for topic in created.topics))


def require_no_error(*codes: ErrorCode) -> None:
    bad = {code for code in codes if code is not ErrorCode.NONE}
    if bad:
        raise SystemExit(f"a request failed: {bad}")


def commit_errors(answer: OffsetCommitResponse) -> list[ErrorCode]:
    return [row.error_code for topic in answer.topics for row in topic.partitions]


# Requests


async def pipelined(
    groups: list[list[Seat]], request: Callable[[Seat], bytes], depth: int, bursts: int
) -> int:
    """Bursts of equal requests on all connections at once; how many were answered."""

    async def run(seat: Seat) -> int:
        frame = request(seat)
        seat.writer.write(frame)
        answer = await seat.answer()
        api_key = ApiKey(int.from_bytes(frame[4:6], "big"))
        message: Any = decode_response(api_key, VERSIONS[api_key], answer, 0, len(answer))[1]
        is_commit = api_key is ApiKey.OFFSET_COMMIT
        require_no_error(*(commit_errors(message) if is_commit else [message.error_code]))
        burst, expected = frame * depth, (len(answer).to_bytes(4, "big") + answer) * depth
        for _ in range(bursts):
            seat.writer.write(burst)
            if await seat.reader.readexactly(len(expected)) != expected:
                raise SystemExit(f"the answers to {api_key!r} differ")
        return 1 + depth * bursts

    return sum(await asyncio.gather(*(run(seat) for group in groups for seat in group)))


subscription_numbers = itertools.count()


async def rebalances(groups: list[list[Seat]], times: int) -> int:
    """All members join with a new subscription, and sync; how many joined."""
    for _ in range(times):
        name, user_data = TOPIC.encode(), next(subscription_numbers).to_bytes(4, "big")
        subscription = b"".join(
            (b"\0\0", b"\0\0\0\1", len(name).to_bytes(2, "big"), name, b"\0\0\0\4", user_data)
        )
        await asyncio.gather(*(form_group(seats, subscription) for seats in groups))
    return times * sum(map(len, groups))


MODES: dict[str, Callable[[list[list[Seat]]], Awaitable[int]]] = {
    "heartbeat": partial(pipelined, request=heartbeat, depth=25, bursts=5),
    "commit, 1 partition": partial(pipelined, request=commit(1), depth=1, bursts=20),
    "commit, 10 partitions": partial(pipelined, request=commit(10), depth=1, bursts=12),
    "join and sync of a member": partial(rebalances, times=3),
}
EMPTY, STORED = "start, empty", "start, 100,000 offsets"
STARTED = [f"{start}: {what}" for start in (EMPTY, STORED) for what in ("CPU", "wall")]
KINDS = {**dict.fromkeys(MODES, "us"), **dict.fromkeys(STARTED, "ms")}


async def make_groups(daemon: Daemon) -> list[list[Seat]]:
    groups = [
        [await daemon.seat(f"group-{group}", number) for number in range(MEMBERS)]
        for group in range(GROUPS)
    ]
    await create_topic(groups[0][0], MEMBERS * 10)
    await asyncio.gather(*map(form_group, groups))
    return groups


async def measure_requests(trees: Sequence[Tree], daemons: Sequence[Daemon]) -> None:
    sides = [
        (tree, daemon, await make_groups(daemon))
        for tree, daemon in zip(trees, daemons, strict=True)
    ]
    for kind, mode in MODES.items():
        for turn in range(-WARM_UP_SLICES, SLICES):
            for tree, daemon, groups in sides if turn % 2 == 0 else sides[::-1]:
                before = daemon.cpu_s()
                count = await mode(groups)
                if turn >= 0:
                    tree.add(kind, (daemon.cpu_s() - before) / count * 1e6)
    for _, _, groups in sides:
        for seat in itertools.chain(*groups):
            seat.writer.close()


# The table


def ratios(base: Tree, head: Tree, kind: str) -> list[list[float]]:
    """Head/base of the measurements that are next to each other in time, by round."""
    return [
        [after / before for before, after in zip(*both, strict=True)]
        for both in zip(base.rounds[kind], head.rounds[kind], strict=True)
    ]


def show(base: Tree, head: Tree, rounds: int) -> None:
    print(f"{rounds} rounds; base {base.name}, head {head.name}; us: CPU of one request")
    titles = ("base", "head", "ratio", "rounds from", "to", "minima")
    print(f"{'':<34}" + "".join(f"{title:>12}" for title in titles))
    for kind, unit in KINDS.items():
        before, after = base.values(kind), head.values(kind)
        if not before:
            continue
        pairs = ratios(base, head, kind)
        of_rounds = [median(ratios) for ratios in pairs]
        row = f"{kind + ', ' + unit:<34}{median(before):>12.1f}{median(after):>12.1f}"
        ratio = median(itertools.chain(*pairs))
        for shown in (ratio, min(of_rounds), max(of_rounds), min(after) / min(before)):
            row += f"{shown:>12.3f}"
        print(row)


def report_slower(base: Tree, head: Tree, percent: float) -> int:
    """Name the kinds of request that cost more than before; the exit code."""
    limit = 1 + percent / 100
    slower = [
        kind
        for kind in MODES
        for pairs in [ratios(base, head, kind)]
        if median(itertools.chain(*pairs)) > limit and min(map(median, pairs)) > limit
    ]
    for kind in slower:
        print(f"slower by more than {percent:g} %: {kind}")
    return 1 if slower else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base", metavar="BASE")
    parser.add_argument("head", metavar="HEAD", nargs="?", default="HEAD")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--check", type=float, metavar="PERCENT")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("--rounds must be at least 1")
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        trees = base, head = (
            checked_out(arguments.base, scratch / "base"),
            checked_out(arguments.head, scratch / "head"),
        )
        stored = scratch / "stored"
        if arguments.check is None:
            with running(base, stored, end=signal.SIGTERM) as daemon:
                uvloop.run(store_offsets(daemon))
        for turn in range(arguments.rounds):
            for tree in trees:
                tree.new_round()
            if arguments.check is None:
                measure_starts(in_turn(trees, turn), stored, scratch)
            first, second = in_turn(trees, turn)
            with (
                running(first, scratch / "first") as base_daemon,
                running(second, scratch / "second") as other,
            ):
                uvloop.run(measure_requests((first, second), (base_daemon, other)))
            shutil.rmtree(scratch / "first")
            shutil.rmtree(scratch / "second")
            print(f"round {turn + 1} of {arguments.rounds} done", file=sys.stderr, flush=True)
    show(base, head, arguments.rounds)
    if arguments.check is not None:
        sys.exit(report_slower(base, head, arguments.check))


if __name__ == "__main__":
    main()
