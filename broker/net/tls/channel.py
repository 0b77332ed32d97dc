"""TLS channel: stands between a socket and its connection, and is the connection's transport.

Bytes of the socket go through OpenSSL in memory. Handshakes take turns (`handshakes.py`); what
comes after them is decrypted at once, unless that takes too long: then the rest takes turns too.
The connection sees plain bytes, and the same end: a FIN or a close_notify of the peer is an EOF,
and its earlier requests are still answered.
Kafka's counterpart: `SslTransportLayer`.
"""

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol, cast

from broker.net.tls.handshakes import HandshakeQueue
from broker.net.tls.records import RecordCutter

READ_BYTES: Final = 262_144
"""Decrypted at a time, which is at most one record."""

WAITING_BYTES_MAX: Final = 65_536
"""Bytes of a client that wait for their turn; beyond it the socket is not read."""

DECRYPT_TURN_S: Final = 0.001
"""Of one channel, then the others have theirs. 256 KB in full records take a third of it."""

EMPTY_RECORDS_MAX: Final = 100
PLAIN_BYTES_PER_EMPTY_RECORD: Final = 16_384
"""Records without data after the handshake (KeyUpdate, renegotiations): so many, and one more for
each so many bytes of data. A client that sends more is cut off."""


class PlainConnection(Protocol):
    """The connection above, an `asyncio.Protocol` that decides also when a handshake is done."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None: ...

    def data_received(self, data: bytes) -> None: ...

    def eof_received(self) -> bool | None: ...

    def connection_lost(self, exc: Exception | None) -> None: ...

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...

    def secured(self, certificate: bytes | None) -> bool:
        """The handshake is done, with the client's certificate in DER; False: refuse it."""

    def handshake_failed(self, reason: str) -> None: ...


