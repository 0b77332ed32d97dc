"""Sound batches: the whole batches that can still be found in damaged bytes.

For a repair, which reports what they held, and for the copy of a torn tail.
"""

from collections.abc import Iterator

from storage.batch.record_batch import (
    HEADER_BYTES,
    BatchHeader,
    InvalidBatch,
    check_crc,
    peek_header,
)

_MAGIC = b"\x02"
_MAGIC_AT = 16


def sound_batches(content: bytes) -> Iterator[tuple[BatchHeader, bytes]]:
    """Every whole batch with a checksum that holds, wherever it begins, in order."""
    position = 0
    while position + HEADER_BYTES <= len(content):
        try:
            header = check_crc(content, position)
        except InvalidBatch:
            position = _next_candidate(content, position)
            continue
        yield header, content[position : position + header.size]
        position += header.size


def _next_candidate(content: bytes, position: int) -> int:
    """Where the next batch may begin: where this one says that it ends, or at the next magic."""
    try:
        after = position + peek_header(content, position).size
        check_crc(content, after)
    except InvalidBatch:
        found = content.find(_MAGIC, position + 1 + _MAGIC_AT)
        return found - _MAGIC_AT if found >= 0 else len(content)
    return after
