"""Fixtures: a fresh world for every test."""

import pytest

from tests.transactions.world import World


@pytest.fixture
def world() -> World:
    return World()
