"""Second run: the tests that failed in the last run, one after the other on a quiet machine.

`make test` calls it after a failed run. Tests with real processes share two cores with others, and
a rare one misses a deadline of the protocol for that alone. A defect fails twice. What failed once
is printed as UNSTEADY, so that it is repaired. More than RERUNS_MAX failures are not run again.
"""

import json
import subprocess
import sys
from pathlib import Path

RERUNS_MAX = 8
LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")


def main() -> int:
    """Exit code 0 if all of them pass now."""
    failed = sorted(json.loads(LAST_FAILED.read_text("utf-8"))) if LAST_FAILED.exists() else []
    if not failed or len(failed) > RERUNS_MAX:
        print(f"{len(failed)} tests failed: they are not run again")
        return 1
    ids = [name.partition("@")[0] for name in failed]  # xdist adds its groups to ids
    print("Running again, alone: " + ", ".join(ids), flush=True)
    exit_code = subprocess.call([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *ids])
    if exit_code == 0:
        for name in ids:
            print(f"UNSTEADY: {name} failed among the others and passed alone")
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
