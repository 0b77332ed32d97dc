"""How does a worker keep the memory that every chunk needs anew? By telling the C library to.

The decoder makes some hundred arrays of half a megabyte for each chunk and drops them with it. The
C library gives such pieces back to the system and takes them anew, zeroed page by page: logs of
small batches took a third more time for it. So a process that decodes keeps what it has, as it
needs it for the next chunk again; that is no more than its peak. Other libraries than glibc are
left alone.
"""

import ctypes
from functools import cache
from typing import Final

_TRIM_THRESHOLD: Final = -1  # of mallopt: free bytes at the top that are not given back
_MMAP_THRESHOLD: Final = -3  # from which size on a piece is mapped alone
_KEPT_BYTES: Final = 256 << 20
_ALONE_BYTES: Final = 32 << 20  # the most that glibc takes


@cache
def keep_memory() -> None:
    """For this process, from now on."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return
    mallopt(_MMAP_THRESHOLD, _ALONE_BYTES)
    mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
