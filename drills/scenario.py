"""Scenario: what a drill does, read from a TOML file; every mistake in it is one line.

A scenario has a group with members, a load of records, steps, and promises (docs/drills.md has
every key). All values are checked when the file is read, so that a drill does not stop half way.
"""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, TypeVar

from msgspec import Struct

from config.crash_steps import LOADING, Step
from drills.moments import Moment, NoMoment
from seams.operator_error import WrongInput
from storage.drill_faults import DiskStep

T = TypeVar("T")

DAEMON: Final = "daemon"
ALL_MEMBERS: Final = "all"
PROTOCOLS: Final = ("classic", "consumer")
CRASH_STEPS: Final = (*map(str, Step), *map(str, DiskStep), LOADING)
ACTIONS: Final = ("start", "stop", "kill", "restart", "stall", "disk", "cut", "wait")
CUT_MODES: Final = ("silent", "reset")
WAITS: Final = ("shared", "read", "recovered")
NAME_CHARACTERS_MAX: Final = 40
DRILL_MEMBERS_MAX: Final = 50
PARTITIONS_MAX: Final = 200
RECORDS_PER_SECOND_MAX: Final = 5_000


class ScenarioError(WrongInput):
    """The scenario cannot be used; the message names the file, the place and the mistake."""


class MemberSettings(Struct, frozen=True):
    """One client process. Times in milliseconds, in Kafka's own keys."""

    name: str
    session_timeout_ms: int
    heartbeat_interval_ms: int
    rebalance_timeout_ms: int


class DrillStep(Struct, frozen=True):
    """One action. Only the fields that the action has are set; see `ACTIONS`."""

    action: str
    target: str = ""
    at: str = ""
    for_s: float = 0.0
    mode: str = ""
    delay_ms: float = 0.0
    is_full: bool = False
    until: str = ""
    number: int = 0

    @property
    def moment(self) -> Moment | None:
        """Of a member's step: which request or answer it waits for."""
        if not self.at or self.target == DAEMON:
            return None
        return Moment.parse(self.at, self.target)

    def __str__(self) -> str:
        words = [self.action, self.target, f"at {self.at}" if self.at else ""]
        words += [f"for {self.for_s:g} s" if self.for_s else "", self.mode]
        words += [f"delay {self.delay_ms:g} ms" if self.delay_ms else "", "full" * self.is_full]
        words += [f"until {self.until}" if self.until else ""]
        return " ".join(filter(None, words))


class Promises(Struct, frozen=True):
    """Limits of what may happen; None: no limit. Seconds and counts."""

    recover_within_s: float = 60.0
    records_lost_max: int | None = 0
    commits_lost_max: int | None = 0
    ownership_overlaps_max: int | None = 0
    records_read_twice_max: int | None = None
    rebalances_min: int | None = None
    rebalances_max: int | None = None


class Scenario(Struct, frozen=True):
    name: str
    shows: str
    file: str
    protocol: str
    assignor: str
    members: tuple[MemberSettings, ...]
    """The first members, and those that a step starts; `initial` are the first ones."""
    initial: tuple[str, ...]
    partitions: int
    records_per_s: int
    daemon: tuple[tuple[str, str], ...]
    """Properties of the daemon that the drill starts."""
    steps: tuple[DrillStep, ...]
    promises: Promises
    promises_of: tuple[tuple[str, Promises], ...] = ()
    """Promises for one library, which replace those for all."""

    def promises_for(self, library: str) -> Promises:
        return dict(self.promises_of).get(library, self.promises)

    def member(self, name: str) -> MemberSettings:
        return next(member for member in self.members if member.name == name)

    def daemon_step(self) -> DrillStep | None:
        """The first step that needs a daemon of the drill's own; None: any server will do."""
        for step in self.steps:
            needs = step.target == DAEMON or step.action in ("restart", "disk")
            if needs:
                return step
        return None


