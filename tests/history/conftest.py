"""A fresh world, told on, for every test that wants one."""

import pytest

from tests.history.history_world import ToldWorld


@pytest.fixture
def world() -> ToldWorld:
    return ToldWorld()
