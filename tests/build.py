"""Build under test: the sources, or with ROLLCALL_PURE=0 the compiled modules.

Daemons and commands that a test starts run what the tests themselves run.

    python -m tests.build    # is there a compiled build of these sources? Exit code 3: no
"""

import os
import sys
from pathlib import Path
from typing import Final

from rollcall.compiled import describe_build, use_compiled

NO_BUILD: Final = 3

if __name__ == "__main__":
    os.environ["ROLLCALL_PURE"] = "0"
os.environ.setdefault("ROLLCALL_PURE", "1")
use_compiled(str(Path(__file__).parents[1]))
IS_COMPILED: Final = describe_build().startswith("compiled")

if os.environ["ROLLCALL_PURE"] == "0" and not IS_COMPILED:
    print(f"No tests of a compiled build: {describe_build()}")
    sys.exit(NO_BUILD)
