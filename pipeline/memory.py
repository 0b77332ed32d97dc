"""Worker memory: tells the C library to keep the memory that every chunk needs again.

The decoder creates some hundred arrays of half a megabyte per chunk and drops them afterwards. By
default the C library returns such memory to the system and requests it again, zeroed page by page:
logs of small batches took a third more time. So a decoding process keeps its memory for the next
chunk; that is no more than its peak. C libraries other than glibc are left alone.
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
