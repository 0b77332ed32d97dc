"""Examples of tests: those of examples/pytest pass with the client libraries that they use."""

import subprocess
import sys

import pytest

from tests.architecture.tree import ROOT
from tests.testing.test_plugin import PLUGIN

EXAMPLES = ROOT / "examples" / "pytest"


@pytest.mark.parametrize("name", [path.name for path in sorted(EXAMPLES.glob("test_*.py"))])
def test_an_example_passes(name: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", "--rootdir", EXAMPLES]
    options = ["-o", "asyncio_default_fixture_loop_scope=function", *PLUGIN]
    done = subprocess.run(
        [*command, *options, EXAMPLES / name], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
