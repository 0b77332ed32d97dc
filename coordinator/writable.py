"""Refusals of what cannot be written: can records and answers hold these ids and names?

Kafka's strings end at 32,767 bytes of UTF-8. A frame cannot hold a longer one, and yet it can be
the cause of one: a byte that is no UTF-8 becomes U+FFFD, three bytes, when it is read; and a member
id is the client's own name with a UUID behind it. So each request is looked at before its turn. The
doors of transfer/ ask `unwritable_offset`: nothing gets into a log that a load would refuse.
Kafka's counterpart: none; it finds out when it serializes the record, takes back what the request
changed, and answers UNKNOWN_SERVER_ERROR.
"""

from typing import Final

from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest
from protocol.names import UNKNOWN_MEMBER_ID
from protocol.primitives import STRING_MAX_BYTES, STRING_SAFE_CHARS, fits_string
from seams.reply_token import ReplyToken

MEMBER_ID_SUFFIX_BYTES: Final = 37
"""What a new member id has behind the client's name: a hyphen, and a UUID in its 36 characters."""

_NAME_LENGTH_BYTES_MAX: Final = 3
"""Before each name in a list of them: its length, in seven bits of each byte."""


def is_unwritable_join(request: JoinGroupRequest, token: ReplyToken) -> bool:
    """Would a group with this member be one that no record can hold?"""
    name = token.client_id
    if request.group_instance_id is not None:
        if not fits_string(request.group_instance_id):
            return True
        name = request.group_instance_id
    if not (
        fits_string(request.group_id)
        and fits_string(request.member_id)
        and fits_string(request.protocol_type)
        and fits_string(token.client_id)
    ):
        return True
    if request.member_id == UNKNOWN_MEMBER_ID and not _fits_as_member_id(name):
        return True
    for protocol in request.protocols:  # noqa: SIM110 - for each join; compiled, `all` is slower
        if not fits_string(protocol.name):
            return True
    return False


def is_unwritable_heartbeat(
    request: ConsumerGroupHeartbeatRequest, token: ReplyToken, batch_bytes_max: int
) -> bool:
    """Would a consumer group with this member be one that no record can hold?

    Strings of flexible records may be longer than those of others; answers and offsets that name
    the member and the group may not. All names that it subscribes to are in one record.
    """
    named = [request.group_id, request.member_id, token.client_id]
    optional = (
        request.instance_id,
        request.rack_id,
        request.subscribed_topic_regex,
        request.server_assignor,
    )
    named += [text for text in optional if text is not None]
    names = set(request.subscribed_topic_names or ())
    if not all(map(fits_string, (*named, *names))):
        return True
    return sum(len(name.encode()) + _NAME_LENGTH_BYTES_MAX for name in names) > batch_bytes_max


def _fits_as_member_id(name: str) -> bool:
    longest = STRING_MAX_BYTES - MEMBER_ID_SUFFIX_BYTES
    return len(name) < STRING_SAFE_CHARS - MEMBER_ID_SUFFIX_BYTES or len(name.encode()) <= longest


def unwritable_offset(group_id: str, topic: str, metadata: str) -> str | None:
    """Which part of a committed offset no record can hold, for people; None if all is well.

    Half of a surrogate pair, which JSON can name, is no character of UTF-8.
    """
    for what, text in (("group id", group_id), ("topic name", topic), ("metadata", metadata)):
        try:
            size = len(text.encode())
        except UnicodeEncodeError:
            return f"the {what} is not valid text: it has half of a surrogate pair"
        if size > STRING_MAX_BYTES:
            return f"the {what} has {size} bytes of UTF-8; Kafka's limit is {STRING_MAX_BYTES}"
    return None
