"""Runner: carries out a scenario with the members of one library, and returns what happened.

The main thread does the steps, one after the other. A step that lasts (a stall, a cut, a fault of
the disk), or that waits for a moment of a member, goes on beside the next ones; the drill is over
when all of them are. Then the group has until `recover_within_s` to recover and to read what was
written.
"""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final
from uuid import uuid4

from msgspec import Struct
from msgspec.structs import replace

from client.wire import BrokenWire, connect_wire
from drills.broker_calls import (
    CallRefused,
    await_coordinator,
    create_drill_topic,
    delete_drill_topic,
)
from drills.clients.interface import ClientSettings
from drills.daemon import DrilledDaemon
from drills.events import OF_DAEMON, OF_DRILL, DrillEvent, EventLog, Kind, wait_for
from drills.judge import DrillMeasures, PromiseVerdict, judge, measure, recoveries_of
from drills.load import OffsetProbe, RecordLoad
from drills.members import DrillMember
from drills.ownership import OwnershipTrack
from drills.proxy import BrokerAddress, DrillProxy, Gate
from drills.scenario import ALL_MEMBERS, DAEMON, DrillStep, Scenario
from seams.operator_error import WrongInput

FORM_WITHIN_S: Final = 60.0
STEP_WITHIN_S: Final = 60.0
CALL_WITHIN_S: Final = 30.0
SLACK_S: Final = 0.5
"""A member may have been heard this long before the drill silenced it, besides its heartbeats."""


class CannotRun(WrongInput):
    """The drill could not be carried out; the message says why, in one line."""


class DrillTarget(Struct, frozen=True):
    """What is drilled, and where the drill leaves its files.

    `against` None: a daemon of the drill's own, which `program` starts (None: this installation's).
    """

    folder: Path
    against: BrokerAddress | None = None
    program: str | None = None
    listen: BrokerAddress = ("127.0.0.1", 0)


class DrillRun(Struct, frozen=True):
    """One library's part of a drill. `began_s` is the time of the first event."""

    library: str
    members: tuple[str, ...]
    events: tuple[DrillEvent, ...]
    measures: DrillMeasures
    verdicts: tuple[PromiseVerdict, ...]
    began_s: float

    @property
    def passed(self) -> bool:
        return all(verdict.is_kept for verdict in self.verdicts)


def run_drill(scenario: Scenario, library: str, target: DrillTarget, temporary: Path) -> DrillRun:
    """Raises CannotRun, CannotStart, LibraryMissing. In the main thread of the process."""
    step = scenario.daemon_step()
    if target.against is not None and step is not None:
        words = f"step {step.number} ({step}) needs a daemon of the drill's own"
        raise CannotRun(f"{scenario.name}: {words}: it cannot be done to a running server")
    with ExitStack() as stack:
        return _Runner(scenario, library, target, temporary, stack).run()


