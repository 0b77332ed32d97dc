"""Falsifying examples: what a property test found by chance becomes a test that stays.

hypothesis ends a failure with the arguments that falsify the property. The report shows them as
the decorator that repeats them: a line to add above the test before the fault is mended.
"""

import re

import pytest

_FOUND = re.compile(
    r"(Falsifying example|Failing test case): (?P<test>\w+)\((?P<arguments>.*)\)", re.DOTALL
)


def regression_test(error: BaseException) -> str | None:
    """The `@example` line of a failure; None if no property was falsified."""
    for note in getattr(error, "__notes__", ()):
        match = _FOUND.search(note)
        if match is not None:
            arguments = " ".join(line.strip() for line in match["arguments"].splitlines())
            return f"# above {match['test']}:\n@example({arguments.strip().rstrip(',')})"
    return None


def add_to_report(report: pytest.TestReport, call: pytest.CallInfo[None]) -> None:
    if call.excinfo is not None and report.failed:
        example = regression_test(call.excinfo.value)
        if example is not None:
            report.sections.append(("regression test to add", example))
