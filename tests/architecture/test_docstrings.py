"""Docstrings: a file that one names exists."""

import ast
import re
from pathlib import Path

from tests.architecture.names import module_of
from tests.architecture.tree import python_files, tracked_files

FILE_NAME = re.compile(r"(?<![\w/.*-])[\w/.-]*\w\.(?:py|md|toml|yaml|sh)\b")
# Files of other projects, and files that a run makes.
NOT_OURS = {"rollcall.toml", "kafka-console-producer.sh"}


def named_files(path: Path) -> set[str]:
    """The files that the docstrings of a module name."""
    tree = module_of(path).tree
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    texts = [ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, documented)]
    return {name for text in texts if text for name in FILE_NAME.findall(text)}


def test_files_that_docstrings_name_exist() -> None:
    there = tracked_files()
    tails = {"/".join(path.parts[start:]) for path in there for start in range(len(path.parts))}

    missing = {
        (str(path), name)
        for path in python_files(tests=False) + python_files(tests=True)
        for name in named_files(path) - NOT_OURS
        if name.removeprefix("./") not in tails
    }

    assert missing == set()
