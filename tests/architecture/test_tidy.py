"""Tidiness: sizes, docstrings, ignored types and used keys, which no linter checks."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.keys import keys
from tests.architecture.names import module_of
from tests.architecture.tree import ROOT, python_files
from topics.configs import KEYS as TOPIC_KEYS

# A file has one idea. Beyond this it probably has two; where it has not, it is listed with its own
# limit: a table, or a module that could only be cut into an import circle (then at most 700 lines).
LINES_MAX = 560
LONGER = {"broker/net/connection.py": 690, "config/keys.py": 1_010}
FUNCTION_LINES_MAX = 70  # a screen

PRODUCT = python_files(tests=False)
ALL = [*PRODUCT, *python_files(tests=True)]


def tree_of(path: Path) -> ast.Module:
    return module_of(path).tree


def test_there_are_files_to_check() -> None:
    assert len(PRODUCT) > 50
    assert len(ALL) > len(PRODUCT)


def test_every_file_of_the_product_has_one_idea() -> None:
    lines = {str(path): len((ROOT / path).read_text().splitlines()) for path in PRODUCT}
    too_long = {path for path, count in lines.items() if count > LONGER.get(path, LINES_MAX)}
    assert too_long == set()
    assert {path for path in LONGER if lines.get(path, 0) <= LINES_MAX} == set()  # not needed now


def test_every_function_fits_a_screen() -> None:
    long = [
        f"{path} {node.name}"
        for path in PRODUCT
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= FUNCTION_LINES_MAX
    ]
    assert long == []


def test_every_file_says_what_it_is_for() -> None:
    without = [str(path) for path in ALL if not _docstring(path)]
    assert without == []


def _docstring(path: Path) -> str:
    """The first line of a file's docstring; an empty file needs none."""
    module = module_of(path)
    return (ast.get_docstring(module.tree) or "").strip() or ("empty" if not module.text else "")


def remarks(pattern: str, paths: list[Path]) -> Iterator[tuple[str, str, str]]:
    """(place, the text behind the mark, the line before) of each mark in a comment."""
    for path in paths:
        before = ""
        for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
            found = re.search(pattern, line)
            if found is not None:
                yield f"{path}:{number}", line[found.end() :], before
            before = line.strip()


def test_an_ignored_type_error_has_a_code_and_a_reason() -> None:
    mark = "# type: " + "ignore"
    bare = [
        place
        for place, rest, before in remarks(mark, PRODUCT)
        if not re.match(r"\[[\w, -]+\]", rest)
        or not (re.search(r"\]\s*\S", rest) or before.startswith("#"))
    ]
    assert bare == []
    codeless = [
        place for place, rest, _ in remarks(mark, ALL) if not rest.startswith(("[", '"', "'"))
    ]
    assert codeless == []


def test_nothing_is_left_to_be_done() -> None:
    marks = "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"))
    assert [place for place, _, _ in remarks(rf"\b({marks})\b", ALL)] == []


def test_any_is_for_the_codec_and_for_json_alone() -> None:
    """`Any` would switch off the type checks of everything that uses it."""
    users = {
        str(path)
        for path in PRODUCT
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ImportFrom)
        and node.module == "typing"
        and any(name.name == "Any" for name in node.names)
    }
    allowed = {"topics/checked_json.py"}  # the type of a document that was just read
    assert {user for user in users - allowed if not user.startswith("protocol/")} == set()


# Refused unless it is 1; accepted as a key so that no warning is given for the 1.
CONSTANT = {"offsets.topic.replication.factor", "transaction.state.log.replication.factor"}


def _words_of(*packages: str) -> set[str]:
    found: set[str] = set()
    for path in PRODUCT:
        if str(path) != "config/keys.py" and path.parts[0] in packages:
            found.update(re.findall(r"\w+", (ROOT / path).read_text()))
    return found


@pytest.mark.parametrize("name", sorted(set(keys()) - CONSTANT))
def test_every_key_is_used(name: str) -> None:
    """A key that is read and never used would be ignored without a warning."""
    field = keys()[name].field
    own = (ROOT / "config" / "keys.py").read_text()
    passed_on = re.search(rf"(?:=|\(|if|return) ?self\.{field}\b", own) or f"self.{field}," in own
    derived = any(s.name == name for key in TOPIC_KEYS.values() for s in key.synonyms)
    assert (
        passed_on or derived or field in _words_of("broker", "config", "console", "cli", "topics")
    )
