"""The passes of `make test`: each test is in one that can run it."""

import re
from pathlib import Path

from tests.suite import FAST, PATCHING, passes_of

TESTS = Path(__file__).parents[1]


def test_without_a_compiled_build_everything_runs_on_the_sources() -> None:
    assert passes_of(is_compiled=False) == [((), "1")]


def test_each_test_that_needs_the_sources_is_in_a_pass_on_them() -> None:
    (_, compiled), *rest = passes_of(is_compiled=True)
    assert (compiled, {pure for _, pure in rest}) == ("0", {"1"})
    marked = {
        path.relative_to(TESTS).parts[0]
        for path in TESTS.rglob("test_*.py")
        if re.search(r"^ *@pytest\.mark\.pure", path.read_text(), re.MULTILINE)
    }
    assert marked
    assert marked <= {*FAST, *PATCHING}
