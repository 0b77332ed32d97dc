"""Sentences: what an anomaly or a status says, with the figures that it is based on.

One sentence for each kind, in the words of docs/pipeline.md. Evidence that a sentence does not know
(of a newer version) is shown as it is.
"""

import json
from collections.abc import Callable, Mapping
from typing import Final

from seams.text import duration, instant

Evidence = Mapping[str, object]


def figure(value: object) -> str:
    """With thousands separators; at most one digit after the point."""
    if isinstance(value, float):
        return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def counted(count: int, what: str) -> str:
    """`1 record`, `2,600 records`"""
    return f"{figure(count)} {what}{'' if count == 1 else 's'}"


KINDS: Final = {
    "stalled_partition": "Stalled partitions",
    "rewind": "Offsets that went back",
    "flapping_member": "Members that come and go",
    "commit_storm": "Commit storms",
    "skewed_assignment": "Uneven assignments",
    "hot_partition": "Hot partitions",
}
"""Titles of the kinds, the most urgent first."""


def _storm(said: Evidence) -> str:
    commits, baseline = said.get("commits"), said.get("baseline")
    return (
        f"{figure(commits)} commits in a minute; usual at this hour: {figure(baseline)}, "
        f"give or take {figure(said.get('spread'))}"
    )


def _rewind(said: Evidence) -> str:
    old, new = said.get("old_offset"), said.get("new_offset")
    back = f", {figure(old - new)} back" if isinstance(old, int) and isinstance(new, int) else ""
    return f"the committed offset went from {figure(old)} to {figure(new)}{back}"


def _stall(said: Evidence) -> str:
    how = {
        "STOP": "nothing was committed any more",
        "STALL": "commits came, and the offset did not move",
    }.get(str(said.get("verdict")), str(said.get("verdict")))
    lag, times = figure(said.get("lag")), figure(said.get("evaluations"))
    return f"{how}, with {lag} records waiting, at {times} evaluations in a row ({said['verdict']})"


def _flap(said: Evidence) -> str:
    causes = said.get("causes")
    why = ", ".join(map(str, causes)) if isinstance(causes, list) else str(causes)
    return f"left {figure(said.get('left'))} times within ten minutes ({why})"


def _hot(said: Evidence) -> str:
    return (
        f"{figure(said.get('records'))} records in an hour; the median of the "
        f"{figure(said.get('siblings'))} partitions of its topic is {figure(said.get('median'))}"
    )


def _skew(said: Evidence) -> str:
    return (
        f"in generation {said.get('generation')} one member has {figure(said.get('most'))} "
        f"partitions, another {figure(said.get('least'))}"
    )


_SENTENCES: Final[Mapping[str, tuple[frozenset[str], Callable[[Evidence], str]]]] = {
    "commit_storm": (frozenset({"commits", "baseline", "spread"}), _storm),
    "rewind": (frozenset({"old_offset", "new_offset"}), _rewind),
    "stalled_partition": (frozenset({"verdict", "lag", "evaluations"}), _stall),
    "flapping_member": (frozenset({"left", "causes"}), _flap),
    "hot_partition": (frozenset({"records", "median", "siblings"}), _hot),
    "skewed_assignment": (frozenset({"generation", "most", "least"}), _skew),
}


def anomaly_sentence(kind: str, evidence: str) -> str:
    """What was found, without whose it is and when."""
    try:
        said = json.loads(evidence)
    except ValueError:
        return evidence
    names, sentence = _SENTENCES.get(kind, (frozenset(), None))
    if sentence is None or not isinstance(said, dict) or names != said.keys():
        return evidence
    return sentence(said)


def when(since_ms: int, until_ms: int) -> str:
    if until_ms <= since_ms:
        return instant(since_ms)
    return f"{instant(since_ms)}, for {duration(until_ms - since_ms)}"


def place(topic: object, partition: object) -> str:
    return "" if topic is None else f"{topic}-{partition}"


VERDICT_SENTENCES: Final = {
    "STOP": "nothing is committed any more",
    "STALL": "the offset does not move",
    "REWIND": "the offset went back",
    "WARN": "the lag grows",
    None: "",
}


def spaced(name: object) -> str:
    return str(name).replace("_", " ")


def step_text(before: object, after: object) -> str | None:
    if before is None:
        return None if after is None else str(after)
    return f"{before} → {after}"


def at_worst(catch_up_s: float | None) -> str:
    """Where the flatter slope never gets there: it is only certain if none does."""
    return "never" if catch_up_s is None else "maybe never"
