"""Write aside: a file is replaced as a whole, or stays as it was.

The new content goes to a file beside it, which is renamed when all of it is durable. A failure, a
full disk or a kill leaves the old export readable. A path that is not a regular file (a pipe,
/dev/stdout) is written directly.
"""

import os
import tempfile
from pathlib import Path
from typing import Final

_PREFIX: Final = ".rollcall-export-"
_NEW_FILE_MODE: Final = 0o666  # but for the umask, as any new file


def write_aside(path: Path, content: bytes) -> None:
    """Raises OSError; then the file is as it was."""
    target = path.resolve()
    if target.exists() and not target.is_file():
        target.write_bytes(content)
        return
    fd, name = tempfile.mkstemp(prefix=_PREFIX, dir=target.parent)
    aside = Path(name)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        aside.chmod(_mode_of(target))
        aside.rename(target)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def _mode_of(target: Path) -> int:
    if target.exists():
        return target.stat().st_mode & 0o7777
    umask = os.umask(0)
    os.umask(umask)
    return _NEW_FILE_MODE & ~umask
