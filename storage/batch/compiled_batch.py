"""Compiled batch: the encoder of a coordinator's batches in C, which the compiled build has.

It encodes lists of pairs of bytes, and leaves the rest to `record_batch.py` (native/records.pxi).
"""

from collections.abc import Callable

try:
    from rollcall_codec import encode_batch as _encode_batch
except ImportError:
    _encode_batch = None

ENCODE_BATCH_IN_C: Callable[..., bytes | None] | None = _encode_batch
"""Takes what `record_batch.encode_batch` takes; None is its answer to what it leaves."""
