"""A new history world for every test that uses one."""

import pytest

from tests.history.history_world import ToldWorld


@pytest.fixture
def world() -> ToldWorld:
    return ToldWorld()
