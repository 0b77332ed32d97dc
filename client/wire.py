"""Client wire: requests and answers over one connected socket, blocking, with the project's codec.

Requests may be sent before earlier ones are answered; a broker answers in their order.
"""

import select
import socket
import struct
from typing import Final, TypeVar

from protocol.codec import RequestHeader, decode_response, encode_request
from protocol.messages import Request, Response
from protocol.primitives import Malformed

ANSWER_WITHIN_S: Final = 30.0
FRAME_BYTES_MIN: Final = 4
FRAME_BYTES_MAX: Final = 256 << 20
_READ_BYTES: Final = 1 << 20
_SIZE: Final = struct.Struct(">i")

R = TypeVar("R", bound=Response)


class BrokenWire(OSError):
    """The connection cannot be made, was closed, or its answer does not come in time."""


class WireClosed(BrokenWire):
    """The broker closed the connection."""


class NoAnswer(BrokenWire):
    """The answer does not come in time."""


class NotKafka(BrokenWire):
    """What came cannot be an answer of Kafka's protocol."""


class ClientWire:
    """Every method raises BrokenWire; then the wire is of no more use."""

    def __init__(self, connected: socket.socket, client_id: str, timeout_s: float) -> None:
        """`timeout_s` is for each answer, from when it is waited for."""
        connected.settimeout(timeout_s)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = connected
        self._client_id = client_id
        self._correlation_id = 0
        self._buffer = bytearray()
        self._asked: list[tuple[Request, int, int]] = []

    def send(self, request: Request, version: int) -> None:
        """Raises Unwritable, UnicodeError, struct.error if the request cannot be written."""
        self._correlation_id += 1
        header = RequestHeader(request.API_KEY, version, self._correlation_id, self._client_id)
        frame = encode_request(header, request)
        self._asked.append((request, version, self._correlation_id))
        try:
            self._socket.sendall(frame)
        except OSError as error:
            raise _broken(error) from None

    def receive(self, answer: type[R]) -> R:
        """The answer to the oldest request that was not answered yet."""
        request, version, correlation_id = self._asked.pop(0)
        while not self._has_frame():
            self._read()
        end = _SIZE.size + self._frame_bytes()
        frame = bytes(self._buffer[_SIZE.size : end])
        del self._buffer[:end]
        try:
            header, response = decode_response(request.API_KEY, version, frame, 0, len(frame))
        except Malformed as fault:
            raise BrokenWire(f"{request.API_KEY.name}: {fault}") from None
        if header.correlation_id != correlation_id or not isinstance(response, answer):
            raise BrokenWire("it answered a different request")
        return response

    def ask(self, request: Request, answer: type[R], version: int) -> R:
        self.send(request, version)
        return self.receive(answer)

    def has_answer(self, wait_s: float = 0.0) -> bool:
        """Whether the whole answer is there, or comes within this time. Not for TLS."""
        while not self._has_frame():
            if not select.select([self._socket], [], [], wait_s)[0]:
                return False
            self._read()
            wait_s = 0.0
        return True

    def close(self) -> None:
        self._socket.close()

    def reset(self) -> None:
        """Close with an RST instead of a FIN."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def _has_frame(self) -> bool:
        return len(self._buffer) >= _SIZE.size + self._frame_bytes()

    def _frame_bytes(self) -> int:
        """The least, while the size is not there yet."""
        if len(self._buffer) < _SIZE.size:
            return FRAME_BYTES_MIN
        (size,) = _SIZE.unpack_from(self._buffer)
        if not FRAME_BYTES_MIN <= size <= FRAME_BYTES_MAX:
            raise NotKafka(f"a frame of {size} bytes")
        return int(size)

    def _read(self) -> None:
        try:
            piece = self._socket.recv(_READ_BYTES)
        except OSError as error:
            raise _broken(error) from None
        if not piece:
            raise WireClosed("the broker closed the connection")
        self._buffer += piece


def _broken(error: OSError) -> BrokenWire:
    if isinstance(error, TimeoutError):
        return NoAnswer("the broker does not answer in time")
    return BrokenWire(str(error))


def connect_wire(address: str, client_id: str, timeout_s: float = ANSWER_WITHIN_S) -> ClientWire:
    """To HOST:PORT, without TLS. Raises BrokenWire."""
    host, _, port = address.rpartition(":")
    try:
        connected = socket.create_connection((host.strip("[]"), int(port)), timeout_s)
    except (OSError, ValueError) as error:
        raise BrokenWire(str(error)) from None
    return ClientWire(connected, client_id, timeout_s)
