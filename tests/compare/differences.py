"""Differences from Kafka: the intended ones, by scenario. docs/differences.md is for users.

Two kinds. A `Rule` rewrites a kind of line wherever Kafka says it. An exception belongs to one
scenario and is in `golden/deliberate.txt`: a reason, and the lines that differ, as `diff` shows
them. The comparison expects exactly these: one that has gone fails it as much as a new one.
"""

import difflib
import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final, NamedTuple

from protocol.names import ApiKey
from tests.compare.recordings import FOLDER


class Rule(NamedTuple):
    """A line of Kafka's that matches is `ours` in our transcripts; None: it is not there."""

    kafka: re.Pattern[str]
    ours: str | None
    reason: str


_SERVED: Final = "|".join(str(int(key)) for key in ApiKey)

RULES: Final = (
    Rule(
        re.compile(rf"  \.api_keys api_key=(?!({_SERVED}) ).*"),
        None,
        "what is not served is not offered: share and streams groups",
    ),
    Rule(
        re.compile(
            r"  \.(supported|finalized)_features name='(?!(metadata|group|transaction)\.version').*"
        ),
        None,
        "features that Kafka turns on are those of the requests above",
    ),
    Rule(
        re.compile(r"( +\.configs name='min\.insync\.replicas' .*)config_source=3 (.*)"),
        r"\1config_source=5 \2",
        "Kafka sets min.insync.replicas for its cluster as a part of eligible leader replicas; "
        "here it is a default like the others",
    ),
)


class Exceptional(NamedTuple):
    reason: str
    changes: tuple[str, ...]
    """Lines that only Kafka says, after a minus, and lines that only we say, after a plus."""


@cache
def exceptions() -> dict[str, Exceptional]:
    """Scenario -> how it differs, from `golden/deliberate.txt`."""
    found: dict[str, Exceptional] = {}
    for section in (FOLDER / "deliberate.txt").read_text().split("\n== ")[1:]:
        name, *lines = section.splitlines()
        reason = " ".join(line[2:] for line in lines if line.startswith("# "))
        changes = tuple(line for line in lines if line[:1] in ("+", "-"))
        found[name] = Exceptional(reason, changes)
    return found


def as_ours(kafkas: Iterable[str]) -> list[str]:
    """Kafka's transcript after the rules."""
    lines = []
    for line in kafkas:
        kept: str | None = line
        for rule in RULES:
            match = rule.kafka.fullmatch(line)
            if match is not None:
                kept = None if rule.ours is None else match.expand(rule.ours)
        if kept is not None:
            lines.append(kept)
    return lines


def changes(kafkas: Sequence[str], ours: Sequence[str]) -> tuple[str, ...]:
    """The lines that differ, after the rules, as `golden/deliberate.txt` has them."""
    compared = difflib.ndiff(as_ours(kafkas), ours)
    return tuple(line[0] + line[2:] for line in compared if line[0] in "+-")
