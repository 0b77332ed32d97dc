"""Channel: questions and answers over a socket, one JSON object a line, one question at a time."""

import json
import socket
import threading
from collections.abc import Mapping, Sequence
from typing import Final

_PIECE_BYTES: Final = 1 << 16


class ChannelClosed(Exception):
    """The other end is gone."""


class Channel:
    """One end of a socket pair; threads may share it."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._lock = threading.Lock()
        self._received = b""
        self._asked = 0

    def ask(
        self, question: Mapping[str, object], descriptors: Sequence[int] = ()
    ) -> dict[str, object]:
        """The answer; the descriptors go with the question. Raises ChannelClosed, TimeoutError."""
        with self._lock:
            self._asked += 1
            line = json.dumps({**question, "id": self._asked}).encode() + b"\n"
            try:
                if descriptors:
                    sent = socket.send_fds(self._socket, [line], list(descriptors))
                    line = line[sent:]
                self._socket.sendall(line)
            except TimeoutError:
                raise
            except OSError as error:
                raise ChannelClosed(str(error)) from None
            # An earlier question may have been interrupted (Ctrl-C, pytest-timeout).
            while (answer := self._read()).get("id") != self._asked:
                continue
            return answer

    def receive(self) -> dict[str, object]:
        """What the other end says by itself. Raises ChannelClosed, TimeoutError."""
        with self._lock:
            return self._read()

    def set_timeout(self, seconds: float | None) -> None:
        """For each answer, from now on."""
        self._socket.settimeout(seconds)

    def close(self) -> None:
        self._socket.close()

    def _read(self) -> dict[str, object]:
        while b"\n" not in self._received:
            try:
                piece = self._socket.recv(_PIECE_BYTES)
            except TimeoutError:
                raise
            except OSError as error:
                raise ChannelClosed(str(error)) from None
            if not piece:
                raise ChannelClosed("the other end has closed it")
            self._received += piece
        line, _, self._received = self._received.partition(b"\n")
        answer: dict[str, object] = json.loads(line)
        return answer
