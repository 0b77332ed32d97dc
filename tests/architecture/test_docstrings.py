"""Docstrings and comments: a file that one names exists."""

import re

from tests.architecture.names import module_of, prose
from tests.architecture.tree import python_files, tracked_files

FILE_NAME = re.compile(r"(?<![\w/.*<{-])[\w/.-]*\w\.(?:py|md|toml|yaml|sh)\b")
# Files of other projects, and files that a run makes.
NOT_OURS = {"report.md", "rollcall.toml", "kafka-console-producer.sh", "job/submit.py"}


def test_files_that_docstrings_and_comments_name_exist() -> None:
    there = tracked_files()
    tails = {"/".join(path.parts[start:]) for path in there for start in range(len(path.parts))}

    missing = {
        (f"{path}:{line}", name)
        for path in python_files(tests=False) + python_files(tests=True)
        for line, text in prose(module_of(path))
        for name in set(FILE_NAME.findall(text)) - NOT_OURS
        if name.removeprefix("./") not in tails
    }

    assert missing == set()
