"""Fixtures: a fresh world with a history for every test."""

import pytest

from tests.history.history_world import HistoryWorld


@pytest.fixture
def world() -> HistoryWorld:
    return HistoryWorld()
