"""Names and words: one meaning for each public name, standard terms, plain docstrings."""

from tests.architecture import names

# How many are left; a limit is lowered with what is put right, and never raised.
REPEATED_NAMES_MAX = 190
WITHOUT_A_TERM_MAX = 240
NOT_NAMES_MAX = 450
DATACLASSES_MAX = 47
QUAINT_WORDS_MAX = 240


def test_no_two_modules_export_one_name() -> None:
    assert len(names.repeated_names()) <= REPEATED_NAMES_MAX


def test_a_docstring_begins_with_its_term() -> None:
    assert len(names.docstrings_without_a_term()) <= WITHOUT_A_TERM_MAX


def test_names_are_standard_terms() -> None:
    assert len(names.words_that_are_not_names()) <= NOT_NAMES_MAX


def test_values_are_structs() -> None:
    """ADR 0016."""
    assert len(names.dataclasses()) <= DATACLASSES_MAX


def test_prose_is_plain() -> None:
    assert len(names.quaint_words()) <= QUAINT_WORDS_MAX


def test_what_counts_as_a_term() -> None:
    assert names.begins_with_a_term("Group commit: when the flusher starts the next flush.")
    assert names.begins_with_a_term("`rollcall why`: why did a group rebalance?")
    assert names.begins_with_a_term("kafka_exporter: its metric names and labels.")
    assert not names.begins_with_a_term("When is a group of commits whole? Two sides agree: both.")
    assert not names.begins_with_a_term("Who answers: the coordinator or the data plane?")
    assert not names.begins_with_a_term("Logs of record batches. Knows bytes: not groups.")
    assert not names.begins_with_a_term("Everything that a connection needs to know of its peer: x")


def test_what_counts_as_a_name() -> None:
    for name in (
        "look_up",
        "line",
        "one_line",
        "history",
        "rollcall_trouble_stuck_ms",
        "tombstone",
    ):
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
