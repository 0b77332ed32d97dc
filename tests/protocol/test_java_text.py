"""Text as Java reads it: what is trimmed, what is a number, how a list is taken apart."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from protocol.java_text import (
    INT_MAX,
    INT_MIN,
    LONG_MAX,
    LONG_MIN,
    double_text,
    parse_integer,
    split_list,
    trim,
)

BLANKS = "".join(map(chr, range(0x21)))
NO_BLANKS = "\x7f\x85\xa0\u2003\u2028\ufeff"  # for Python most of them are


@given(st.text())
@example("0\x1f")
@example("\x00x\x00")
@example("\xa0x\x85")
def test_trim_takes_what_is_not_above_the_space(text: str) -> None:
    trimmed = trim(text)
    assert trimmed in text
    assert not trimmed or min(trimmed[0], trimmed[-1]) > " "
    assert trim(BLANKS + text + BLANKS) == trimmed
    assert all(c <= " " for c in text.replace(trimmed, "", 1)) or not trimmed


@given(st.integers(LONG_MIN, LONG_MAX), st.text(BLANKS), st.text(BLANKS), st.integers(0, 5_000))
@example(0, "", "\x1f", 0)
def test_a_number_is_read_between_blanks(number: int, left: str, right: str, zeros: int) -> None:
    digits = "0" * zeros + str(abs(number))
    assert parse_integer(f"{left}{'-' if number < 0 else ''}{digits}{right}") == number


@pytest.mark.parametrize(
    "text",
    ["", " ", "+", "-", "1_000", "1 0", "1.0", "0x1", "\u0663", "\xb2", "1\xa0", "1\x85", "--1",
     str(LONG_MAX + 1), str(LONG_MIN - 1), "9" * 5_000],
)  # fmt: skip
def test_what_is_no_number_of_64_bits(text: str) -> None:
    assert parse_integer(text) is None


def test_the_range_is_that_of_the_type() -> None:
    assert parse_integer(str(INT_MAX), INT_MIN, INT_MAX) == INT_MAX
    assert parse_integer(str(INT_MAX + 1), INT_MIN, INT_MAX) is None
    assert parse_integer("-1", 0) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ()),
        (" \x00", ()),
        ("a", ("a",)),
        (" a , b\t,\nc ", ("a", "b", "c")),
        ("a,,b,", ("a", "", "b", "")),
        ("a\xa0,\x00b", ("a\xa0", "\x00b")),  # blanks for nobody, or for trim alone
    ],
)
def test_lists(text: str, words: tuple[str, ...]) -> None:
    assert split_list(text) == words


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"), (1.0, "1.0"), (-0.0, "-0.0"), (100.0, "100.0"), (9_999_999.0, "9999999.0"),
        (1e7, "1.0E7"), (-1e7, "-1.0E7"), (1e-3, "0.001"), (9.99e-4, "9.99E-4"), (1e-5, "1.0E-5"),
        (1.5e300, "1.5E300"), (123456789.125, "1.23456789125E8"), (1.7976931348623157e308,
        "1.7976931348623157E308"), (float("inf"), "Infinity"), (float("-inf"), "-Infinity"),
        (float("nan"), "NaN"),
    ],
)  # fmt: skip
def test_doubles_are_written_as_java_writes_them(value: float, text: str) -> None:
    assert double_text(value) == text


@given(st.floats(allow_nan=False))
def test_a_written_double_is_read_back(value: float) -> None:
    assert float(double_text(value)) == value
