"""Regex cache: the same topics as without it, and only new names are matched."""

from collections.abc import Iterable
from random import Random

import pytest

from coordinator.consumer import regex_cache
from coordinator.consumer.regex_cache import CACHED_MAX, RegexCache
from protocol.names import TopicName
from seams.regular_expressions import resolve

A, B, AB = TopicName("a"), TopicName("b"), TopicName("ab")


@pytest.fixture
def matched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], list[TopicName]]]:
    """The expressions and the names that were given to the engine."""
    given: list[tuple[list[str], list[TopicName]]] = []

    def noted(
        patterns: Iterable[str], names: Iterable[TopicName]
    ) -> dict[str, frozenset[TopicName]]:
        listed, named = list(patterns), sorted(names)
        if listed:
            given.append((listed, named))
        return resolve(listed, named)

    monkeypatch.setattr(regex_cache, "resolve", noted)
    return given


def test_what_is_known_is_not_matched_again(
    matched: list[tuple[list[str], list[TopicName]]],
) -> None:
    cache = RegexCache()
    first = cache.resolve(["a.*", "["], [A, B], 1)
    assert first == {"a.*": {A}, "[": frozenset()}
    assert cache.resolve(["a.*", "b"], [A, B], 1) == {"a.*": {A}, "b": {B}}
    assert matched == [(["a.*", "["], [A, B]), (["b"], [A, B])]


def test_only_new_names_are_matched(matched: list[tuple[list[str], list[TopicName]]]) -> None:
    cache = RegexCache()
    cache.resolve(["a.*", "b"], [A, B], 1)
    matched.clear()

    assert cache.resolve(["a.*"], [A, B, AB], 2) == {"a.*": {A, AB}}
    assert matched == [(["a.*", "b"], [AB])]


def test_a_deleted_topic_is_not_matched_any_more(
    matched: list[tuple[list[str], list[TopicName]]],
) -> None:
    cache = RegexCache()
    cache.resolve([".*"], [A, B], 1)
    matched.clear()
    assert cache.resolve([".*"], [B], 2) == {".*": {B}}
    assert cache.resolve([".*"], [], 3) == {".*": frozenset()}
    assert matched == []


def test_expressions_that_were_not_used_for_long_are_forgotten(
    matched: list[tuple[list[str], list[TopicName]]],
) -> None:
    cache = RegexCache()
    cache.resolve(["a", "b"], [A], 1)
    cache.resolve([f"x{number}" for number in range(CACHED_MAX - 1)], [A], 1)
    cache.resolve(["b"], [A], 1)
    matched.clear()
    cache.resolve(["x0", "y"], [A], 1)
    cache.resolve(["b"], [A], 1)
    assert matched == [(["y"], [A])]
    assert cache.resolve(["a"], [A], 1) == {"a": {A}}
    assert matched[1:] == [(["a"], [A])]


def test_more_expressions_than_are_kept_are_resolved() -> None:
    names = [TopicName(f"t{number}") for number in range(CACHED_MAX + 10)]
    assert RegexCache().resolve(names, names, 1) == {name: {name} for name in names}


@pytest.mark.parametrize("seed", range(5))
def test_any_changes_give_what_a_fresh_match_gives(seed: int) -> None:
    random = Random(seed)
    patterns = ["a.*", ".*b", "[ab]c?", ".", "(", ".{3}", "abc", "(?i)A+"]
    names: set[TopicName] = set()
    cache = RegexCache()
    for version in range(60):
        for _ in range(random.randint(0, 4)):
            name = TopicName("".join(random.choices("abc", k=random.randint(1, 3))))
            names ^= {name}
        asked = random.sample(patterns, random.randint(1, len(patterns)))
        assert cache.resolve(asked, tuple(names), version) == resolve(asked, names)
