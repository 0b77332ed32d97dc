"""Wire: one blocking socket, whole frames, the project's own codec.

The codec is under test too: what it sends must be understood by the real Kafka and what Kafka
answers must be read to the last byte, else the recording fails.
"""

import select
import socket
import struct
import time
from typing import Final

from protocol.codec import RequestHeader, decode_response, encode_request
from protocol.messages import Request, Response

ANSWER_WITHIN_S: Final = 60.0
"""How long an answer may take before the script gives up; only a broken broker needs it."""

DELIVERY_S: Final = 0.005
"""A busy machine may deliver an answer after one that left later on another connection."""

_CLIENT_ID_AT: Final = 12
"""Where a framed request has the length of its client id."""


class Closed(Exception):
    """The broker closed the connection."""


class Wire:
    """One connection. `client_id` goes into every header; None is sent as null.

    `host` is the address that it comes from: rights can depend on it.
    """

    def __init__(self, port: int, client_id: str | None, host: str = "127.0.0.1") -> None:
        self.client_id = client_id
        self._correlation_id = 0
        self._buffer = bytearray()
        self._socket = socket.create_connection(
            ("127.0.0.1", port), timeout=ANSWER_WITHIN_S, source_address=(host, 0)
        )
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, request: Request, version: int) -> None:
        self.send_bytes(self.framed(request, version))

    def framed(self, request: Request, version: int) -> bytes:
        """As it is sent, with its size and its header."""
        self._correlation_id += 1
        header = RequestHeader(request.API_KEY, version, self._correlation_id, self.client_id or "")
        frame = encode_request(header, request)
        if self.client_id is None:
            frame = frame[:_CLIENT_ID_AT] + b"\xff\xff" + frame[_CLIENT_ID_AT + 2 :]
        return frame

    def send_frame(self, frame: bytes) -> None:
        self.send_bytes(struct.pack(">i", len(frame)) + frame)

    def send_bytes(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise Closed from error

    def receive(self, response_class: type[Response], version: int) -> Response:
        frame = self.receive_frame()
        header, response = decode_response(response_class.API_KEY, version, frame, 0, len(frame))
        assert header.correlation_id == self._correlation_id, "an answer to another request"
        return response

    def receive_frame(self) -> bytes:
        """The next whole frame. Raises Closed, or TimeoutError when none comes."""
        deadline = time.monotonic() + ANSWER_WITHIN_S
        while (frame := self._take_frame()) is None:
            self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
            self._read_some()
        return frame

    def has_answer(self) -> bool:
        """Whether a whole frame, or the end of the connection, has arrived already."""
        while (taken := self._take_frame()) is None:
            if not select.select([self._socket], [], [], DELIVERY_S)[0]:
                return False
            try:
                self._read_some()
            except Closed:
                return True
        self._buffer[:0] = struct.pack(">i", len(taken)) + taken
        return True

    def fileno(self) -> int:
        """For select: there is something to read."""
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def _read_some(self) -> None:
        try:
            data = self._socket.recv(1 << 20)
        except ConnectionError as error:
            raise Closed from error
        if not data:
            raise Closed
        self._buffer += data

    def _take_frame(self) -> bytes | None:
        if len(self._buffer) < 4:
            return None
        size = int.from_bytes(self._buffer[:4], "big")
        if len(self._buffer) < 4 + size:
            return None
        frame = bytes(self._buffer[4 : 4 + size])
        del self._buffer[: 4 + size]
        return frame
