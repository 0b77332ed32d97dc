"""Whatever happens in whatever order: each op yields one command, or none if it was cancelled."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from purgatory.purgatory import Purgatory
from tests.purgatory.ops import ScriptedOp

KEYS = st.sampled_from("klmn")


class PurgatoryMachine(RuleBasedStateMachine):
    """A plain set of ops stands beside the purgatory, and both must agree."""

    parked = Bundle("parked")

    def __init__(self) -> None:
        super().__init__()
        self.purgatory: Purgatory[str] = Purgatory()
        self.waiting: set[ScriptedOp] = set()
        self.said: list[str] = []
        self.now_ms = 0
        self.made = 0

    def hear(self, commands: list[str], expected: set[str]) -> None:
        assert set(commands) == expected
        assert len(commands) == len(expected)
        self.said.extend(commands)

    @rule(target=parked, keys=st.lists(KEYS, min_size=1, max_size=3), wait_ms=st.integers(0, 50))
    def park(self, keys: list[str], wait_ms: int) -> ScriptedOp:
        self.made += 1
        op = ScriptedOp(f"op{self.made}", tuple(keys), self.now_ms + wait_ms)
        assert self.purgatory.try_complete_else_watch(op) is None
        self.waiting.add(op)
        return op

    @rule(op=consumes(parked))
    def make_ready(self, op: ScriptedOp) -> None:
        op.ready = True

    @rule(key=KEYS)
    def check_key(self, key: str) -> None:
        done = {op for op in self.waiting if op.ready and key in op.keys}
        self.hear(self.purgatory.check_and_complete(key), {f"{op} completed" for op in done})
        self.waiting -= done

    @rule(passed_ms=st.integers(0, 30))
    def let_time_pass(self, passed_ms: int) -> None:
        self.now_ms += passed_ms
        due = {op for op in self.waiting if op.deadline_ms <= self.now_ms}
        commands = self.purgatory.expire_due(self.now_ms)
        deadlines = {f"{op} expired": op.deadline_ms for op in due}
        self.hear(commands, set(deadlines))
        assert [deadlines[each] for each in commands] == sorted(deadlines.values())
        self.waiting -= due

    @rule(key=KEYS)
    def cancel(self, key: str) -> None:
        gone = {op for op in self.waiting if key in op.keys}
        assert self.purgatory.cancel(key) == len(gone)
        self.waiting -= gone

    @rule(target=parked, key=KEYS, more=st.sets(KEYS, max_size=1), wait_ms=st.integers(0, 50))
    def replace(self, key: str, more: set[str], wait_ms: int) -> ScriptedOp:
        self.made += 1
        op = ScriptedOp(f"op{self.made}", (key, *more), self.now_ms + wait_ms)
        self.waiting -= {each for each in self.waiting if key in each.keys}
        self.purgatory.replace(key, op)
        self.waiting.add(op)
        return op

    @invariant()
    def tables_agree(self) -> None:
        self.purgatory.check()
        assert self.purgatory.delayed == len(self.waiting)
        assert self.purgatory.watched == sum(len(set(op.keys)) for op in self.waiting)
        nearest = min((op.deadline_ms for op in self.waiting), default=None)
        next_ms = self.purgatory.next_deadline_ms
        assert (next_ms is None) is (nearest is None)
        assert next_ms is None or nearest is None or next_ms <= nearest

    @invariant()
    def nobody_speaks_twice(self) -> None:
        names = [said.split()[0] for said in self.said]
        assert len(names) == len(set(names))


TestPurgatory = PurgatoryMachine.TestCase
TestPurgatory.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
