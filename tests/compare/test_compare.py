"""Comparison with Kafka: every scenario is played at the daemon, and must read like the recording.

The scenarios of one profile are played at one daemon, side by side: most of their time is spent
waiting for timers. The recordings in `golden/` are Kafka's; see `record.py`.
"""

import difflib
import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.compare import logged, recordings
from tests.compare.catalogue import scenarios
from tests.compare.differences import RULES, as_ours, changes, exceptions
from tests.compare.script import Scenario, perform
from tests.compare.servers import (
    PROFILES,
    RESTARTED,
    TRANSACTIONAL,
    Broker,
    SharedRestart,
    rollcall,
)
from tests.compare.stored_transactions import stored_by
from tests.compare.warm_up import until_serving

AT_ONCE = 12  # most of them wait for a timer

WITH_SLOW_ONES: Final = "COMPARE_SLOW" in os.environ

COMPARED: Final = [
    name for name, found in scenarios().items() if WITH_SLOW_ONES or not found.is_slow
]

LOGGING: Final = [
    name
    for name in COMPARED
    if logged.is_compared(scenarios()[name])
    and name not in logged.NOT_COMPARED
    and name not in exceptions()
]

pytestmark = pytest.mark.xdist_group("compare")  # one process plays them all


class Outcome(NamedTuple):
    """What a scenario has come to at our daemon."""

    transcript: list[str]
    stored: list[str]
    logged: list[str]


def play(scenario: Scenario, broker: Broker | SharedRestart, folder: Path) -> Outcome:
    try:
        transcript, topics = perform(scenario, broker)
    except BaseException:
        if isinstance(broker, SharedRestart):
            broker.give_up()
        raise
    log = folder / "stderr.log"
    lines = logged.of_rollcall(scenario, log, log.stat().st_size)
    return Outcome(transcript, stored_by(scenario, folder / "data", topics), lines)


@pytest.fixture(scope="module")
def outcome_of(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[Scenario], Outcome]]:
    """Play all scenarios that were chosen, when the first of their profile is asked for."""
    chosen = {
        name: scenarios()[name]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.module is request.module
        if (name := str(getattr(getattr(item, "callspec", None), "params", {}).get("name")))
        in scenarios()
    }
    playing: dict[str, Future[Outcome]] = {}
    brokers: list[ExitStack] = []
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(AT_ONCE))

        def outcome(scenario: Scenario) -> Outcome:
            if scenario.name not in playing:
                play_profile(scenario.profile)
            return playing[scenario.name].result()

        def play_profile(profile: str) -> None:
            folder: Path = tmp_path_factory.mktemp("compare")
            brokers.append(ExitStack())
            broker = brokers[-1].enter_context(rollcall(profile, folder))
            until_serving(broker.port, transactions=profile in TRANSACTIONAL)
            due = [scenario for scenario in chosen.values() if scenario.profile == profile]
            if profile in RESTARTED:  # all of them wait for the one restart
                crowd = stack.enter_context(ThreadPoolExecutor(len(due)))
                shared = SharedRestart(broker, len(due))
                playing.update({s.name: crowd.submit(play, s, shared, folder) for s in due})
            else:
                playing.update({s.name: pool.submit(play, s, broker, folder) for s in due})

        try:
            yield outcome
        finally:
            list(pool.map(ExitStack.close, brokers))


@pytest.mark.parametrize("name", COMPARED)
def test_a_client_cannot_distinguish_us_from_kafka(
    name: str, outcome_of: Callable[[Scenario], Outcome]
) -> None:
    scenario = scenarios()[name]
    kafkas = recordings.transcripts(scenario.chapter).get(name)
    assert kafkas, "not recorded: run `make golden`"
    ours = outcome_of(scenario).transcript
    if name in exceptions():
        assert changes(kafkas, ours) == exceptions()[name].changes
        return
    difference = difflib.unified_diff(as_ours(kafkas), ours, "kafka", "rollcall", lineterm="")
    assert not (text := "\n".join(difference)), text