_GROUP_KEYS: Final = {
    "protocol": str,
    "assignor": str,
    "members": (int, list),
    "partitions": int,
    "records_per_s": int,
    "session_timeout_ms": int,
    "heartbeat_interval_ms": int,
    "rebalance_timeout_ms": int,
}
_MEMBER_KEYS: Final = {
    "session_timeout_ms": int,
    "heartbeat_interval_ms": int,
    "rebalance_timeout_ms": int,
}
_STEP_KEYS: Final[Mapping[str, Mapping[str, object]]] = {
    "start": {"member": str},
    "stop": {"member": str},
    "kill": {"target": str, "at": str},
    "restart": {"at": str},
    "stall": {"target": str, "for_s": float, "at": str},
    "disk": {"for_s": float, "delay_ms": float, "full": bool},
    "cut": {"target": str, "for_s": float, "mode": str, "at": str},
    "wait": {"for_s": float, "until": str},
}
_PROMISE_KEYS: Final = {
    "recover_within_s": float,
    "records_lost_max": int,
    "commits_lost_max": int,
    "ownership_overlaps_max": int,
    "records_read_twice_max": int,
    "rebalances_min": int,
    "rebalances_max": int,
}


def read_scenario(path: Path) -> Scenario:
    """Raises ScenarioError."""
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError:
        raise ScenarioError(f"{path}: not UTF-8") from None
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror}") from None
    return parse_scenario(text, str(path))


