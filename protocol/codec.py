"""Codec: decodes a frame into header and message, and encodes them again.

The step between `framing.py` and the dispatcher. `RequestDecoder` looks up the reader of
(api key, version) in a table that is filled on first use. One compiled function reads the header
and the body of a request; one writes the size, the header and the body of a response.

Every protocol error of the peer is `Malformed`, whose text is the cause. As in Kafka it gets no
response, and the connection is closed. The exception is ApiVersions in an unknown version: only its
header is read, and the response is written in v0 (see `api_versions.py`).
Kafka's counterpart: `RequestHeader.parse`, `RequestContext.parseRequest`, `AbstractResponse`.
"""

import struct
from collections.abc import Callable, Container
from functools import cache
from typing import Any, Final

from protocol.api_names import api_name
from protocol.compiled_codec import reader_in_c, writer_in_c
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
    "RequestDecoder",
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
"""Characters of a client id in the text of a fault; longer ones are cut in the log."""


class UnknownApiKey(Malformed):
    """A request that is not served."""


class UnsupportedVersion(Malformed):
    """A request that is served, in a version that is not."""


# Compiled functions by api key and version, made on first use.
_Functions = dict[tuple[int, int], Callable[..., Any]]
_request_writers: Final[_Functions] = {}
_response_readers: Final[_Functions] = {}
_response_writers: Final[_Functions] = {}


class RequestDecoder:
    """Decodes the requests of the APIs in `served`; every other one is an unknown api key."""

    __slots__ = ("_readers", "_served")

    def __init__(self, served: Container[int] = REQUESTS) -> None:
        self._served = served
        # By the first four bytes, which is faster than to unpack two numbers.
        self._readers: dict[bytes, Callable[..., Any]] = {}

    def decode(self, buf: bytes, start: int, end: int) -> tuple[RequestHeader, Request]:
        """Read the frame buf[start:end]. An ApiVersions of an unserved version comes back empty."""
        read = self._readers.get(buf[start : start + 4]) or self._find_reader(buf, start, end)
        header_and_body: tuple[RequestHeader, Request] = read(buf, start, end)
        return header_and_body

    def _find_reader(self, buf: bytes, start: int, end: int) -> Callable[..., Any]:
        if end - start < _KEY_AND_VERSION.size:
            raise Malformed(f"a request of {end - start} bytes")
        api_key, version = _KEY_AND_VERSION.unpack_from(buf, start)
        if api_key not in self._served:
            raise UnknownApiKey(_asked(buf, start, end))
        cls = REQUESTS[ApiKey(api_key)]
        if version in cls.VERSIONS:
            read = _request_reader(ApiKey(api_key), version)
            self._readers[_KEY_AND_VERSION.pack(api_key, version)] = read
            return read
        if cls is ApiVersionsRequest:
            return _read_unserved_api_versions
        raise UnsupportedVersion(_asked(buf, start, end))


decode_request: Final = RequestDecoder().decode
"""Decodes a request of every API that is declared."""


def encode_response(
    api_key: ApiKey, api_version: int, correlation_id: int, response: Response
) -> bytes:
    """The frame of a response, size included. Strings that are too long are truncated."""
    key = (api_key, api_version)
    write = _response_writers.get(key) or _find_response_writer(*key)
    try:
        frame: bytes = write(correlation_id, response)
    except Unwritable:
        frame = write(correlation_id, truncated(response))
    return frame


def encode_request(header: RequestHeader, request: Request) -> bytes:
    """The frame of a request, size included: what a client sends."""
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
    """Read the frame buf[start:end] of a response: what a client receives."""
    key = (api_key, api_version)
    if key not in _response_readers:
        _response_readers[key] = compile_reader(_response_layouts(*key))
    header_and_body: tuple[ResponseHeader, Response] = _response_readers[key](buf, start, end)
    return header_and_body


@cache
def _request_reader(api_key: ApiKey, version: int) -> Callable[..., Any]:
    def generated() -> Callable[..., Any]:
        return compile_reader(_request_layouts(api_key, version), bounded=True)

    return reader_in_c(api_key, version, generated)


def _asked(buf: bytes, start: int, end: int) -> str:
    """The API, version and client id of a refused request. All headers have the id in one place."""
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

    def generated() -> Callable[..., Any]:
        return compile_writer(_response_layouts(api_key, version), framed=True)

    write = writer_in_c(api_key, version, generated)
    _response_writers[api_key, version] = write
    return write


def _read_unserved_api_versions(
    buf: bytes, start: int, end: int
) -> tuple[RequestHeader, ApiVersionsRequest]:
    """Read the header alone: the format of the body is not known."""
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
    # A client must be able to read ApiVersions' header before it knows the versions.
    flexible = version >= cls.FLEXIBLE_SINCE and api_key is not ApiKey.API_VERSIONS
    return [layout(ResponseHeader, 1 if flexible else 0), layout(cls, version)]
