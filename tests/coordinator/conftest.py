"""Fixtures: a fresh world for every test."""

import pytest

from tests.world import World


@pytest.fixture
def world() -> World:
    return World()
