"""Times for people: commands and reports write instants and durations by seams/text.py alone."""

import re
from pathlib import Path

import pytest

from cli.verdicts import _text
from pipeline.report.html_page import duration_text, instant_text

ROOT = Path(__file__).parents[2]
OWN_FORM = re.compile(r"\.(strftime|isoformat|fromtimestamp)\(")
READERS = {"cli/clock.py": "parses a time of day", "pipeline/runner.py": "names folders of days"}
AT_MS = 1_795_262_400_120


@pytest.mark.parametrize("package", ["cli", "console", "logtools", "pipeline", "transfer"])
def test_no_module_writes_times_in_a_form_of_its_own(package: str) -> None:
    files = [path.relative_to(ROOT) for path in (ROOT / package).rglob("*.py")]
    own = {str(path) for path in files if OWN_FORM.search((ROOT / path).read_text())}
    assert files
    assert own <= READERS.keys()


def test_a_verdict_says_since_when() -> None:
    verdict = {"group": "g", "verdict": "v", "since_ms": AT_MS, "summary": "s", "remedy": "r"}
    assert _text(verdict).splitlines()[0] == "g: v (since 2026-11-21T12:00:00.120Z)"


def test_a_cell_of_the_report_holds_a_time_or_nothing() -> None:
    assert instant_text(AT_MS) == "2026-11-21T12:00:00.120Z"
    assert duration_text(3 * 3_600 + 60) == "3 h 1 min"
    assert instant_text(None) is None
    assert duration_text(None) is None
