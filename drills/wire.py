"""Wire: one blocking connection to a broker, request by request, with the project's own codec."""

import select
import socket
import struct
from typing import Final

from protocol.codec import RequestHeader, decode_response, encode_request
from protocol.messages import Request, Response

ANSWER_WITHIN_S: Final = 30.0
_SIZE_BYTES: Final = 4


class BrokenWire(OSError):
    """The connection cannot be made, was closed, or its answer does not come in time."""


class DrillWire:
    """Raises BrokenWire everywhere; then it is of no more use."""

    def __init__(self, address: str, client_id: str, timeout_s: float = ANSWER_WITHIN_S) -> None:
        host, _, port = address.rpartition(":")
        self._client_id = client_id
        self._timeout_s = timeout_s
        self._correlation_id = 0
        self._buffer = bytearray()
        self._asked: list[tuple[type[Response], int, int]] = []
        try:
            self._socket = socket.create_connection((host.strip("[]"), int(port)), timeout_s)
        except (OSError, ValueError) as error:
            raise BrokenWire(str(error)) from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @property
    def is_waiting(self) -> bool:
        """Whether an answer is to come."""
        return bool(self._asked)

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, request: Request, response_class: type[Response], version: int) -> None:
        self._correlation_id += 1
        header = RequestHeader(request.API_KEY, version, self._correlation_id, self._client_id)
        self._asked.append((response_class, version, self._correlation_id))
        try:
            self._socket.sendall(encode_request(header, request))
        except OSError as error:
            raise BrokenWire(str(error)) from None

    def receive(self) -> Response:
        """The answer to the oldest request that was not answered yet."""
        response_class, version, correlation_id = self._asked.pop(0)
        while (frame := self._frame()) is None:
            self._read(self._timeout_s)
        header, response = decode_response(response_class.API_KEY, version, frame, 0, len(frame))
        if header.correlation_id != correlation_id:
            raise BrokenWire("an answer to another request")
        return response

    def has_answer(self, wait_s: float = 0.0) -> bool:
        """Whether the whole answer is there, or comes within this time."""
        while not self._has_frame():
            if not select.select([self._socket], [], [], wait_s)[0]:
                return False
            self._read(self._timeout_s)
            wait_s = 0.0
        return True

    def ask(self, request: Request, response_class: type[Response], version: int) -> Response:
        self.send(request, response_class, version)
        return self.receive()

    def close(self) -> None:
        self._socket.close()

    def reset(self) -> None:
        """Close with an RST instead of a FIN."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def _has_frame(self) -> bool:
        size = int.from_bytes(self._buffer[:_SIZE_BYTES], "big")
        return len(self._buffer) >= _SIZE_BYTES and len(self._buffer) >= _SIZE_BYTES + size

    def _frame(self) -> bytes | None:
        if not self._has_frame():
            return None
        end = _SIZE_BYTES + int.from_bytes(self._buffer[:_SIZE_BYTES], "big")
        frame = bytes(self._buffer[_SIZE_BYTES:end])
        del self._buffer[:end]
        return frame

    def _read(self, timeout_s: float) -> None:
        try:
            self._socket.settimeout(timeout_s)
            piece = self._socket.recv(1 << 20)
        except OSError as error:
            raise BrokenWire(str(error)) from None
        if not piece:
            raise BrokenWire("the broker closed the connection")
        self._buffer += piece
