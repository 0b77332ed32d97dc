"""What did the members of a real group see? Runs them as processes and gathers what they say.

`Member` starts one script of members/ and reads its JSON lines in a thread. `Witness` keeps what
all of them said and lets a test wait for a fact, never for a time.
"""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

SCRIPTS = Path(__file__).parent / "members"
PATIENCE_S = 90  # how long a test waits for a fact before it fails; not a measure of anything


class Witness:
    """Everything that the members of one group said, in the order in which it was heard."""

    def __init__(self) -> None:
        self._heard = threading.Condition()
        self.read: dict[int, set[int]] = {}
        self.events: list[tuple[str, dict]] = []

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

    def owned(self, member: str) -> list[int] | None:
        """The partitions that the member was last given and did not give back; None: never any."""
        owned: set[int] | None = None
        for name, fact in self.events:
            if name != member:
                continue
            if fact["event"] == "assigned":
                owned = (owned or set()) | set(fact["partitions"])
            elif fact["event"] == "revoked":
                owned = (owned or set()) - set(fact["partitions"])
        return None if owned is None else sorted(owned)

    def wait_for(self, what: str, fact: Callable[[], bool]) -> None:
        with self._heard:
            if not self._heard.wait_for(fact, timeout=PATIENCE_S):
                tail = "\n".join(f"{name}: {said}" for name, said in self.events[-30:])
                raise AssertionError(f"waited in vain for {what}; last heard:\n{tail[:6000]}")


class Member:
    def __init__(self, witness: Witness, name: str, library: str, *words: str) -> None:
        self.name = name
        self.library = library
        self.log: list[str] = []
        self._witness = witness
        self.process = subprocess.Popen(
            [sys.executable, str(SCRIPTS / f"{library}_member.py"), *words],
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
        for line in self.process.stdout:
            self._witness.hear(self.name, line)
        self._witness.note()

    def _keep_log(self) -> None:
        for line in self.process.stderr:
            self.log.append(line)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """As a user stops a consumer: it leaves the group."""
        self.process.terminate()
        self.process.wait(timeout=PATIENCE_S)
        for thread in self._threads:
            thread.join(timeout=PATIENCE_S)


@contextmanager
def members() -> Iterator[tuple[Witness, Callable[..., Member]]]:
    """(witness, start): whatever was started is gone at the end, however the test ends."""
    witness = Witness()
    started: list[Member] = []

    def start(name: str, library: str, *words: str) -> Member:
        member = Member(witness, name, library, *words)
        started.append(member)
        return member

    try:
        yield witness, start
    finally:
        for member in started:
            if member.process.poll() is None:
                member.kill()
