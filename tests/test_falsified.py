"""Falsified properties: the report has the line that repeats the failure."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.falsified import regression_test


@given(st.text(), st.integers())
@settings(database=None)
def falsified(text: str, number: int) -> None:
    assert not (text >= "0" and number > 9)


def test_a_falsifying_example_becomes_a_line_to_add() -> None:
    with pytest.raises(AssertionError) as caught:
        falsified()
    assert regression_test(caught.value) == ("# above falsified:\n@example(text='0', number=10)")


def test_other_failures_have_none() -> None:
    assert regression_test(AssertionError("x")) is None
