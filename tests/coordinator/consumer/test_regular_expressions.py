"""Subscribed regular expressions: what is valid and what matches, as Kafka's engine decides.

`golden/regexes.jsonl` has the answers of RE2J in Kafka 4.3.1 (`golden/make.py` records them).
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from protocol.names import OFFSETS_TOPIC, TopicName
from seams import regular_expressions
from seams.regular_expressions import (
    REGEX_MEMORY_MAX_BYTES,
    TOGETHER_MAX,
    UNICODE_CLASSES_MAX,
    check_regex,
    resolve,
)
from tests.coordinator.consumer.golden.make import DIFFERENT, REGEXES

LINES = (Path(__file__).parent / "golden/regexes.jsonl").read_text().splitlines()
NAMES = [TopicName(name) for name in json.loads(LINES[0])]
RECORDED: dict[str, dict[str, Any]] = {
    answer["pattern"]: answer for answer in map(json.loads, LINES[1:])
}
TOO_LARGE = f"the expression needs more than {REGEX_MEMORY_MAX_BYTES} bytes of memory"
A, B, X = TopicName("a"), TopicName("b"), TopicName("x")


def answer(pattern: str) -> dict[str, Any]:
    """Ours, in the form of the recorded ones."""
    refused = check_regex(pattern)
    if refused is not None:
        start = f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: "
        assert refused.startswith(start)
        assert refused.endswith(".")
        return {"pattern": pattern, "refused": refused[len(start) : -1]}
    matched = resolve([pattern], NAMES)[pattern]
    return {"pattern": pattern, "topics": [name for name in NAMES if name in matched]}


@pytest.mark.parametrize("pattern", REGEXES, ids=ascii)
def test_each_form_is_read_as_kafka_reads_it(pattern: str) -> None:
    assert answer(pattern) == RECORDED[pattern]


def test_mixed_forms_are_read_as_kafka_reads_them() -> None:
    mixed = RECORDED.keys() - set(DIFFERENT)
    assert len(mixed) > 1_300
    assert [RECORDED[p] for p in mixed if answer(p) != RECORDED[p]] == []


def test_the_documented_differences_are_all() -> None:
    ours = {pattern: answer(pattern).get("refused") for pattern in DIFFERENT}
    assert ours == {
        "((a{10}){10}){11}": "invalid repeat count",
        "(a{500}){3}": "invalid repeat count",
        r"\pL{1000}": TOO_LARGE,
        r"[a\p": "invalid escape sequence",
    }
    kafkas = {pattern: RECORDED[pattern].get("refused") for pattern in DIFFERENT}
    assert list(kafkas.values()) == [None, None, None, "invalid character class range"]


def test_many_expressions_together_match_what_each_matches_alone() -> None:
    recorded = {p: a["topics"] for p, a in RECORDED.items() if "topics" in a and p not in DIFFERENT}
    together = resolve(recorded, NAMES)
    assert {p: [n for n in NAMES if n in together[p]] for p in recorded} == recorded


@pytest.fixture
def matched_alone(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The expressions that were not matched together with others."""
    found: list[str] = []
    alone = regular_expressions._match_alone

    def noted(expression: Any, names: Any) -> None:
        found.append(expression.pattern)
        alone(expression, names)

    monkeypatch.setattr(regular_expressions, "_match_alone", noted)
    return found


def test_large_expressions_are_matched_alone(matched_alone: list[str]) -> None:
    large = [f"(?:.?){{{count}}}x|{name}" for name, count in (("a", 380), ("b", 390), ("c", 400))]
    resolved = resolve([*large, "a|b", "["], [A, B, X])
    assert list(resolved.values()) == [{A, X}, {B, X}, {X}, {A, B}, frozenset()]
    assert matched_alone == large


def test_more_expressions_than_go_into_one_set_are_matched() -> None:
    names = [TopicName(f"t-{number}") for number in range(3 * TOGETHER_MAX + 1)]
    assert resolve(names, names) == {name: {name} for name in names}


