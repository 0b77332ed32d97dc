"""Recordings: a text file for each chapter, a section for each scenario.

    == the_name_of_a_scenario
    a> JoinGroup v9 group_id='~' ...
    a< ... error_code=MEMBER_ID_REQUIRED ...

The files are meant to be read: they are Kafka's behaviour, written down by Kafka itself.
"""

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent / "golden"
RECORDED_FROM: Final = "Apache Kafka 4.3.1"
STORED: Final = "stored_"
"""What the chapters of this beginning tell is what was left in `__consumer_offsets`."""
LOGGED: Final = "logged_"
"""Likewise: the broker's log lines about the groups of a scenario."""


@cache
def transcripts(chapter: str) -> dict[str, list[str]]:
    """Scenario name -> its recorded lines."""
    path = FOLDER / f"{chapter}.txt"
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    if not path.exists():
        return sections
    for line in path.read_text().splitlines()[1:]:
        if line.startswith("== "):
            lines = sections[line[3:]] = []
        elif line:
            lines.append(line)
    return sections


def write(chapter: str, sections: Iterable[tuple[str, list[str]]]) -> None:
    lines = [f"Recorded from {RECORDED_FROM} by `make golden`; not to be edited."]
    for name, transcript in sections:
        lines += ["", f"== {name}", *transcript]
    (FOLDER / f"{chapter}.txt").write_text("\n".join(lines) + "\n")
    transcripts.cache_clear()
