"""Headers: what precedes the body of every request and every response.

Declared like messages. `codec.py` knows which header goes with which body.
Kafka's counterpart: RequestHeader.json, ResponseHeader.json.

Version notes: each header's newest version has a tag buffer; the client id keeps its old encoding
even then, because a broker must be able to read it before it knows the version.
"""

from typing import Annotated, ClassVar

from protocol.names import ApiKey
from protocol.schema import API_KEY, CLIENT_ID, INT16, INT32, Message


class RequestHeader(Message):
    VERSIONS: ClassVar = range(1, 3)
    FLEXIBLE_SINCE: ClassVar = 2

    api_key: Annotated[ApiKey, API_KEY] = ApiKey.PRODUCE
    api_version: Annotated[int, INT16] = 0
    correlation_id: Annotated[int, INT32] = 0
    client_id: Annotated[str, CLIENT_ID] = ""


class ResponseHeader(Message):
    VERSIONS: ClassVar = range(2)
    FLEXIBLE_SINCE: ClassVar = 1

    correlation_id: Annotated[int, INT32] = 0