def test_expressions_that_do_not_fit_together_are_matched_one_by_one(
    monkeypatch: pytest.MonkeyPatch, matched_alone: list[str]
) -> None:
    monkeypatch.setattr(regular_expressions, "REGEX_MEMORY_MAX_BYTES", 1 << 16)
    patterns = [f"(?:.?){{{count}}}x" for count in range(20, 30)]
    assert resolve(patterns, [A, X]) == {pattern: {X} for pattern in patterns}
    assert matched_alone == patterns


def test_a_set_that_runs_out_of_memory_gives_no_wrong_answer(
    monkeypatch: pytest.MonkeyPatch, matched_alone: list[str]
) -> None:
    # As RE2 answers when it has no memory: the same as for no match.
    monkeypatch.setattr("re2.Set.Match", lambda *_: None)
    assert resolve(["a", "[ab]"], [A, B, X]) == {"a": {A}, "[ab]": {A, B}}
    assert matched_alone == ["a", "[ab]"]


def test_an_expression_matches_the_whole_name() -> None:
    names = [TopicName(name) for name in ("orders", "orders-1", "my-orders")]
    assert resolve(["orders"], names) == {"orders": {"orders"}}


def test_internal_topics_are_not_left_out() -> None:
    assert resolve([".*"], [OFFSETS_TOPIC, A]) == {".*": {OFFSETS_TOPIC, A}}


def test_an_expression_that_is_not_valid_matches_nothing() -> None:
    assert resolve(["(", "a"], [A, B]) == {"(": frozenset(), "a": {A}}
    assert resolve([], [A]) == {}
    assert resolve(["a"], []) == {"a": frozenset()}


def test_the_refusal_is_kafkas_message() -> None:
    assert check_regex("[") == (
        "SubscribedTopicRegex `[` is not a valid regular expression: missing closing ]."
    )


@pytest.mark.parametrize(
    "pattern",
    ["a?" * 6_000, "(" * 16_000 + ")" * 16_000, "|".join(["orders.created.v1"] * 1_800)],
    ids=["optional", "nested", "alternatives"],
)
def test_the_longest_expressions_are_matched(pattern: str) -> None:
    assert check_regex(pattern) is None
    name = TopicName("orders.created.v1" if "|" in pattern else "")
    assert resolve([pattern], [name]) == {pattern: {name}}


@pytest.mark.parametrize("pattern", [r"\pL{1000}", r"[^\pL]{1000}", "(?:a{1000}b?)" * 2_500])
def test_memory_is_limited(pattern: str) -> None:
    refused = check_regex(pattern)
    assert refused is not None
    assert refused.endswith(f": {TOO_LARGE}.")


def test_unicode_classes_are_limited() -> None:
    """To parse as many as fit into a string takes RE2 two seconds."""
    assert check_regex("\\pL" * UNICODE_CLASSES_MAX) is None
    refused = check_regex("\\pL" * UNICODE_CLASSES_MAX + "\\PN")
    assert refused is not None
    assert refused.endswith(": the expression has more than 100 Unicode classes.")


def test_nothing_is_written_to_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    for pattern in ("[", r"\pL{1000}", "(?:.?){900}x", r"\C"):
        check_regex(pattern)
        resolve([pattern], NAMES)
    assert capfd.readouterr() == ("", "")


def test_compiled_expressions_are_not_kept() -> None:
    import re2

    check_regex("orders.*")
    resolve(["orders.*", "a"], NAMES)
    assert re2._Regexp._make.cache_info().currsize == 0


def test_the_engine_is_loaded_with_the_first_expression() -> None:
    code = (
        "import sys\n"
        "from seams.regular_expressions import check_regex\n"
        "assert 're2' not in sys.modules\n"
        "check_regex('a')\n"
        "assert 're2' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
