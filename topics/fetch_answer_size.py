"""Fetch answer size: how many bytes an answer has, before it is known whether it may be sent.

Kafka's number: the length prefix and the body, without the header. An answer without its records is
encoded, and their lengths are added, so that megabytes of records are not copied to be counted.
Kafka's counterpart: `FetchResponse.sizeOf`.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from protocol.codec import encode_response
from protocol.messages.fetch import FetchableTopicResponse, FetchResponse
from protocol.names import ApiKey
from protocol.primitives import uvarint

_HEADER_BYTES: Final = 4
_FLEXIBLE_HEADER_BYTES: Final = 5  # with the count of tagged fields


def fetch_answer_size(topics: Sequence[FetchableTopicResponse], api_version: int) -> int:
    """Bytes that the client's quota counts."""
    is_flexible = api_version >= FetchResponse.FLEXIBLE_SINCE
    bare = [
        replace(topic, partitions=[replace(each, records=None) for each in topic.partitions])
        for topic in topics
    ]
    frame = encode_response(ApiKey.FETCH, api_version, 0, FetchResponse(responses=bare))
    size = len(frame) - (_FLEXIBLE_HEADER_BYTES if is_flexible else _HEADER_BYTES)
    for topic in topics:
        for each in topic.partitions:
            if each.records is not None:
                size += len(each.records)
                if is_flexible:  # null has one byte, too
                    size += len(uvarint(len(each.records) + 1)) - 1
    return size
