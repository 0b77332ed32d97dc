"""Verdicts as numbers: counted by kind for all groups, by group for those that are shown."""

from collections.abc import Iterator
from types import SimpleNamespace

from broker.lag.verdict_watch import ActiveVerdict
from broker.metrics import verdicts
from history.verdicts.model import VerdictKind


class FakeWatch:
    groups_watched = 3
    forgotten = 1
    found: dict[str, int]

    def __init__(self, *standing: tuple[str, VerdictKind]) -> None:
        self.found = {kind.value: 2 for _, kind in standing}
        self._active = standing

    def counts(self) -> dict[str, int]:
        kinds = [kind for _, kind in self._active]
        return {kind.value: kinds.count(kind) for kind in VerdictKind}

    def active(self) -> Iterator[ActiveVerdict]:
        for group_id, kind in self._active:
            verdict = SimpleNamespace(group_id=group_id, kind=kind)
            yield ActiveVerdict(verdict, 0)  # type: ignore[arg-type]


def test_a_verdict_on_two_members_is_one_series_with_the_value_two() -> None:
    first, second, *_ = VerdictKind
    watch = FakeWatch(("g", first), ("g", first), ("g", second), ("hidden", second))
    labelled = SimpleNamespace(groups=[SimpleNamespace(group_id="g", quoted='"g"')])
    of_producers = SimpleNamespace(counts=dict, found=0)
    daemon = SimpleNamespace(verdicts=watch, transaction_watch=of_producers)
    lines = [
        line
        for portion in verdicts.collect(daemon, labelled)  # type: ignore[arg-type]
        if portion is not None
        for line in portion.lines
    ]
    of_groups = {line for line in lines if line.startswith("group_coordinator_group_troubles")}
    assert of_groups == {
        f'group_coordinator_group_troubles{{group="g",kind="{first.value}"}} 2\n',
        f'group_coordinator_group_troubles{{group="g",kind="{second.value}"}} 1\n',
    }
    assert f'group_coordinator_troubles{{kind="{second.value}"}} 2\n' in lines
    assert f'group_coordinator_troubles_found_total{{kind="{first.value}"}} 2\n' in lines
    # Every kind is there before it is found.
    assert sum(line.startswith("group_coordinator_troubles{") for line in lines) == len(VerdictKind)
