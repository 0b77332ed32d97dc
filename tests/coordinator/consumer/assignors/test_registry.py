"""Assignor registry: built-in assignors, those of installed packages, and what is refused."""

import re
import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest

from coordinator.consumer.assignors.assignor import (
    AssignorFailed,
    AssignorInput,
    AssignorMember,
    AssignorTopic,
)
from coordinator.consumer.assignors.registry import assignors_of
from protocol.names import MemberId
from tests.architecture.tree import ROOT

KAFKA = "org.apache.kafka.coordinator.group.assignor."
TOPIC, OTHER = UUID(int=1), UUID(int=2)
ANNA, BERT = MemberId("anna"), MemberId("bert")


def given() -> AssignorInput:
    member = AssignorMember(None, None, frozenset({TOPIC}), {})
    return AssignorInput(
        {ANNA: member, BERT: member},
        {TOPIC: AssignorTopic(3, None), OTHER: AssignorTopic(1, None)},
        is_homogeneous=True,
    )


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Registers a class body as an entry point, as an installed package does."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def install(source: str, *, name: str = "mine", package: str = "mine_package") -> None:
        (tmp_path / f"{package}.py").write_text(source)
        folder = tmp_path / f"{package}-1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
        (folder / "entry_points.txt").write_text(f"[rollcall.assignors]\n{name} = {package}:Mine\n")
        monkeypatch.delitem(sys.modules, package, raising=False)

    return install


def assignor(result: str) -> str:
    return f"""
from uuid import UUID
class Mine:
    name = "mine"
    def assign(self, given):
        return {result}
"""


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["uniform", "range"], ["uniform", "range"]),
        (["range", "uniform"], ["range", "uniform"]),
        (["uniform", "uniform"], ["uniform"]),
        ([f"{KAFKA}RangeAssignor"], ["range"]),
        ([f"{KAFKA}UniformAssignor", "range"], ["uniform", "range"]),
    ],
)
def test_built_in_assignors_have_their_own_names_and_kafkas(names: list, found: list) -> None:
    assignors = assignors_of(names)
    assert [*assignors] == found
    assert [assignor.name for assignor in assignors.values()] == found


_LOADED = """
import sys
from coordinator.consumer.assignors.registry import assignors_of
assignors_of(["uniform", "range"])
print("importlib.metadata" in sys.modules)
"""


def test_built_in_names_do_not_load_the_slow_metadata() -> None:
    loaded = subprocess.run(
        [sys.executable, "-c", _LOADED],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert loaded == "False\n"


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ([], "must name at least one"),
        (["sticky"], "no assignor 'sticky'"),
        (["Uniform"], "no assignor 'Uniform'"),
        ([""], "no assignor ''"),
        ([f"{KAFKA}SimpleAssignor"], "no assignor"),
        (["range", f"{KAFKA}RangeAssignor"], "names 'range' twice"),
    ],
)
def test_refuses_what_names_no_assignor(names: list, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as refused:
        assignors_of(names)
    assert str(refused.value).startswith("group.consumer.assignors: ")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import no_such_module", "cannot be loaded.*ModuleNotFoundError"),
        ("class Other: pass", "cannot be loaded.*AttributeError"),
        ("class Mine:\n  def __init__(self): raise OSError('a\\nb')", "cannot be loaded.*: a$"),
        ("class Mine:\n  name = 'mine'", "cannot be loaded.*AttributeError"),
        ("class Mine:\n  name = 'mine'\n  assign = 1", "is no assignor with the name 'mine'"),
        ("class Mine:\n  name = 'his'\n  def assign(self): ...", "is no assignor with the name"),
    ],
)
def test_refuses_an_entry_point_that_is_no_assignor(install, source: str, reason: str) -> None:
    install(source)
    with pytest.raises(ValueError, match=reason) as refused:
        assignors_of(["mine"])
    assert "\n" not in str(refused.value)


def test_refuses_a_name_that_two_packages_have(install) -> None:
    install(assignor("{}"))
    install(assignor("{}"), package="another_package")
    with pytest.raises(ValueError, match="'mine' is installed twice: another_package:Mine, mine_"):
        assignors_of(["mine"])


def test_an_installed_assignor_is_used(install) -> None:
    install(assignor("{'bert': {UUID(int=1): {2, 0}}, 'anna': {UUID(int=1): []}}"))
    assignors = assignors_of(["uniform", "mine"])
    assert [*assignors] == ["uniform", "mine"]
    assert assignors["mine"].name == "mine"
    assert assignors["mine"].assign(given()) == {BERT: {TOPIC: frozenset({0, 2})}, ANNA: {}}


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ("{'carl': {}}", "mine: Member carl is not in the group."),
        ("{'anna': {UUID(int=2): {0}}}", "mine: Member anna does not subscribe to topic 0000"),
        ("{'anna': {UUID(int=1): {3}}}", "has no partition 3"),
        ("{'anna': {UUID(int=1): {-1}}}", "has no partition -1"),
        ("{'anna': {UUID(int=1): {'0'}}}", "has no partition '0'"),
        ("{'anna': {UUID(int=1): {True}}}", "has no partition True"),
        (
            "{'anna': {UUID(int=1): {0, 1}}, 'bert': {UUID(int=1): {2, 1}}}",
            "Partition 1 of topic .* is assigned twice",
        ),
        ("1 / 0", "mine: ZeroDivisionError: division by zero"),
        ("None", "mine: AttributeError"),
        ("given.members.clear()", "mine: "),
    ],
)
def test_a_wrong_result_of_an_installed_assignor_is_a_failure(
    install, result: str, reason: str
) -> None:
    install(assignor(result))
    with pytest.raises(AssignorFailed, match=reason):
        assignors_of(["mine"])["mine"].assign(given())


def test_the_documented_example_can_be_installed_and_assigns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs" / "assignors.md").read_text()
    source = tmp_path / "source"
    source.mkdir()
    for file, text in re.findall(r"```\w+\n# ([\w.]+)\n(.*?)```", page, re.DOTALL):
        (source / file).write_text(text)
    assert sorted(path.name for path in source.iterdir()) == [
        "pinned_assignor.py",
        "pyproject.toml",
    ]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation",
         "--no-index", "--target", tmp_path / "installed", source],
        check=True,
    )  # fmt: skip
    monkeypatch.syspath_prepend(str(tmp_path / "installed"))
    pinned = assignors_of(["uniform", "pinned"])["pinned"]
    target = pinned.assign(given())
    assert target == {ANNA: {TOPIC: frozenset(range(3))}, BERT: {}}
