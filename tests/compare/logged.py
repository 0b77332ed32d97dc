"""Logged lines: the sentences that a broker's log says about the groups of a scenario.

Kafka's are recorded in `golden/logged_*.txt` by record.py; our lines for people must say the same.
A line belongs to the scenario whose name is that of a group in it. What two brokers may choose
freely is shown by a sign: random ids, times, and the metadata hash, which depends on the topic's
id. Each line stands once, and they are sorted: steps may be logged in another order or again.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.compare.script import Scenario
from tests.compare.servers import RESTARTED

_KAFKAS_LINE: Final = re.compile(
    r"\[[^]]*\] (?P<level>[A-Z]+) org\.apache\.kafka\.coordinator\.group\."
    r"(?:classic\.)?(?:\w+Manager|GroupCoordinatorShard|ClassicGroup) - "
    r"(?:\[GroupCoordinator id=\d+[^]]*\] )?(?P<sentence>.*)"
)
_OUR_LINE: Final = re.compile(r"\S+Z \[(?P<level>\w+) *\] (?P<sentence>.*)")
_OUR_FIELD: Final = re.compile(r" (group_id|topic|log|subscription|request|partition|of)=")
"""Lines of our own words have their values as fields; Kafka's sentences have none of these."""

_CHAPTERS: Final = (
    *("commits", "consumer_", "groups", "heartbeat", "join", "leave", "limits"),
    *("sessions", "static_members", "sync"),
)

_FREE: Final = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "*"),
    (re.compile(r"(?<![\w.-])(?=[\w-]*[0-9A-Z])[\w-]{22}(?![\w-]|\.\w)"), "*"),  # Kafka's Uuid
    (re.compile(r"(?<=metadata hash )-?\d+"), "*"),
    (re.compile(r"=\[B@[0-9a-f]+"), ""),  # an array in Kafka's memory
    (re.compile(r"\bin \d+ms"), "in *ms"),
    (re.compile(r"\bin \d+ milliseconds"), "in * milliseconds"),
)


def is_compared(scenario: Scenario) -> bool:
    """Those about groups. A restart ends the broker's log."""
    return scenario.chapter.startswith(_CHAPTERS) and scenario.profile not in RESTARTED


def of_kafka(scenario: Scenario, log: Path, size: int | None = None) -> list[str]:
    """`size`: how much of the log there was when the scenario ended; all by default."""
    return _lines_of(scenario, _matches(_KAFKAS_LINE, log, size))


def of_rollcall(scenario: Scenario, log: Path, size: int | None = None) -> list[str]:
    return _lines_of(
        scenario,
        ((lv, text) for lv, text in _matches(_OUR_LINE, log, size) if not _OUR_FIELD.search(text)),
    )


def _matches(pattern: re.Pattern[str], log: Path, size: int | None) -> Iterator[tuple[str, str]]:
    with log.open("rb") as file:
        text = file.read(-1 if size is None else size).decode()
    for line in text.split("\n"):
        if match := pattern.fullmatch(line):
            yield match["level"].lower().replace("warning", "warn"), match["sentence"]


def _lines_of(scenario: Scenario, lines: Iterable[tuple[str, str]]) -> list[str]:
    group = re.compile(rf"(?<![\w.]){re.escape(scenario.name)}(?!\w)")
    own = (f"{level}: {group.sub('~', text)}" for level, text in lines if group.search(text))
    return sorted({_plain(line) for line in own})


def _plain(line: str) -> str:
    for pattern, sign in _FREE:
        line = pattern.sub(sign, line)
    return _A_MAP.sub(lambda match: f"{{{', '.join(sorted(match[1].split(', ')))}}}", line)


_A_MAP: Final = re.compile(r"\{([^}]*)\}")

KAFKA_ALONE: Final[Mapping[str, str]] = {
    r"warn: Sending empty assignment to member .*": "it follows from Setting empty assignments ...",
    r"info: Generated \d+ tombstone records .*": "one pass over a partition: we log each group",
    r"info: \[GroupId .*\] Scanned \d+ topics to refresh .*": "we log each regular expression",
    r"info: \[GroupId .*\] Dynamic member with .* joins the consumer group\. .*": "not kept",
    r"info: Cannot join the consumer group .*": "the client gets the reason",
}
"""Lines of Kafka that we do not have, and why."""

_AGAIN: Final = "Kafka says that a member joins when it changes its protocol"
_TOO_EARLY: Final = "Kafka says that a member joins before it refuses it"
NOT_COMPARED: Final[Mapping[str, str]] = {
    "a_consumer_becomes_a_classic_member_with_its_id": _AGAIN,
    "a_consumer_joins_while_classic_members_rejoin": _AGAIN,
    "a_dynamic_consumer_cannot_go_for_a_while": _TOO_EARLY,
    "a_group_is_upgraded_member_by_member": _AGAIN,
    "a_large_classic_group_is_not_upgraded": "Kafka converts it and fails to write the records",
    "a_member_upgrades_with_its_own_id": _AGAIN,
    "a_new_group_waits_no_longer_than_its_members_would": "after the script the members expire",
    "a_regular_expression_that_cannot_be_read_is_refused": _TOO_EARLY,
    "a_static_classic_member_of_a_consumer_group_returns": "Kafka names members as requests do",
    "a_static_consumer_becomes_classic_without_its_instance_id": _AGAIN,
    "a_static_consumer_leaves_for_good": "Kafka names members as requests do",
    "an_instance_id_of_another_member_is_fenced": "of a repeated line we write no. 1, 2, 4, 8 ...",
    "an_instance_id_that_is_in_use_is_refused": _TOO_EARLY,
    "an_unknown_classic_member_joins_an_empty_consumer_group": "Kafka's epochs begin again",
    "classic_joins_that_a_consumer_group_refuses": _TOO_EARLY,
    "groups_that_cannot_be_upgraded": "Kafka shows its parser's message",
    "who_leads_after_an_upgrade_and_a_downgrade": _AGAIN,
}
"""Scenarios that are logged otherwise on purpose, or because another thing differs."""


def as_ours(kafkas: Iterable[str]) -> list[str]:
    """What is left of Kafka's lines without those that are its own."""
    return [line for line in kafkas if not any(re.fullmatch(own, line) for own in KAFKA_ALONE)]
