"""Wire tap: a proxy between clients and the daemon that reads JoinGroup's answers.

Clients know no other address: the daemon advertises the tap's. Each answer that begins a generation
is noted with its time, so that a test can say which generations there were.
"""

import contextlib
import socket
import struct
import threading
import time
from typing import Final

JOIN_GROUP: Final = 11
_HEAD: Final = struct.Struct(">hhi")  # api key, version, correlation id
_ANSWER: Final = struct.Struct(">hi")  # error code, generation


class WireTap:
    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.target = ("", 0)
        self.answers: list[tuple[float, int]] = []  # (monotonic seconds, generation)
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def generations(self) -> set[int]:
        return {generation for _, generation in self.answers}

    def seen_by_a_poller(self, every_s: float) -> set[int]:
        """The generations that would have been current whenever somebody looked."""
        began_s = min(at for at, _ in self.answers)
        ended_s = max(at for at, _ in self.answers)
        polls = [began_s + n * every_s for n in range(1 + int((ended_s - began_s) / every_s))]
        return {max(g for at, g in self.answers if at <= poll) for poll in polls}

    def close(self) -> None:
        for sock in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                sock.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self.target, timeout=60)
            except OSError:
                client.close()  # the daemon is down: so is what stands before it
                continue
            server.settimeout(None)
            self._sockets += [client, server]
            joins: dict[int, int] = {}
            for source, sink, read in (
                (client, server, self._read_request),
                (server, client, self._read_answer),
            ):
                arguments = (source, sink, read, joins)
                threading.Thread(target=self._pump, args=arguments, daemon=True).start()

    def _pump(self, source, sink, read, joins: dict[int, int]) -> None:
        pending = b""
        with contextlib.suppress(OSError):
            while piece := source.recv(65_536):
                pending += piece
                while len(pending) >= 4 and len(pending) >= 4 + int.from_bytes(pending[:4], "big"):
                    size = int.from_bytes(pending[:4], "big")
                    read(pending[4 : 4 + size], joins)
                    pending = pending[4 + size :]
                sink.sendall(piece)
        for sock in (source, sink):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _read_request(self, frame: bytes, joins: dict[int, int]) -> None:
        api_key, version, correlation_id = _HEAD.unpack_from(frame)
        if api_key == JOIN_GROUP:
            joins[correlation_id] = version

    def _read_answer(self, frame: bytes, joins: dict[int, int]) -> None:
        version = joins.pop(int.from_bytes(frame[:4], "big"), None)
        if version is None:
            return
        place = 4 + (1 if version >= 6 else 0) + (4 if version >= 2 else 0)
        error_code, generation = _ANSWER.unpack_from(frame, place)
        if error_code == 0:
            self.answers.append((time.monotonic(), generation))
