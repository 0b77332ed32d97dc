"""Fixtures: a fresh data plane for every test."""

import pytest

from tests.topics.plane import Plane


@pytest.fixture
def plane() -> Plane:
    return Plane()
