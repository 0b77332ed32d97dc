"""Scraping: /metrics is rendered in pieces, so that no heartbeat waits for a scrape.

A `Rendering` makes the exposition piece by piece, each about half a millisecond of work; between
two pieces the event loop serves its sockets. Compression runs in a thread. Concurrent scrapers
share a running rendering; those of another form wait until it is done. So any number of scrapers
costs one rendering. The samples are read one by one within the time of that rendering.
"""

import asyncio
import zlib
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Final, NamedTuple

from broker.metrics.scrape import Metrics, exposition
from broker.observe.stats import LoopStalls

CHUNK_CHARS: Final = 65_536
"""As much is handed to the socket, or to the compressor, at one time."""

GZIP_LEVEL: Final = 1  # Series compress twentyfold as it is; every further level costs CPU.
_GZIP_WBITS: Final = 16 + zlib.MAX_WBITS

TEXT_TYPE: Final = "text/plain"
OPENMETRICS_TYPE: Final = "application/openmetrics-text"
CONTENT_TYPES: Final = {
    False: f"{TEXT_TYPE}; version=0.0.4; charset=utf-8",
    True: f"{OPENMETRICS_TYPE}; version=1.0.0; charset=utf-8",
}


class Form(NamedTuple):
    """What a scraper asks for."""

    openmetrics: bool = False
    gzip: bool = False

    @property
    def headers(self) -> dict[str, str]:
        headers = {"Content-Type": CONTENT_TYPES[self.openmetrics], "Vary": "Accept"}
        if self.gzip:
            headers["Content-Encoding"] = "gzip"
        return headers


def negotiate(accept: str, accept_encoding: str) -> Form:
    """The form by the request's headers; without any, Prometheus' own text, uncompressed."""
    wanted = _preferences(accept)
    plain = max(wanted.get(TEXT_TYPE, 0.0), wanted.get("text/*", 0.0), wanted.get("*/*", 0.0))
    encodings = _preferences(accept_encoding)
    return Form(
        openmetrics=wanted.get(OPENMETRICS_TYPE, 0.0) > plain,
        gzip=encodings.get("gzip", encodings.get("*", 0.0)) > 0.0,
    )


def _preferences(header: str) -> dict[str, float]:
    """What a header lists, with the highest q of each."""
    found: dict[str, float] = {}
    for entry in header.lower().split(","):
        name, *parameters = (part.strip() for part in entry.split(";"))
        quality = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                try:
                    quality = float(parameter[2:])
                except ValueError:
                    quality = 0.0
        found[name] = max(quality, found.get(name, 0.0))
    return found


class Rendering:
    """One exposition in the making. `chunks` may be read by many, each at its own pace."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self._chunks: list[bytes] = []
        self._is_done = False
        self._failure: Exception | None = None
        self._grown = asyncio.Event()
        self.readers = 0

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """From the first one on, as they are made. Raises what the rendering failed with."""
        at = 0
        while True:
            while at < len(self._chunks):
                yield self._chunks[at]
                at += 1
            if self._is_done:
                break
            await self._grown.wait()
        if self._failure is not None:
            raise self._failure

    async def make(self, pieces: Iterator[str | None], stalls: LoopStalls) -> None:
        buffered: list[str] = []
        size = 0
        pack = _Packer() if self.form.gzip else None
        try:
            while True:
                began_s = stalls.begin()
                piece = next(pieces, _END)
                if piece is _END:
                    break
                if piece is not None:
                    buffered.append(piece)
                    size += len(piece)
                    if size >= CHUNK_CHARS:
                        await self._add("".join(buffered), pack)
                        buffered, size = [], 0
                stalls.end("scrape", began_s)
                await asyncio.sleep(0)
            await self._add("".join(buffered), pack)
            if pack is not None:
                self._append(await pack.end())
        except Exception as failure:  # noqa: BLE001 - whatever it is, each reader is to hear of it
            self._failure = failure
        finally:
            self._is_done = True
            self._grown.set()

    async def _add(self, chunk: str, pack: "_Packer | None") -> None:
        encoded = chunk.encode()
        self._append(encoded if pack is None else await pack.add(encoded))

    def _append(self, chunk: bytes) -> None:
        if chunk:
            self._chunks.append(chunk)
            grown, self._grown = self._grown, asyncio.Event()
            grown.set()


_END: Final = ""
"""In place of a piece: no piece is empty."""


class _Packer:
    """gzip, in a thread; the next chunk may be made while one is packed."""

    def __init__(self) -> None:
        self._stream = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, _GZIP_WBITS)
        self._busy: asyncio.Future[bytes] | None = None

    async def add(self, chunk: bytes) -> bytes:
        """What is ready of the chunks before."""
        return await self._next(lambda: self._stream.compress(chunk))

    async def end(self) -> bytes:
        ready = await self._next(self._stream.flush)
        assert self._busy is not None
        return ready + await self._busy

    async def _next(self, work: Callable[[], bytes]) -> bytes:
        ready = b"" if self._busy is None else await self._busy
        self._busy = asyncio.get_running_loop().run_in_executor(None, work)
        return ready


class Scrapes:
    """The renderings that run: at most one works, and each form has at most one."""

    def __init__(self, metrics: Metrics, stalls: LoopStalls) -> None:
        self._metrics = metrics
        self._stalls = stalls
        self._lock = asyncio.Lock()
        self._running: dict[Form, Rendering] = {}
        self._tasks: dict[Form, asyncio.Task[None]] = {}
        self.renderings = 0

    async def chunks(self, form: Form) -> AsyncGenerator[bytes, None]:
        """The exposition; of a rendering that runs already, if there is one."""
        rendering = self._running.get(form)
        if rendering is None:
            rendering = self._begin(form)
        rendering.readers += 1
        try:
            async for chunk in rendering.chunks():
                yield chunk
        finally:
            rendering.readers -= 1
            if not rendering.readers and self._running.get(form) is rendering:
                del self._running[form]  # nobody wants the rest, and nobody may join it any more
                self._tasks.pop(form).cancel()

    def _begin(self, form: Form) -> Rendering:
        rendering = self._running[form] = Rendering(form)
        self._tasks[form] = asyncio.get_running_loop().create_task(self._render(rendering))
        return rendering

    async def _render(self, rendering: Rendering) -> None:
        form = rendering.form
        try:
            async with self._lock:
                self.renderings += 1
                pieces = exposition(self._metrics.portions(), openmetrics=form.openmetrics)
                await rendering.make(pieces, self._stalls)
        finally:
            if self._running.get(form) is rendering:
                del self._running[form], self._tasks[form]