class _Runner:
    def __init__(
        self,
        scenario: Scenario,
        library: str,
        target: DrillTarget,
        temporary: Path,
        stack: ExitStack,
    ) -> None:
        self._scenario = scenario
        self._library = library
        self._target = target
        self._stack = stack
        self._events = EventLog()
        self._logs = target.folder / "logs"
        self._logs.mkdir(parents=True, exist_ok=True)
        self._members: dict[str, DrillMember] = {}
        self._running: list[threading.Thread] = []
        self._gates: list[Gate] = []
        self._faults: list[CannotRun] = []
        self._over = threading.Event()
        self._is_armed = False
        unique = uuid4().hex[:8]
        self._topic = f"rollcall-drill-{unique}"
        self._group = f"rollcall-drill-{unique}"
        self._daemon = None if target.against else self._make_daemon(temporary)
        self._proxy = DrillProxy(self._events, target.listen)

    def _log_of(self, name: str) -> Path:
        path = self._logs / f"{self._library.replace('/', '_').replace(':', '_')}-{name}.log"
        path.unlink(missing_ok=True)
        return path

    def _make_daemon(self, temporary: Path) -> DrilledDaemon:
        properties = dict(self._scenario.daemon)
        if self._scenario.protocol == "consumer":
            session_ms = max(m.session_timeout_ms for m in self._scenario.members)
            properties.setdefault("group.consumer.session.timeout.ms", str(session_ms))
        log = self._log_of("daemon")
        program = self._target.program
        daemon = DrilledDaemon(temporary, log, self._events, [*properties.items()], program)
        self._stack.callback(daemon.close)
        return daemon

    # --- the whole

    def run(self) -> DrillRun:
        self._stack.callback(self._proxy.close)
        self._stack.callback(self._over.set)
        self._proxy.bind()
        if self._daemon is not None:
            self._daemon.start()
        upstream = self._target.against or (self._daemon.address if self._daemon else ("", 0))
        server = f"{upstream[0]}:{upstream[1]}"
        self._prepare(server)
        self._stack.push(partial(self._leave_nothing, server))
        self._bootstrap = self._proxy.start(upstream)
        load = RecordLoad(
            self._events,
            server,
            self._topic,
            self._scenario.partitions,
            self._scenario.records_per_s,
        )
        probe = OffsetProbe(
            self._events, server, self._group, self._topic, self._scenario.partitions
        )
        for worker in (load, probe):
            worker.start()
            self._stack.callback(worker.stop)
        self._form()
        for step in self._scenario.steps:
            self._do(step)
        self._await_steps()
        self._await_recovery()
        load.stop()
        self._await_all_read()
        self._stop_members()
        probe.stop()
        deadline = time.monotonic() + CALL_WITHIN_S / 3
        probe.probe_last(lambda: time.monotonic() > deadline)
        return self._result()

    def _prepare(self, server: str) -> None:
        deadline = time.monotonic() + CALL_WITHIN_S
        try:
            wire = connect_wire(server, "rollcall-drill")
            try:
                left = deadline - time.monotonic()
                create_drill_topic(wire, self._topic, self._scenario.partitions, left)
                await_coordinator(wire, self._group, left)
            finally:
                wire.close()
        except (BrokenWire, CallRefused) as error:
            raise CannotRun(f"{server}: {error}") from None

    def _leave_nothing(self, server: str, *failure: object) -> None:
        """A server that goes on after the drill keeps nothing of it, however the drill ends.

        Called when the members have ended. What ended the drill is told, rather than what is left.
        """
        if self._target.against is None:
            return
        try:
            wire = connect_wire(server, "rollcall-drill")
            try:
                delete_drill_topic(wire, self._topic, self._group)
            finally:
                wire.close()
        except (BrokenWire, CallRefused) as error:
            if failure[0] is None:
                raise CannotRun(f"{server}: topic {self._topic} is left: {error}") from None

    def _form(self) -> None:
        """Members come in turn, each when the others have their shares: the first one leads."""
        for number, name in enumerate(self._scenario.initial, start=1):
            self._start_member(name)
            shared = partial(self._shared, number)
            self._await(shared, FORM_WITHIN_S, "the members to share the partitions")
        mark_s = time.monotonic()
        self._await(
            lambda: self._progressed(mark_s), FORM_WITHIN_S, "the members to read and commit"
        )
        self._events.note(OF_DRILL, Kind.FORMED)

    def _start_member(self, name: str) -> None:
        member = self._scenario.member(name)
        settings = ClientSettings(
            bootstrap=self._bootstrap,
            topic=self._topic,
            group=self._group,
            client_id=name,
            protocol=self._scenario.protocol,
            assignor=self._scenario.assignor,
            partitions=self._scenario.partitions,
            session_timeout_ms=member.session_timeout_ms,
            heartbeat_interval_ms=member.heartbeat_interval_ms,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
        )
        log = self._log_of(name)
        self._members[name] = DrillMember(name, self._library, settings, log, self._events)
        self._stack.callback(self._members[name].close)

    # --- waiting

    def _await(self, fact: Callable[[], bool], timeout_s: float, what: str) -> None:
        """Raises CannotRun if it does not become true, or if a client ends by itself."""
        self._wait_or_fail(fact, timeout_s)
        if not fact():
            raise CannotRun(f"{self._scenario.name}: waited {timeout_s:g} s in vain for {what}")

    def _wait_or_fail(self, fact: Callable[[], bool], timeout_s: float) -> None:
        wait_for(lambda: fact() or self._failed() is not None, timeout_s)
        failed = self._failed()
        if failed is not None:
            raise failed

    def _failed(self) -> CannotRun | None:
        if self._faults:
            return self._faults[0]
        for member in self._members.values():
            if member.has_failed:
                return CannotRun(f"{self._scenario.name}: {member.why_failed()}")
        return None

    def _live(self) -> list[str]:
        return [member.name for member in self._members.values() if member.is_live]

    def _shared(self, at_least: int = 0) -> bool:
        """Whether the live members own all partitions, each one owner, and evenly."""
        track = OwnershipTrack({})
        for event in sorted(self._events.all(), key=lambda event: event.at_s):
            track.follow(event)
        live = self._live()
        sizes = [len(track.owned_by(name)) for name in live]
        if len(live) < at_least or not live or max(sizes) - min(sizes) > 1:
            return False
        return all(
            len(track.owners(partition)) == 1 for partition in range(self._scenario.partitions)
        )

    def _progressed(self, since_s: float) -> bool:
        """Whether each partition was read and committed beyond what was written after that time."""
        mark = DrillEvent(since_s, OF_DRILL, Kind.FAULT)
        events = [event for event in self._events.all() if event.kind is not Kind.FAULT]
        ordered = sorted([*events, mark], key=lambda event: event.at_s)
        (recovery,) = recoveries_of(ordered, self._scenario.partitions)
        return recovery.seconds is not None

    def _recovered(self) -> bool:
        ordered = sorted(self._events.all(), key=lambda event: event.at_s)
        recoveries = recoveries_of(ordered, self._scenario.partitions)
        return all(recovery.seconds is not None for recovery in recoveries)

    def _all_read(self) -> bool:
        events = self._events.all()
        written = {o for event in events if event.kind is Kind.WRITTEN for o in event.offsets}
        read = {o for event in events if event.kind is Kind.READ for o in event.offsets}
        return written <= read

    def _await_steps(self) -> None:
        for thread in self._running:
            self._await(
                lambda waited=thread: not waited.is_alive(),  # type: ignore[misc]  # bound now
                STEP_WITHIN_S + 3_600,
                "the steps to end",
            )
        if self._is_armed:
            self._await_crash()

    def _await_recovery(self) -> None:
        """As long as is promised: what is not reached then is for the judge."""
        self._wait_or_fail(
            lambda: self._recovered() and self._shared(),
            self._scenario.promises_for(self._library).recover_within_s,
        )

    def _await_all_read(self) -> None:
        promised_s = self._scenario.promises_for(self._library).recover_within_s
        self._wait_or_fail(self._all_read, promised_s if self._recovered() else SLACK_S)

    def _stop_members(self) -> None:
        live = [member for member in self._members.values() if member.is_live]
        for member in live:
            member.begin_stop()
        for member in live:
            if not member.finish_stop():
                member.close()

    def _result(self) -> DrillRun:
        scenario, events = self._scenario, self._events.all()
        measures = measure(events, scenario.partitions, self._silence_limits())
        return DrillRun(
            library=self._library,
            members=tuple(self._members),
            events=tuple(sorted(events, key=lambda event: event.at_s)),
            measures=measures,
            verdicts=tuple(judge(measures, scenario.promises_for(self._library))),
            began_s=min(event.at_s for event in events),
        )

    def _silence_limits(self) -> Mapping[str, float]:
        return {
            member.name: (member.session_timeout_ms - member.heartbeat_interval_ms) / 1000 - SLACK_S
            for member in self._scenario.members
        }

    # --- the steps

    def _do(self, step: DrillStep) -> None:
        match step.action:
            case "start":
                self._start_member(step.target)
            case "stop":
                member = self._members[step.target]
                member.begin_stop()
                if not member.finish_stop():
                    raise CannotRun(f"{self._scenario.name}: {step.target} does not stop")
            case "kill" if step.target == DAEMON:
                self._kill_daemon(step)
            case "restart":
                self._restart(step)
            case "wait":
                self._wait_step(step)
            case _:
                self._begin(step)

    def _wait_step(self, step: DrillStep) -> None:
        if step.for_s:
            deadline = time.monotonic() + step.for_s
            self._wait_or_fail(lambda: time.monotonic() >= deadline, step.for_s + 1)
            return
        facts = {"shared": self._shared, "read": self._all_read, "recovered": self._recovered}
        self._await(facts[step.until], STEP_WITHIN_S, f"step {step.number} ({step})")

    def _fault(self, step: DrillStep) -> None:
        self._events.note(OF_DRILL, Kind.FAULT, text=str(step))

    # The daemon.

    def _kill_daemon(self, step: DrillStep) -> None:
        assert self._daemon is not None
        if step.at:
            self._is_armed = True
            self._armed_step = step
            self._daemon.set_faults(replace(self._daemon.faults, crash_at=step.at))
            return
        self._fault(step)
        self._daemon.kill()

    def _await_crash(self) -> None:
        """Until the daemon has killed itself at the step that was named."""
        assert self._daemon is not None
        daemon, step = self._daemon, self._armed_step
        self._await(lambda: not daemon.is_running, STEP_WITHIN_S, f"the daemon to reach {step.at}")
        daemon.wait_ended(STEP_WITHIN_S)
        self._is_armed = False
        daemon.set_faults(replace(daemon.faults, crash_at=""))
        died_s = max(
            event.at_s
            for event in self._events.all()
            if event.source == OF_DAEMON and event.kind is Kind.KILLED
        )
        self._events.add(DrillEvent(died_s, OF_DRILL, Kind.FAULT, text=str(step)))

    def _restart(self, step: DrillStep) -> None:
        assert self._daemon is not None
        if self._is_armed:
            self._await_crash()
        if self._daemon.is_running:
            raise CannotRun(f"{self._scenario.name}: step {step.number}: the daemon still runs")
        if step.at:
            self._is_armed = True
            self._armed_step = step
            self._daemon.set_faults(replace(self._daemon.faults, crash_at=step.at))
        self._daemon.start(may_die=bool(step.at))

    # What lasts, or waits for a moment.

    def _begin(self, step: DrillStep) -> None:
        moment = step.moment
        gate = None if moment is None else self._proxy.gate(moment)
        begun = threading.Event()
        thread = threading.Thread(target=self._carry_out, args=(step, gate, begun), daemon=True)
        self._running.append(thread)
        thread.start()
        if gate is None:
            begun.wait(STEP_WITHIN_S)

    def _carry_out(self, step: DrillStep, gate: Gate | None, begun: threading.Event) -> None:
        try:
            if gate is not None and not self._reached(gate, step):
                return
            self._fault(step)
            undo = self._inject(step)
            begun.set()
            if undo is not None:
                self._over.wait(step.for_s)
                undo()
        finally:
            begun.set()
            if gate is not None:
                gate.release()

    def _reached(self, gate: Gate, step: DrillStep) -> bool:
        deadline = time.monotonic() + STEP_WITHIN_S
        while not gate.reached.wait(0.1):
            if self._over.is_set():
                return False
            if time.monotonic() > deadline:
                words = f"step {step.number}: {step.at!r} did not come within {STEP_WITHIN_S:g} s"
                self._faults.append(CannotRun(f"{self._scenario.name}: {words}"))
                return False
        return True

    def _inject(self, step: DrillStep) -> Callable[[], None] | None:
        """Begin; what ends it, if it lasts."""
        match step.action:
            case "kill":
                self._members[step.target].kill()
                return None
            case "stall" if step.target == DAEMON:
                assert self._daemon is not None
                self._daemon.stall()
                return self._daemon.resume
            case "stall":
                member = self._members[step.target]
                member.stall()
                return member.resume
            case "disk":
                return self._inject_disk(step)
            case _:
                return self._inject_cut(step)

    def _inject_disk(self, step: DrillStep) -> Callable[[], None]:
        assert self._daemon is not None
        daemon = self._daemon
        new = replace(daemon.faults, sync_delay_ms=step.delay_ms, is_full=step.is_full)
        daemon.set_faults(new)
        self._events.note(OF_DAEMON, Kind.DISK_FAULT, text=str(step))

        def repair() -> None:
            daemon.set_faults(replace(daemon.faults, sync_delay_ms=0.0, is_full=False))
            self._events.note(OF_DAEMON, Kind.DISK_SOUND)

        return repair

    def _inject_cut(self, step: DrillStep) -> Callable[[], None]:
        names = [*self._members] if step.target == ALL_MEMBERS else [step.target]
        self._proxy.cut(step.target, step.mode)
        for name in names:
            self._events.note(name, Kind.CUT)

        def heal() -> None:
            for name in names:
                self._events.note(name, Kind.HEALED)
            self._proxy.heal(step.target)

        return heal
