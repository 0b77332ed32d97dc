"""Register model: what a single, correct memory would answer for committed offsets.

Each (group, partition) is a register that many clients write and read at once. A write lasts from
the moment it is handled to its acknowledgement; one without an acknowledgement may have happened or
not, at any time. A value may be read if no acknowledged write began after its own was over, and if
it was not refused. Whatever was read counts as acknowledged from then on: nobody may see it undone.
"""

from collections.abc import ItemsView
from dataclasses import dataclass, field

from protocol.names import GroupId
from tests.simulator.sim import Broken

Key = tuple[GroupId, int]

NOTHING = -1
"""What a register says to which nothing was written."""


@dataclass(slots=True)
class Register:
    key: Key
    over: dict[int, int | None] = field(default_factory=dict)  # value -> step of its end, if known
    begun: dict[int, int] = field(default_factory=dict)
    refused: set[int] = field(default_factory=set)
    floor: int = -1
    """When the newest acknowledged write began: what was over before that is history."""

    def end(self, value: int, step: int) -> None:
        if self.over[value] is None:
            self.over[value] = step
        self.floor = max(self.floor, self.begun[value])

    def judge(self, value: int) -> None:
        if value == NOTHING:
            if self.floor >= 0:
                raise Broken(f"an acknowledged commit for {self.key} is gone")
            return
        if value not in self.over:
            raise Broken(f"nobody ever committed {value} for {self.key}")
        if value in self.refused:
            raise Broken(f"{value} for {self.key} was refused, and is there")
        over = self.over[value]
        if over is not None and over < self.floor:
            raise Broken(f"{value} for {self.key} is back, which a later commit had replaced")


class Registers:
    def __init__(self) -> None:
        self._registers: dict[Key, Register] = {}

    def _at(self, key: Key) -> Register:
        register = self._registers.get(key)
        if register is None:
            register = self._registers[key] = Register(key)
        return register

    def items(self) -> ItemsView[Key, Register]:
        return self._registers.items()

    def begin(self, key: Key, value: int, step: int) -> None:
        register = self._at(key)
        register.over[value] = None
        register.begun[value] = step

    def acknowledge(self, key: Key, value: int, step: int) -> None:
        self._at(key).end(value, step)

    def refuse(self, key: Key, value: int) -> None:
        self._at(key).refused.add(value)

    def observe(self, key: Key, value: int, step: int) -> None:
        if value != NOTHING:
            self._at(key).end(value, step)

    def judge(self, key: Key, value: int) -> None:
        self._at(key).judge(value)
