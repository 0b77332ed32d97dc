"""Entry point: what `rollcall.testing.ForkServer` starts as its process."""

import sys
from pathlib import Path

from rollcall.program import use_program_path


def main() -> None:
    """Serve the test run that has started this process."""
    use_program_path()
    from testing.fork_server import main as serve

    descriptor, folder, parent = sys.argv[1:]
    serve(int(descriptor), Path(folder), int(parent))


if __name__ == "__main__":
    main()
