"""Real group: runs members as processes and collects what they report.

`Member` is a script of members/ as a process, its JSON lines read in a thread. `Witness` keeps what
all of them said and lets a test wait for a fact, never for a time.
"""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.interop.go_programs import go_program
from tests.interop.kafka_tools import require_kafka_tools
from tests.interop.members.client import LIBRARIES, Options, Partition

SCRIPTS = Path(__file__).parent / "members"
TIMEOUT_S = 90  # how long a test waits for a fact before it fails; not a measure of anything

FRANZ_GO = "franz_go"

EACH_LIBRARY = pytest.mark.parametrize("library", LIBRARIES)


class Witness:
    """Everything that the members of one group said, in the order in which it was heard."""

    def __init__(self) -> None:
        self._heard = threading.Condition()
        self.read: dict[Partition, set[int]] = {}
        self.events: list[tuple[str, dict]] = []
        self.members: list[Member] = []

    def hear(self, member: str, line: str) -> None:
        fact = json.loads(line)
        with self._heard:
            self.events.append((member, fact))
            if fact["event"] == "read":
                self.read.setdefault(fact["partition"], set()).update(fact["offsets"])
            self._heard.notify_all()

    def note(self) -> None:
        """Something changed that is not a line: a process ended."""
        with self._heard:
            self._heard.notify_all()

    @property
    def messages_read(self) -> int:
        return sum(len(offsets) for offsets in self.read.values())

    def said(self, member: str, event: str) -> list[dict]:
        """What this member said about such events, in order."""
        return [fact for name, fact in self.events if name == member and fact["event"] == event]

    def about(self, partition: Partition) -> Iterator[str]:
        """All that was said about one partition, for the message of a failed test."""
        for name, fact in self.events:
            if partition in fact.get("partitions", ()):
                yield f"{name}: {fact['event']}"
            elif str(partition) in fact.get("offsets", ()):
                yield f"{name}: {fact['event']} {fact['offsets'][str(partition)]}"
            elif fact.get("partition") == partition:
                yield f"{name}: {fact['event']} {fact['offsets'][0]} to {fact['offsets'][-1]}"
            elif "why" in fact:
                yield f"{name}: {fact['event']}, {fact['why']}"

    def owned(self, member: str) -> list[Partition] | None:
        """The partitions that the member was last given and did not give back; None: never any."""
        owned: set[Partition] | None = None
        for name, fact in self.events:
            if name != member:
                continue
            if fact["event"] == "assigned":
                owned = (owned or set()) | set(fact["partitions"])
            elif fact["event"] == "revoked":
                owned = (owned or set()) - set(fact["partitions"])
        return None if owned is None else sorted(owned)

    def share(self, members: Sequence["Member"], partitions: int) -> bool:
        """Whether each of these has something, and all partitions have one owner among them."""
        owned = [self.owned(member.name) for member in members]
        return all(owned) and sorted(p for share in owned for p in share or ()) == list(
            range(partitions)
        )

    def wait_for(self, what: str, fact: Callable[[], bool]) -> None:
        with self._heard:
            if not self._heard.wait_for(fact, timeout=TIMEOUT_S):
                tail = "\n".join(f"{name}: {said}" for name, said in self.events[-30:])
                far = "\n".join(member.how_far() for member in self.members)
                raise AssertionError(
                    f"waited {TIMEOUT_S} s in vain for {what}\n{far}\nlast heard:\n{tail[:6000]}"
                )


