"""Compiled batch: what the compiled build does with batches in C, for usual ones.

The encoder of a coordinator's batches takes lists of pairs of bytes, and leaves the rest to
`record_batch.py` (native/records.pxi). The walk over a piece of a file stops at a batch that is not
whole or whose checksum fails, and leaves it to `batch_walk.py` (native/stored_commits.pxi).
"""

from collections.abc import Callable

try:
    from rollcall_codec import encode_batch as _encode_batch
    from rollcall_codec import leading_batches as _leading_batches
except ImportError:
    _encode_batch = _leading_batches = None

ENCODE_BATCH_IN_C: Callable[..., bytes | None] | None = _encode_batch
"""Takes what `record_batch.encode_batch` takes; None is its answer to what it leaves."""

LEADING_BATCHES_IN_C: Callable[[bytes], list[bytes]] | None = _leading_batches
"""The batches at the beginning of a piece of a file that are whole, and whose checksums hold."""
