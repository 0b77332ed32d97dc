"""Topic names: which are valid, and which are the broker's own."""

import pytest

from seams.topic_names import collision_key, is_internal, name_fault


@pytest.mark.parametrize("name", ["a", "A-b_c.d", "0", "...", "x" * 249, "-"])
def test_a_name_of_letters_digits_dots_dashes_and_underscores_is_fine(name: str) -> None:
    assert name_fault(name) is None


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("", "Topic name is invalid: the empty string is not allowed"),
        (".", "Topic name is invalid: '.' is not allowed"),
        ("..", "Topic name is invalid: '..' is not allowed"),
        (
            "x" * 250,
            (
                f"Topic name is invalid: the length of '{'x' * 250}' is longer than the max "
                "allowed length 249"
            ),
        ),
        (
            "a b",
            (
                "Topic name is invalid: 'a b' contains one or more characters other than "
                "ASCII alphanumerics, '.', '_' and '-'"
            ),
        ),
    ],
)
def test_any_other_name_is_refused_in_kafkas_words(name: str, fault: str) -> None:
    assert name_fault(name) == fault


@pytest.mark.parametrize("name", ["é", "a/b", "a\n", "\uff41", "a\x00"])
def test_no_character_beyond_those_gets_through(name: str) -> None:
    assert name_fault(name) is not None


def test_names_that_differ_only_in_dots_and_underscores_collide() -> None:
    assert collision_key("a.b") == collision_key("a_b")
    assert collision_key("a.b") != collision_key("a-b")


def test_a_name_with_neither_collides_with_nothing() -> None:
    assert collision_key("a-b") is None


def test_the_topics_of_kafkas_coordinators_are_internal() -> None:
    assert is_internal("__consumer_offsets")
    assert not is_internal("__consumer_offsets2")