class Member:
    """One consumer as a process; `script` says which kind."""

    def __init__(
        self, witness: Witness, name: str, library: str, options: Options, script: str
    ) -> None:
        self.name = name
        self.log: list[str] = []
        self._witness = witness
        witness.members.append(self)
        self.process = subprocess.Popen(
            _command(library, options, script),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._threads = [
            threading.Thread(target=self._listen, daemon=True),
            threading.Thread(target=self._keep_log, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._witness.hear(self.name, line)
        self._witness.note()

    def _keep_log(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(line)

    def how_far(self) -> str:
        """How far this client got, for the message of a test that waited for it."""
        ended = self.process.poll()
        state = "runs" if ended is None else f"ended with {ended}"
        said = [fact["event"] for name, fact in self._witness.events if name == self.name]
        last = f"last {said[-1]}" if said else "nothing yet"
        log = "".join(f"\n    {line.rstrip()}" for line in self.log[-5:])
        return f"{self.name} {state}, said {len(said)} things, {last}; its log ends:{log or ' -'}"

    def check_alive(self) -> None:
        ended = self.process.poll()
        log = "".join(self.log)[-3_000:]
        assert ended is None, f"{self.name} ended with {ended}:\n{log}"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._witness.hear(self.name, json.dumps({"event": "killed", "at_ns": time.time_ns()}))

    def stall(self) -> None:
        """As a long pause of the whole process does: it is there, and says nothing."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """As a user stops a consumer: it leaves the group."""
        self.process.terminate()
        self.process.wait(timeout=TIMEOUT_S)
        for thread in self._threads:
            thread.join(timeout=TIMEOUT_S)


class Failed(Exception):
    """The consumer raised; the text begins with the name of the error."""


class Obedient(Member):
    """A consumer that does what the test says, one thing after the other."""

    def __call__(self, word: str, *arguments: object) -> object:
        """What the command yields. Raises Failed."""
        before = self._answers()
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([word, *arguments]) + "\n")
        self.process.stdin.flush()
        self._witness.wait_for(
            f"{self.name} to {word}",
            lambda: len(self._answers()) > len(before) or self.process.poll() is not None,
        )
        answers = self._answers()
        assert len(answers) > len(before), f"{self.name} ended:\n{''.join(self.log)[-3000:]}"
        if answers[-1]["event"] == "failed":
            raise Failed(answers[-1]["error"])
        return answers[-1]["value"]

    def _answers(self) -> list[dict]:
        return [
            fact
            for name, fact in self._witness.events
            if name == self.name and fact["event"] in ("done", "failed")
        ]

    def poll(self) -> dict[int, list[int]]:
        read = self("poll")
        assert isinstance(read, dict)
        return {int(partition): offsets for partition, offsets in read.items()}

    def read(self, enough: Callable[[dict[int, list[int]]], bool]) -> dict[int, list[int]]:
        """Poll until what was read since is enough."""
        read: dict[int, list[int]] = {}
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            for partition, offsets in self.poll().items():
                read.setdefault(partition, []).extend(offsets)
            if enough(read):
                return read
        raise AssertionError(f"{self.name} has read {read}, and that is not enough")

    def read_messages(self, count: int) -> dict[int, list[int]]:
        return self.read(lambda read: sum(map(len, read.values())) >= count)

    def stop(self) -> None:
        """Closes its consumer; with the end of its orders the process ends."""
        self("close")
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=TIMEOUT_S)


def _command(library: str, options: Options, script: str) -> list[str]:
    if library == FRANZ_GO:
        assert script == "member.py", "the Go program is an independent member, and no other"
        return [str(go_program(SCRIPTS / FRANZ_GO)), options.to_json()]
    options = _complete(library, options)
    return [sys.executable, str(SCRIPTS / script), library, options.to_json()]


def _complete(library: str, options: Options) -> Options:
    """A Java consumer needs Kafka's classes and a Java; without them its test is skipped."""
    if library != "java":
        return options
    tools = require_kafka_tools()
    jvm = tools.java.resolve().parents[1] / "lib" / "server" / "libjvm.so"
    return replace(options, jars=tuple(map(str, tools.jars)), jvm=str(jvm))


Start = Callable[[str, str, Options], Member]


@contextmanager
def members() -> Iterator[tuple[Witness, Start]]:
    """(witness, start): whatever was started is gone at the end, however the test ends."""
    witness = Witness()
    started: list[Member] = []

    def start(name: str, library: str, options: Options) -> Member:
        member = Member(witness, name, library, options, "member.py")
        started.append(member)
        return member

    try:
        yield witness, start
    finally:
        _end(started)


@contextmanager
def consumers() -> Iterator[tuple[Witness, Callable[[str, str, Options], Obedient]]]:
    """The same for consumers that do as they are told."""
    witness = Witness()
    started: list[Member] = []

    def start(name: str, library: str, options: Options) -> Obedient:
        consumer = Obedient(witness, name, library, options, "obedient.py")
        started.append(consumer)
        return consumer

    try:
        yield witness, start
    finally:
        _end(started)


def _end(started: list[Member]) -> None:
    for member in started:
        if member.process.poll() is None:
            member.kill()