def parse_scenario(text: str, file: str) -> Scenario:
    """Raises ScenarioError. `file` is what its messages name."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{file}: {error}") from None
    return _Reader(file).scenario(table)


class _Reader:
    """Checks tables; every refusal begins with the file."""

    def __init__(self, file: str) -> None:
        self._file = file

    def _refuse(self, words: str) -> ScenarioError:
        return ScenarioError(f"{self._file}: {words}")

    def _known(self, table: Mapping[str, object], known: Iterable[str], place: str) -> None:
        for key in table:
            if key not in known:
                names = ", ".join(known)
                raise self._refuse(f"{place} has no key {key!r}; it has: {names}")

    def _typed(self, table: Mapping[str, object], kinds: Mapping[str, object], place: str) -> None:
        self._known(table, kinds, place)
        for key, value in table.items():
            kind = kinds[key]
            fits = (
                isinstance(value, int | float) and not isinstance(value, bool)
                if kind is float
                else isinstance(value, bool)
                if kind is bool
                else isinstance(value, kind) and not isinstance(value, bool)  # type: ignore[arg-type]  # types by name
            )
            if not fits:
                wanted = (
                    "a number" if kind is float else _TYPE_NAMES.get(kind, "a number or a list")
                )
                raise self._refuse(f"{place}.{key} must be {wanted}, not {value!r}")

    def _within(self, value: float, low: float, high: float, place: str) -> None:
        if not low <= value <= high:
            raise self._refuse(f"{place} must be from {low:g} to {high:g}, not {value:g}")

    def _word(self, value: object, words: Iterable[str], place: str) -> str:
        if value not in tuple(words):
            raise self._refuse(f"{place} must be one of {', '.join(words)}, not {value!r}")
        return str(value)

    def _table(self, value: object, place: str) -> dict[str, object]:
        if not isinstance(value, dict):
            raise self._refuse(f"{place} must be a table, written [{place}]")
        return value

    # --- the parts

    def scenario(self, table: Mapping[str, object]) -> Scenario:
        self._known(
            table, ("name", "shows", "group", "member", "daemon", "step", "promises"), "the file"
        )
        name = table.get("name", Path(self._file).stem)
        shows = table.get("shows", "")
        if not isinstance(name, str) or not name or len(name) > NAME_CHARACTERS_MAX:
            raise self._refuse(f"name must be a text of 1 to {NAME_CHARACTERS_MAX} characters")
        if not isinstance(shows, str):
            raise self._refuse(f"shows must be a text, not {shows!r}")
        group = self._table(table.get("group", {}), "group")
        self._typed(group, _GROUP_KEYS, "group")
        initial = self._initial(group.get("members", 3))
        steps = self._steps(table.get("step", []), initial)
        started = [step.target for step in steps if step.action == "start"]
        names = (*initial, *started)
        if len(set(names)) < len(names):
            raise self._refuse("a member is started twice: each needs a name of its own")
        if len(names) > DRILL_MEMBERS_MAX:
            raise self._refuse(f"{len(names)} members: at most {DRILL_MEMBERS_MAX} are possible")
        promises, promises_of = self._all_promises(table.get("promises", {}))
        return Scenario(
            name=name,
            shows=" ".join(shows.split()),
            file=self._file,
            protocol=self._word(group.get("protocol", "classic"), PROTOCOLS, "group.protocol"),
            assignor=str(group.get("assignor", "range")),
            members=self._members(names, group, table.get("member", {})),
            initial=initial,
            partitions=self._whole(group, "partitions", len(initial), PARTITIONS_MAX),
            records_per_s=self._whole(group, "records_per_s", 100, RECORDS_PER_SECOND_MAX),
            daemon=self._properties(table.get("daemon", {})),
            steps=steps,
            promises=promises,
            promises_of=promises_of,
        )

    def _whole(self, group: Mapping[str, object], key: str, default: int, high: int) -> int:
        value = group.get(key, default)
        assert isinstance(value, int)
        self._within(value, 1, high, f"group.{key}")
        return value

    def _initial(self, members: object) -> tuple[str, ...]:
        if isinstance(members, int):
            self._within(members, 1, DRILL_MEMBERS_MAX, "group.members")
            return tuple(f"m{number}" for number in range(1, members + 1))
        assert isinstance(members, list)
        if not members or not all(isinstance(name, str) and _is_name(name) for name in members):
            raise self._refuse("group.members must be a number, or a list of names")
        return tuple(members)

    def _members(
        self, names: tuple[str, ...], group: Mapping[str, object], own: object
    ) -> tuple[MemberSettings, ...]:
        tables = self._table(own, "member")
        self._known(tables, names, "member")
        found = []
        for name in names:
            table = self._table(tables.get(name, {}), f"member.{name}")
            self._typed(table, _MEMBER_KEYS, f"member.{name}")
            values = {
                **_MEMBER_DEFAULTS,
                **{k: group[k] for k in _MEMBER_KEYS if k in group},
                **table,
            }
            for key, value in values.items():
                assert isinstance(value, int)
                self._within(value, 1, 3_600_000, f"member.{name}.{key}")
            found.append(MemberSettings(name, **values))  # type: ignore[arg-type]  # checked above
        return tuple(found)

    def _properties(self, table: object) -> tuple[tuple[str, str], ...]:
        properties: list[tuple[str, str]] = []

        def walk(prefix: str, tables: Mapping[str, object]) -> None:
            for key, value in tables.items():
                if isinstance(value, dict):
                    walk(f"{prefix}{key}.", value)
                elif isinstance(value, bool):
                    properties.append((prefix + key, str(value).lower()))
                elif isinstance(value, str | int | float):
                    properties.append((prefix + key, str(value)))
                else:
                    raise self._refuse(f"daemon.{prefix}{key} must be a text or a number")

        walk("", self._table(table, "daemon"))
        return tuple(properties)

    def _all_promises(self, table: object) -> tuple[Promises, tuple[tuple[str, Promises], ...]]:
        given = self._table(table, "promises")
        own = {key: value for key, value in given.items() if isinstance(value, dict)}
        common = {key: value for key, value in given.items() if key not in own}
        promises = self._promises(common, "promises")
        return promises, tuple(
            (library, self._promises({**common, **values}, f"promises.{library}"))
            for library, values in own.items()
        )

    def _promises(self, table: Mapping[str, object], place: str) -> Promises:
        self._typed(table, _PROMISE_KEYS, place)
        for key, value in table.items():
            assert isinstance(value, int | float)
            self._within(value, 0, 1_000_000, f"{place}.{key}")
        return Promises(**table)  # type: ignore[arg-type]  # checked above

    # --- the steps

    def _steps(self, given: object, initial: tuple[str, ...]) -> tuple[DrillStep, ...]:
        if not isinstance(given, list) or not given:
            raise self._refuse("there are no steps: write at least one [[step]]")
        members = set(initial)
        steps: list[DrillStep] = []
        for number, table in enumerate(given, start=1):
            step = self._step(self._table(table, "[step]"), f"step {number}", number)
            self._check_target(step, members, f"step {number}")
            if step.action == "start":
                members.add(step.target)
            steps.append(step)
        return tuple(steps)

    def _step(self, table: dict[str, object], place: str, number: int) -> DrillStep:
        if "do" not in table:
            raise self._refuse(f"{place} has no `do`: {', '.join(ACTIONS)}")
        action = self._word(table["do"], ACTIONS, f"{place}.do")
        values = {key: value for key, value in table.items() if key != "do"}
        self._typed(values, _STEP_KEYS[action], f"{place} ({action})")
        seconds = float(str(values.get("for_s", 0)))
        self._within(seconds, 0, 3_600, f"{place}.for_s")
        target = str(values.get("member", values.get("target", "")))
        until = values.get("until", "")
        step = DrillStep(
            action=action,
            target=target,
            at=str(values.get("at", "")),
            for_s=seconds,
            mode=self._word(values.get("mode", "silent"), CUT_MODES, f"{place}.mode")
            if action == "cut"
            else "",
            delay_ms=float(str(values.get("delay_ms", 0))),
            is_full=values.get("full") is True,
            until=self._word(until, WAITS, f"{place}.until") if until else "",
            number=number,
        )
        self._check_values(step, place)
        return step

    def _check_values(self, step: DrillStep, place: str) -> None:
        if step.action in ("stall", "disk", "cut") and not step.for_s:
            raise self._refuse(f"{place} ({step.action}) needs for_s, in seconds")
        if step.action == "wait" and bool(step.for_s) == bool(step.until):
            raise self._refuse(f"{place} (wait) needs either for_s or until")
        if step.action == "disk" and bool(step.delay_ms) == step.is_full:
            raise self._refuse(f"{place} (disk) needs either delay_ms or full = true")
        self._within(step.delay_ms, 0, 60_000, f"{place}.delay_ms")
        if step.action in ("start", "stop") and not _is_name(step.target):
            raise self._refuse(f'{place} ({step.action}) needs a member, such as "m4"')
        if step.action in ("kill", "stall", "cut") and not step.target:
            raise self._refuse(f"{place} ({step.action}) needs a target: a member, or {DAEMON}")

    def _check_target(self, step: DrillStep, members: set[str], place: str) -> None:
        if step.action == "restart" or (step.action == "kill" and step.target == DAEMON):
            if step.at:
                self._word(step.at, CRASH_STEPS, f"{place}.at")
            return
        if step.action == "start":
            if step.target in (DAEMON, ALL_MEMBERS):
                raise self._refuse(f"{place}: no member may be called {step.target!r}")
            return
        if not step.target:
            return
        known = {*members}
        if step.action == "stall":
            known.add(DAEMON)
        if step.action == "cut":
            known.add(ALL_MEMBERS)
        if step.target not in known:
            names = ", ".join(sorted(known))
            raise self._refuse(f"{place} ({step.action}): {step.target!r} is none of {names}")
        if step.at and step.target == DAEMON:
            raise self._refuse(f"{place} (stall): a stall of the daemon has no `at`")
        try:
            moment = step.moment
        except NoMoment as error:
            raise self._refuse(f"{place}.at: {error}") from None
        if moment is not None and moment.member not in members:
            raise self._refuse(f"{place}.at: {moment.member!r} is no member")


_MEMBER_DEFAULTS: Final = {
    "session_timeout_ms": 30_000,
    "heartbeat_interval_ms": 300,
    "rebalance_timeout_ms": 60_000,
}
_TYPE_NAMES: Final[Mapping[object, str]] = {
    str: "a text",
    int: "a whole number",
    bool: "true or false",
}


def _is_name(name: str) -> bool:
    return 0 < len(name) <= NAME_CHARACTERS_MAX and all(c.isalnum() or c in "-_" for c in name)
