"""Compiled batch: what the compiled build does with batches in C, for usual ones.

The encoder of a coordinator's batches takes lists of pairs of bytes, and leaves the rest to
`record_batch.py` (native/records.pxi). The walk over a piece of a file stops at a batch that is not
whole or whose checksum fails, and leaves it to `batch_walk.py`. A group of a write-ahead file that
has anything but batches is left to `journal/write_ahead.py` (native/stored_commits.pxi).
"""

from collections.abc import Callable

try:
    from rollcall_codec import batch_entries as _batch_entries
    from rollcall_codec import encode_batch as _encode_batch
    from rollcall_codec import leading_batches as _leading_batches
    from rollcall_codec import leading_places as _leading_places
except ImportError:
    _batch_entries = _encode_batch = _leading_batches = _leading_places = None

ENCODE_BATCH_IN_C: Callable[..., bytes | None] | None = _encode_batch
"""Takes what `record_batch.encode_batch` takes; None is its answer to what it leaves."""

LEADING_BATCHES_IN_C: Callable[[bytes], list[bytes]] | None = _leading_batches
"""The batches at the beginning of a piece of a file that are whole, and whose checksums hold."""

LEADING_PLACES_IN_C: Callable[[bytes], list[tuple[int, int, int, int]]] | None = _leading_places
"""Of these: size, first and last offset, greatest timestamp."""

BATCH_ENTRIES_IN_C: Callable[[bytes], list[tuple[int, int, tuple[bytes, int, int]]] | None] | None
BATCH_ENTRIES_IN_C = _batch_entries
"""(reference, base offset, (batch, last offset, greatest timestamp)) of each entry of a group."""
