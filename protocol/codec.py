"""What did the peer say, and how is it answered: a frame's bytes <-> header and message?

The step of the road between `framing.py` and the dispatch. `decode_request` finds the reader of
(api key, version) in a table that fills itself; a request's header and body are read by one
compiled function, and an answer's frame, header and body are written by one.

Every fault of the peer is `Malformed`, whose text is the named cause: Kafka answers none of them
and closes the connection. The exception is ApiVersions in a version that nobody serves yet: only
its header is read, and the answer is written in v0 (see `api_versions.py`).
Kafka's counterpart: `RequestHeader.parse`, `RequestContext.parseRequest`, `AbstractResponse`.
"""

import struct
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from protocol.api_names import api_name
from protocol.compiler import layout
from protocol.headers import RequestHeader, ResponseHeader
from protocol.messages import REQUESTS, RESPONSES, Request, Response
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.names import ApiKey
from protocol.primitives import Malformed, Unwritable
from protocol.reader_source import compile_reader
from protocol.source import MessageLayout
from protocol.truncation import truncated
from protocol.writer_source import compile_writer

__all__ = [
    "Malformed",
    "RequestHeader",
    "ResponseHeader",
    "UnknownApiKey",
    "UnsupportedVersion",
    "Unwritable",
    "decode_request",
    "decode_response",
    "encode_request",
    "encode_response",
]

_KEY_AND_VERSION: Final = struct.Struct(">hh")
_CLIENT_ID_LENGTH: Final = struct.Struct(">h")

CLIENT_ID_SHOWN_MAX: Final = 80
"""Characters of a client id in the text of a fault; a line of the log is for reading."""


class UnknownApiKey(Malformed):
    """A request that we do not serve, and have not offered."""


class UnsupportedVersion(Malformed):
    """A request that we serve, in a version that we have not offered."""


# Compiled functions by api key and version; each is made when it is first missed. Requests are
# found by the four bytes that they begin with, which is quicker than to read two numbers of them.
_Functions = dict[tuple[int, int], Callable[..., Any]]
_request_readers: Final[dict[bytes, Callable[..., Any]]] = {}
_request_writers: Final[_Functions] = {}
_response_readers: Final[_Functions] = {}
_response_writers: Final[_Functions] = {}


def decode_request(buf: bytes, start: int, end: int) -> tuple[RequestHeader, Request]:
    """Read the frame buf[start:end]. An ApiVersions of an unserved version comes back empty."""
    read = _request_readers.get(buf[start : start + 4]) or _find_request_reader(buf, start, end)
    header_and_body: tuple[RequestHeader, Request] = read(buf, start, end)
    return header_and_body


def encode_response(
    api_key: ApiKey, api_version: int, correlation_id: int, response: Response
) -> bytes:
    """The whole frame of an answer, size included; the client's own words are cut to fit."""
    key = (api_key, api_version)
    write = _response_writers.get(key) or _find_response_writer(*key)
    try:
        frame: bytes = write(correlation_id, response)
    except Unwritable:
        frame = write(correlation_id, truncated(response))
    return frame


def encode_request(header: RequestHeader, request: Request) -> bytes:
    """The whole frame of a request, size included: what a client sends."""
    key = (header.api_key, header.api_version)
    if key not in _request_writers:
        _request_writers[key] = compile_writer(_request_layouts(*key), framed=True)
    frame: bytes = _request_writers[key](
        header.api_key, header.api_version, header.correlation_id, header.client_id, request
    )
    return frame


def decode_response(
    api_key: ApiKey, api_version: int, buf: bytes, start: int, end: int
) -> tuple[ResponseHeader, Response]:
    """Read the frame buf[start:end] of an answer: what a client receives."""
    key = (api_key, api_version)
    if key not in _response_readers:
        _response_readers[key] = compile_reader(_response_layouts(*key))
    header_and_body: tuple[ResponseHeader, Response] = _response_readers[key](buf, start, end)
    return header_and_body


def _find_request_reader(buf: bytes, start: int, end: int) -> Callable[..., Any]:
    if end - start < _KEY_AND_VERSION.size:
        raise Malformed(f"a request of {end - start} bytes")
    api_key, version = _KEY_AND_VERSION.unpack_from(buf, start)
    try:
        cls = REQUESTS[ApiKey(api_key)]
    except ValueError:
        raise UnknownApiKey(_asked(buf, start, end)) from None
    if version in cls.VERSIONS:
        read = compile_reader(_request_layouts(ApiKey(api_key), version), bounded=True)
        _request_readers[_KEY_AND_VERSION.pack(api_key, version)] = read
        return read
    if cls is ApiVersionsRequest:
        return _read_unserved_api_versions
    raise UnsupportedVersion(_asked(buf, start, end))


def _asked(buf: bytes, start: int, end: int) -> str:
    """Who asked for what in vain: every header since v1 has its client id in the same place."""
    api_key, version = _KEY_AND_VERSION.unpack_from(buf, start)
    asked = f"{api_name(api_key)}, version {version}"
    client_id = _CLIENT_ID_LENGTH.unpack_from(buf, start + 8) if end - start >= 10 else (-1,)
    size = client_id[0]
    if not 0 <= size <= end - start - 10:
        return asked
    shown = buf[start + 10 : start + 10 + size].decode("utf-8", "replace")
    if len(shown) > CLIENT_ID_SHOWN_MAX:
        shown = f"{shown[:CLIENT_ID_SHOWN_MAX]}..."
    return f"{asked}, client id {shown!r}"


def _find_response_writer(api_key: ApiKey, version: int) -> Callable[..., Any]:
    if api_key is ApiKey.API_VERSIONS and version not in ApiVersionsResponse.VERSIONS:
        version = 0
    write = compile_writer(_response_layouts(api_key, version), framed=True)
    _response_writers[api_key, version] = write
    return write


def _read_unserved_api_versions(
    buf: bytes, start: int, end: int
) -> tuple[RequestHeader, ApiVersionsRequest]:
    """Read the header alone: what follows it may be of a shape that we cannot know."""
    _, version = _KEY_AND_VERSION.unpack_from(buf, start)
    read = _header_reader(2 if version >= ApiVersionsRequest.FLEXIBLE_SINCE else 1)
    return read(buf, start, end), ApiVersionsRequest()


@cache
def _header_reader(version: int) -> Callable[..., Any]:
    return compile_reader([layout(RequestHeader, version)], bounded=True)


def _request_layouts(api_key: ApiKey, version: int) -> list[MessageLayout]:
    cls = REQUESTS[api_key]
    return [layout(RequestHeader, 2 if version >= cls.FLEXIBLE_SINCE else 1), layout(cls, version)]


def _response_layouts(api_key: ApiKey, version: int) -> list[MessageLayout]:
    cls = RESPONSES[api_key]
    # A client must be able to read ApiVersions' header before it knows what we speak.
    flexible = version >= cls.FLEXIBLE_SINCE and api_key is not ApiKey.API_VERSIONS
    return [layout(ResponseHeader, 1 if flexible else 0), layout(cls, version)]
