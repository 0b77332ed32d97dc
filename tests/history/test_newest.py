"""Newest: what a bounded deque does."""

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.newest import Newest


@given(st.one_of(st.none(), st.integers(1, 5)), st.lists(st.one_of(st.none(), st.integers())))
def test_it_is_a_bounded_deque(most: int | None, steps: list[int | None]) -> None:
    """A number is appended, None takes the oldest out."""
    newest: Newest[int] = Newest(most)
    model: deque[int] = deque(maxlen=most)
    for step in steps:
        if step is not None:
            newest.append(step)
            model.append(step)
        elif model:
            assert newest.popleft() == model.popleft()
        assert list(newest) == list(model)


def test_an_empty_one_has_no_oldest() -> None:
    with pytest.raises(IndexError):
        Newest[int](3).popleft()
