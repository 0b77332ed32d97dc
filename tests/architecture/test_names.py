"""Names and words: one meaning for each public name, standard terms, plain docstrings.

`python -m tests.architecture.names` prints the places. REPEATED_NAMES has the exceptions with their
reasons; the test also fails when a listed name is not repeated any more, so that the list is true.
"""

from typing import Final

from tests.architecture import names
from tests.architecture.tree import PACKAGES

EVERYWHERE: Final = (*PACKAGES, "bench", "docs", "examples", "tests")

REPEATED_NAMES: Final = {
    "LogStore": "the interface that the core sees, and its implementation",
    "collect": "one function of this name for each subject of /metrics",
    "read_varint": "the same; the copy in storage is inlined further, for loops over all records",
}
"""Public names that several modules export, and why."""

REPEATED_NAMES_MAX: Final = 15

KEYS_OF_RECORDINGS: Final = "tests/compare/scenarios/"
"""The names of its scenarios are the keys of the transcripts that were recorded with Kafka."""

RECORDED_NAMES_MAX: Final = 16


def test_no_two_modules_export_one_name_without_a_reason() -> None:
    assert set(names.repeated_names()) == set(REPEATED_NAMES)
    assert len(REPEATED_NAMES) <= REPEATED_NAMES_MAX


def test_a_docstring_begins_with_its_term() -> None:
    assert names.docstrings_without_a_term(EVERYWHERE) == []


def test_names_are_standard_terms() -> None:
    findings = names.words_that_are_not_names(EVERYWHERE)
    recorded = [finding for finding in findings if finding.place.startswith(KEYS_OF_RECORDINGS)]
    assert [finding for finding in findings if finding not in recorded] == []
    assert len(recorded) <= RECORDED_NAMES_MAX


def test_values_are_structs() -> None:
    """ADR 0016: the product has no dataclass but `Daemon`, the parts of a node: it is no value."""
    assert [finding.key for finding in names.dataclasses()] == ["Daemon"]


def test_prose_is_plain() -> None:
    assert names.quaint_words(EVERYWHERE) == []
    assert names.quaint_words() == []  # and the pages, as far as they are in no package


def test_what_counts_as_a_term() -> None:
    assert names.begins_with_a_term("Group commit: when the flusher starts the next flush.")
    assert names.begins_with_a_term("`rollcall why`: why did a group rebalance?")
    assert names.begins_with_a_term("kafka_exporter: its metric names and labels.")
    assert not names.begins_with_a_term("When is a group of commits whole? Two sides agree: both.")
    assert not names.begins_with_a_term("Who answers: the coordinator or the data plane?")
    assert not names.begins_with_a_term("Logs of record batches. Knows bytes: not groups.")
    assert not names.begins_with_a_term("Everything that a connection needs to know of its peer: x")


def test_what_counts_as_a_name() -> None:
    for name in ("look_up", "line", "one_line", "ONE", "rollcall_trouble_stuck_ms", "tombstone"):
        assert names.is_a_name(name), name
    for name in (
        "one",
        "tell_all",
        "_settle",
        "TOLD_MAX",
        "look_first",
        "TroubleWatch",
        "JoinNews",
    ):
        assert not names.is_a_name(name), name
