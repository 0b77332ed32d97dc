"""Catalogue of scenarios: imports every chapter and returns what they registered."""

import importlib
from collections.abc import Mapping
from pathlib import Path

from tests.compare.script import SCENARIOS, Scenario


def scenarios() -> Mapping[str, Scenario]:
    for path in sorted((Path(__file__).parent / "scenarios").glob("*.py")):
        importlib.import_module(f"tests.compare.scenarios.{path.stem}")
    return SCENARIOS
