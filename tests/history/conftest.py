"""Fixtures: a fresh world with a history for every test."""

import pytest

from tests.history.history_world import ToldWorld


@pytest.fixture
def world() -> ToldWorld:
    return ToldWorld()
