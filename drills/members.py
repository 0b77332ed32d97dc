"""Members: the client processes of a drill, and what their lines mean."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from drills.clients.interface import ClientSettings
from drills.clients.libraries import member_command
from drills.events import DrillEvent, EventLog, Kind
from drills.processes import STOP_WITHIN_S, Child

_OFFSET_EVENTS: Final = ("read", "committed")


class BadLine(Exception):
    """A client reported something that is no event of the member protocol."""


def parse_line(member: str, line: str, heard_s: float) -> DrillEvent | None:
    """The event of one line of a member; None: one that the drill does not use. Raises BadLine."""
    try:
        facts = json.loads(line)
        event, at_ns = facts["event"], facts.get("at_ns")
        at_s = heard_s if at_ns is None else at_ns / 1e9
        match event:
            case "assigned" | "revoked":
                partitions = tuple(int(p) for p in facts["partitions"])
                return DrillEvent(at_s, member, Kind(event), partitions)
            case "read":
                partition = int(facts["partition"])
                offsets = tuple((partition, int(o)) for o in facts["offsets"])
                return DrillEvent(at_s, member, Kind.READ, offsets=offsets)
            case "committed":
                offsets = tuple((int(p), int(o)) for p, o in facts["offsets"].items())
                return DrillEvent(at_s, member, Kind.COMMITTED, offsets=offsets)
            case "not committed":
                return DrillEvent(at_s, member, Kind.NOT_COMMITTED, text=str(facts.get("why", "")))
            case "closing":
                return DrillEvent(at_s, member, Kind.CLOSING)
            case _:
                return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadLine(f"{member} reports {line.strip()[:200]!r} ({error})") from None


class DrillMember:
    """One client process."""

    def __init__(
        self,
        name: str,
        library: str,
        settings: ClientSettings,
        log: Path,
        events: EventLog,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """In the main thread. Raises CannotStart, LibraryMissing."""
        self.name = name
        self.library = library
        self.is_live = True  # neither killed nor stopped by the drill
        self.is_silent = False  # stalled or cut off
        self.fault = ""
        self._is_killed = False
        self._log = log
        self._events = events
        events.note(name, Kind.STARTED)
        command = member_command(library, settings)
        self._child = Child(command, log, self._hear, self._end, environment)

    @property
    def has_failed(self) -> bool:
        """Whether the process ended by itself, or reports what is no event."""
        return bool(self.fault) or (self.is_live and self._child.exit_code is not None)

    def why_failed(self) -> str:
        if self.fault:
            return self.fault
        lines = self._log.read_text("utf-8", "replace").split("\n") if self._log.exists() else []
        last = next((line.strip() for line in reversed(lines) if line.strip()), "it says nothing")
        return f"{self.name} ({self.library}) ended with {self._child.exit_code}: {last}"

    def kill(self) -> None:
        self.is_live, self._is_killed = False, True
        self._child.kill()

    def stall(self) -> None:
        self.is_silent = True
        self._child.stall()
        self._events.note(self.name, Kind.STALLED)

    def resume(self) -> None:
        self._events.note(self.name, Kind.RESUMED)
        self._child.resume()
        self.is_silent = False

    def begin_stop(self) -> None:
        """It is to leave the group."""
        self.is_live = False
        self._child.write("stop")

    def finish_stop(self) -> bool:
        """Whether it has ended by itself within STOP_WITHIN_S."""
        return self._child.wait(STOP_WITHIN_S) is not None

    def close(self) -> None:
        self.is_live = False
        self._child.close()

    def _hear(self, line: str) -> None:
        try:
            event = parse_line(self.name, line, time.monotonic())
        except BadLine as error:
            self.fault = str(error)
            return
        if event is not None:
            self._events.add(event)

    def _end(self) -> None:
        self._events.note(self.name, Kind.KILLED if self._is_killed else Kind.ENDED)