class TlsChannel(asyncio.Transport, asyncio.Protocol):
    """`_plain` is above, `_raw` below."""

    def __init__(
        self, plain: PlainConnection, context: Callable[[], ssl.SSLContext], queue: HandshakeQueue
    ) -> None:
        super().__init__()
        self._plain = plain
        self._queue = queue
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context().wrap_bio(self._in, self._out, server_side=True)
        self._raw: asyncio.Transport | None = None
        self._received = bytearray()  # not given to OpenSSL yet
        self._records = RecordCutter()
        self._is_ready = False  # the handshake is done
        self._is_over = False  # nothing more is read
        self._is_closing = False
        self._has_ended = False  # the peer has sent a FIN
        self._is_waiting = False  # for a turn
        self._is_plain_paused = False  # the connection wants nothing more for now
        self._is_held = False  # the socket is not read
        self._data_records = 0
        self._data_bytes = 0

    # The socket's side.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._raw = cast("asyncio.Transport", transport)
        self._plain.connection_made(self)

    def data_received(self, data: bytes) -> None:
        if self._is_over:
            return
        self._received += data
        if self._is_ready and not self._is_waiting:
            self._decrypt()
        else:
            self._wait()
        self._hold()

    def eof_received(self) -> bool:
        self._has_ended = True
        if self._is_ready and not self._received:
            return self._end()
        self._wait()  # the end of the handshake and a request may have come with it
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_over = True
        self._queue.forget(self)
        self._plain.connection_lost(exc)

    def pause_writing(self) -> None:
        self._plain.pause_writing()

    def resume_writing(self) -> None:
        self._plain.resume_writing()

    def _wait(self) -> None:
        self._is_waiting = True
        self._queue.add(self)

    def _hold(self) -> None:
        """Read the socket, or read it no more for now."""
        is_held = self._is_plain_paused or len(self._received) > WAITING_BYTES_MAX
        raw = self._raw
        if raw is None or raw.is_closing() or self._has_ended or is_held == self._is_held:
            return
        self._is_held = is_held
        if is_held:
            raw.pause_reading()
        else:
            raw.resume_reading()

    # Turns.

    def step(self) -> None:
        """As `Handshaking`."""
        self._is_waiting = False
        if self._is_over or self._raw is None:
            return
        if self._is_ready:
            self._decrypt()
        else:
            self._handshake()
        self._hold()

    def _feed(self) -> bool:
        """Give OpenSSL the next records; False without any."""
        taken = self._records.take(self._received)
        if taken:
            self._in.write(taken)
        return bool(taken)

    def _handshake(self) -> None:
        is_fed = self._feed()
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            if is_fed and self._received:
                self._wait()
            elif self._has_ended:
                self._refuse("unexpected eof" if self._records.count else "")
        except (ssl.SSLError, OSError) as error:
            self._flush()  # the alert
            self._refuse(_reason(error))
        else:
            self._flush()
            self._is_ready = True
            self._data_records = self._records.count
            certificate = self._tls.getpeercert(binary_form=True)
            if self._plain.secured(certificate):
                self._decrypt()
            else:
                self.close()

    def _refuse(self, reason: str) -> None:
        """Without a reason: a client that has only looked whether the port is open."""
        self._is_over = True
        if reason:
            self._plain.handshake_failed(reason)
        if self._raw is not None:
            self._raw.close()

    def _decrypt(self) -> None:
        """Give what can be decrypted to the connection."""
        pieces: list[bytes] = []
        end: Exception | None = None
        is_all = False
        ends_s = self._queue.stopwatch() + DECRYPT_TURN_S
        while not self._is_plain_paused:
            is_fed = self._feed()
            end = self._read(pieces)
            is_all = not is_fed or not self._received
            if end is not None or is_all:
                break
            if self._queue.stopwatch() >= ends_s:
                self._wait()
                break
        self._flush()
        self._count(pieces)
        if pieces:
            self._plain.data_received(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        if self._is_over:
            return
        if end is None and self._has_too_many_empty:
            end = ssl.SSLError(1, "too many records without data")
        if isinstance(end, ssl.SSLZeroReturnError) or (end is None and is_all and self._has_ended):
            self._end()
        elif end is not None:
            self._is_over = True
            self._plain.handshake_failed(_reason(end))
            self.abort()

    def _read(self, pieces: list[bytes]) -> Exception | None:
        """Decrypt what OpenSSL has; what ended it: SSLZeroReturnError is a close_notify."""
        while True:
            try:
                piece = self._tls.read(READ_BYTES)
            except ssl.SSLWantReadError:
                return None
            except (ssl.SSLError, OSError) as error:
                return error
            if not piece:
                return ssl.SSLZeroReturnError()
            pieces.append(piece)

    def _count(self, pieces: list[bytes]) -> None:
        self._data_records += len(pieces)
        self._data_bytes += sum(map(len, pieces))

    @property
    def _has_too_many_empty(self) -> bool:
        empty = self._records.count - self._data_records
        return empty > EMPTY_RECORDS_MAX + self._data_bytes // PLAIN_BYTES_PER_EMPTY_RECORD

    def _end(self) -> bool:
        """The peer asks nothing more."""
        if self._is_over:
            return True
        self._is_over = True
        return bool(self._plain.eof_received())

    def _flush(self) -> None:
        if self._raw is not None and self._out.pending:
            self._raw.write(self._out.read())

    # The connection's side: an asyncio.Transport.

    def get_extra_info(self, name: str, default: object = None) -> object:
        return default if self._raw is None else self._raw.get_extra_info(name, default)

    def is_closing(self) -> bool:
        return self._is_closing

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        assert self._raw is not None, "the connection is made"
        self._raw.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        return 0 if self._raw is None else self._raw.get_write_buffer_size()

    def pause_reading(self) -> None:
        self._is_plain_paused = True
        self._hold()

    def resume_reading(self) -> None:
        self._is_plain_paused = False
        if self._received and not self._is_over:
            self._wait()
        self._hold()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._is_closing or not self._is_ready:
            return
        try:
            self._tls.write(data)
        except (ssl.SSLError, OSError):
            self.abort()
            return
        self._flush()

    def close(self) -> None:
        """Say close_notify behind what was written, then close the socket."""
        if self._is_closing or self._raw is None:
            return
        self._is_closing = self._is_over = True
        if self._is_ready:
            with suppress(ssl.SSLError, OSError):  # the peer need not answer it
                self._tls.unwrap()
            self._flush()
        self._raw.close()

    def abort(self) -> None:
        self._is_closing = self._is_over = True
        if self._raw is not None:
            self._raw.abort()


def _reason(error: Exception) -> str:
    """OpenSSL's words without its place in OpenSSL's sources."""
    reason = getattr(error, "reason", None)
    verify = getattr(error, "verify_message", "")
    words = str(reason or error).lower().replace("_", " ")
    return f"{words}: {verify}" if verify else words
