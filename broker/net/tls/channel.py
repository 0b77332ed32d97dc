"""TLS channel: stands between a socket and its connection, and is the connection's transport.

Bytes of the socket go through OpenSSL in memory. Handshakes take turns (`handshakes.py`); what
comes after them is decrypted at once. The connection sees plain bytes, and the same end: a FIN or a
close_notify of the peer is an EOF, and its earlier requests are still answered.
Kafka's counterpart: `SslTransportLayer`.
"""

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol, cast

from broker.net.tls.handshakes import HandshakeQueue

READ_BYTES: Final = 262_144
"""Decrypted at a time."""

HANDSHAKE_BYTES_MAX: Final = 65_536
"""Unread bytes of a client whose handshake waits for its turn; beyond it the socket is not read."""


UNASKED_BYTES_MAX: Final = 65_536
"""What OpenSSL answers by itself (to KeyUpdate, to renegotiations) between two pieces of plain
bytes; a client that asks for more without ever sending a request is cut off."""


class PlainConnection(Protocol):
    """The connection above, an `asyncio.Protocol` that decides also when a handshake is done."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None: ...

    def data_received(self, data: bytes) -> None: ...

    def eof_received(self) -> bool: ...

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
        self._is_ready = False  # the handshake is done
        self._is_over = False  # nothing more is read
        self._is_closing = False
        self._has_ended = False  # the peer has sent a FIN
        self._unasked_bytes = 0
        self._is_held = False  # the socket is not read, because the handshake waits for its turn

    # The socket's side.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._raw = cast("asyncio.Transport", transport)
        self._plain.connection_made(self)

    def data_received(self, data: bytes) -> None:
        if self._is_over:
            return
        self._in.write(data)
        if self._is_ready:
            self._decrypt()
            return
        self._queue.add(self)
        if self._in.pending > HANDSHAKE_BYTES_MAX and self._raw is not None:
            self._is_held = True
            self._raw.pause_reading()

    def eof_received(self) -> bool:
        self._has_ended = True
        self._in.write_eof()
        if self._is_ready:
            return self._end()
        self._queue.add(self)  # the end of the handshake and a request may have come with it
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_over = True
        self._queue.forget(self)
        self._plain.connection_lost(exc)

    def pause_writing(self) -> None:
        self._plain.pause_writing()

    def resume_writing(self) -> None:
        self._plain.resume_writing()

    # The handshake.

    def step(self) -> None:
        """As `Handshaking`."""
        if self._is_over or self._is_ready or self._raw is None:
            return
        if self._is_held:
            self._is_held = False
            self._raw.resume_reading()
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
        except (ssl.SSLError, OSError) as error:
            self._flush()  # the alert
            self._is_over = True
            self._plain.handshake_failed(_reason(error))
            self._raw.close()
        else:
            self._flush()
            self._is_ready = True
            certificate = self._tls.getpeercert(binary_form=True)
            if self._plain.secured(certificate):
                self._decrypt()
            else:
                self.close()

    def _decrypt(self) -> None:
        """Give what can be decrypted to the connection."""
        pieces: list[bytes] = []
        is_at_end = False
        failure: Exception | None = None
        while True:
            try:
                piece = self._tls.read(READ_BYTES)
            except ssl.SSLWantReadError:
                break
            except ssl.SSLZeroReturnError:
                is_at_end = True
                break
            except ssl.SSLEOFError:  # a FIN without a close_notify
                is_at_end = self._has_ended
                break
            except (ssl.SSLError, OSError) as error:
                failure = error
                break
            if not piece:
                is_at_end = True
                break
            pieces.append(piece)
        self._unasked_bytes = 0 if pieces else self._unasked_bytes + self._out.pending
        if self._unasked_bytes > UNASKED_BYTES_MAX:
            failure = ssl.SSLError("too many key updates")
        self._flush()
        if pieces:
            self._plain.data_received(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        if failure is not None and not self._is_over:
            self._is_over = True
            self._plain.handshake_failed(_reason(failure))
            self.abort()
        elif is_at_end:
            self._end()

    def _end(self) -> bool:
        """The peer asks nothing more."""
        if self._is_over:
            return True
        self._is_over = True
        return self._plain.eof_received()

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
        if self._raw is not None and not self._raw.is_closing():
            self._raw.pause_reading()

    def resume_reading(self) -> None:
        if self._raw is not None and not self._raw.is_closing():
            self._raw.resume_reading()

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