STORED_OTHERWISE = {
    "the_last_of_two_commits_in_one_request_stands": "two commits of one partition in a request: "
    "Kafka writes both of them down, we write the one that stands",
    "a_consumer_without_topics_joins_before_the_next_assignment": "other members get partitions",
    "an_unknown_classic_member_joins_an_empty_consumer_group": "Kafka's epochs begin again",
    "an_offset_with_its_own_retention_expires": "the timer that looks for expired offsets may come "
    "between the two commits, at either broker",
    "topics_of_coordinators_take_no_records": "we refuse before a partition is added",
}
"""The newest commit of each partition is the same all the same."""

STORED_LATER = {
    "a_new_group_waits_no_longer_than_its_members_would": "nobody syncs after the last answer, so "
    "the members go after their 100 ms: on a slow machine before the log is read",
}
"""What time alone adds after the end of the script is not compared."""


@pytest.mark.parametrize("name", COMPARED)
def test_the_log_says_what_kafkas_says(
    name: str, outcome_of: Callable[[Scenario], Outcome]
) -> None:
    """Key by key and value by value; `stored.py` says what is taken for equal."""
    scenario = scenarios()[name]
    kafkas = recordings.transcripts(recordings.STORED + scenario.chapter).get(name, [])
    ours = outcome_of(scenario).stored
    if name in STORED_OTHERWISE:
        assert newest_commits(ours) == newest_commits(kafkas)
        return
    if name in STORED_LATER:
        ours = ours[: len(kafkas)]
    difference = difflib.unified_diff(kafkas, ours, "kafka", "rollcall", lineterm="")
    assert not (text := "\n".join(difference)), text


@pytest.mark.parametrize("name", LOGGING)
def test_the_log_for_people_has_kafkas_sentences(
    name: str, outcome_of: Callable[[Scenario], Outcome]
) -> None:
    """The same lines as Kafka's, sorted; `logged.py` says what is taken for equal."""
    scenario = scenarios()[name]
    kafkas = recordings.transcripts(recordings.LOGGED + scenario.chapter).get(name, [])
    ours = outcome_of(scenario).logged
    expected = logged.as_ours(kafkas)
    difference = difflib.unified_diff(expected, ours, "kafka", "rollcall", lineterm="")
    assert not (text := "\n".join(difference)), text


def newest_commits(lines: list[str]) -> dict[str, str]:
    """Key -> value of each partition."""
    return {
        key: value
        for key, _, value in (line.partition("} ") for line in lines)
        if key.startswith("OffsetCommit ")
    }


def test_every_profile_has_a_scenario_and_every_scenario_a_recording() -> None:
    assert {scenario.profile for scenario in scenarios().values()} == set(PROFILES)
    for scenario in scenarios().values():
        assert recordings.transcripts(scenario.chapter).get(scenario.name), scenario.name


def test_what_kafka_alone_logs_is_recorded() -> None:
    recorded = [
        line
        for scenario in scenarios().values()
        for line in recordings.transcripts(recordings.LOGGED + scenario.chapter).get(
            scenario.name, []
        )
    ]
    for own, reason in logged.KAFKA_ALONE.items():
        assert any(re.fullmatch(own, line) for line in recorded), reason
    assert set(logged.NOT_COMPARED) <= set(scenarios())


def test_every_deliberate_difference_is_one_and_has_a_reason() -> None:
    assert set(exceptions()) <= set(scenarios())
    for name, exceptional in exceptions().items():
        assert exceptional.changes, name
        assert len(exceptional.reason) > 20, name
    said = {
        line
        for scenario in scenarios().values()
        for line in recordings.transcripts(scenario.chapter)[scenario.name]
    }
    for rule in RULES:
        assert any(rule.kafka.fullmatch(line) for line in said), rule.reason
