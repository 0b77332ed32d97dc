"""Recorded rights: each served request is in the transcripts of who may do what."""

import re
from typing import Final

from protocol.api_versions import REQUESTS
from protocol.names import ApiKey
from tests.compare import recordings

CHAPTERS: Final = ("group_rights", "topic_rights")

ASK_FOR_NO_RIGHT: Final = {
    ApiKey.API_VERSIONS,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
    # Kafka refuses these by the kind of the connection, before any right.
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
}


def test_each_served_request_was_recorded_without_its_rights() -> None:
    asked = {
        found[1].upper()
        for chapter in CHAPTERS
        for lines in recordings.transcripts(chapter).values()
        for line in lines
        if (found := re.match(r"\w+> ([A-Za-z]+) v\d+", line))
    }
    missing = {key.name for key in REQUESTS if key.name.replace("_", "") not in asked}
    assert missing == {key.name for key in ASK_FOR_NO_RIGHT}
