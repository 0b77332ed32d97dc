"""Catalog: the drills that ship with Rollcall, and those of a user's own file."""

from pathlib import Path
from typing import Final

from drills.scenario import Scenario, ScenarioError, read_scenario

FOLDER: Final = Path(__file__).with_name("scenarios")


def shipped_drills() -> list[Scenario]:
    """By name."""
    return [read_scenario(path) for path in sorted(FOLDER.glob("*.toml"))]


def find_drill(name: str) -> Scenario:
    """A shipped drill by its name, or that of a file. Raises ScenarioError."""
    shipped = FOLDER / f"{name}.toml"
    if "/" not in name and shipped.is_file():
        return read_scenario(shipped)
    if name.endswith(".toml") or "/" in name:
        return read_scenario(Path(name))
    names = ", ".join(path.stem for path in sorted(FOLDER.glob("*.toml")))
    raise ScenarioError(f"{name}: no such drill, and no .toml file; there are {names}")
