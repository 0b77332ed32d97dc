"""Log lines of consumer groups: they have Kafka's words, and the counters agree with them."""

import io
import json

import pytest

from broker.observe.observer import Observer, open_log
from coordinator.consumer.events import TargetAssignmentRefused
from protocol.names import GroupId
from tests.consumer_client import ConsumerClient, until_stable
from tests.history.history_world import HistoryWorld


class Observed:
    def __init__(self) -> None:
        self.world = HistoryWorld()
        self.world.given_topics(t=4)
        self.stream = io.StringIO()
        self.observer = Observer(open_log("json", "info", self.stream))
        self._seen = 0

    def lines(self) -> list[dict[str, object]]:
        """Those of what has happened since the last call."""
        for event in self.world.events[self._seen :]:
            self.observer(event)
        self._seen = len(self.world.events)
        found = [json.loads(line) for line in self.stream.getvalue().splitlines()]
        self.stream.truncate(0)
        self.stream.seek(0)
        return found

    def words(self) -> list[object]:
        return [line["event"] for line in self.lines()]


@pytest.fixture
def observed() -> Observed:
    return Observed()


def test_a_join_has_the_lines_that_kafka_writes(observed: Observed) -> None:
    ConsumerClient(observed.world, "a", regex="t.*", topics=("t",)).join()
    lines: dict[object, dict[str, object]] = {}
    for line in observed.lines():
        lines.setdefault(line["event"], line)
    joined = lines["[GroupId g] Member a joins the consumer group using the consumer protocol."]
    assert (joined["group_id"], joined["member_id"], joined["regex"]) == ("g", "a", "t.*")
    (bumped,) = (line for words, line in lines.items() if "Bumped group epoch to 2" in str(words))
    assert bumped["event"] == (
        f"[GroupId g] Bumped group epoch to 2 with metadata hash {bumped['metadata_hash']}."
    )
    assert (bumped["causes"], bumped["members"]) == (["member_joined"], ["a"])
    assert (
        "[GroupId g] Computed a new target assignment for epoch 2 with 'uniform' assignor in 0ms."
    ) in lines
    assert "Scanned topics to refresh regular expressions" in lines


def test_a_silent_member_is_fenced_in_kafkas_words(observed: Observed) -> None:
    a, b = (ConsumerClient(observed.world, name) for name in "ab")
    a.join()
    b.join()
    until_stable(a, b)
    a.leave()
    assert "[GroupId g] Member a left the consumer group." in observed.words()
    observed.world.advance(45_000)
    fenced = "[GroupId g] Member b fenced from the group because the member session expired."
    assert fenced in observed.words()
    assert b.beat().error_code
    counters = observed.observer.counters
    assert counters.members_added == 2
    assert counters.members_removed == {"left": 1, "session_expired": 1}
    assert counters.group_epochs_bumped["member_joined"] == 2


def test_a_static_member_leaves_for_a_while(observed: Observed) -> None:
    a = ConsumerClient(observed.world, "a", instance_id="i")
    a.join()
    a.leave(for_a_while=True)
    assert observed.words()[-1] == (
        "[GroupId g] Static member a with instance id i temporarily left the consumer group."
    )
    a.member_id = "a2"
    a.join()
    assert (
        "[GroupId g] Static member with instance id i re-joins the consumer group using the "
        "consumer protocol. Created a new member a2 to replace the existing member a."
    ) in observed.words()
    assert observed.observer.counters.static_members_replaced == 1


def test_rebalances_are_counted_from_the_history(observed: Observed) -> None:
    world = observed.world
    a, b = ConsumerClient(world, "a"), ConsumerClient(world, "b")
    a.join()
    world.advance(10_000)
    b.join()
    recorder = world.recorded.recorder
    assert recorder.oldest_reconciliation_ms() == world.now.mono_ms
    until_stable(a, b)
    assert recorder.oldest_reconciliation_ms() is None
    counters = observed.observer.counters
    for entry in world.history:
        counters.count_entry(entry)
    assert counters.rebalances_begun == counters.rebalances_completed == {"member_joined": 2}
    assert sum(counters.rebalance_seconds.counts) == 2


def test_an_assignor_that_keeps_failing_does_not_flood_the_log(observed: Observed) -> None:
    for number in range(64):
        refused = TargetAssignmentRefused(GroupId("g"), 1_000 + number, 2, "mine", "KeyError")
        observed.observer(refused)
    lines = observed.lines()
    assert [line.get("times") for line in lines] == [None, 2, 4, 8, 16, 32, 64]
    assert {line["event"] for line in lines} == {"Failed to compute a new target assignment"}
    assert observed.observer.counters.target_assignments_refused == 64
