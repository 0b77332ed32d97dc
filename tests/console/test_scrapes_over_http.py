"""Scrapes over real sockets that go wrong: too many, too slow, broken off, broken in the middle."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from broker.metrics.family import Family, MetricKind, Portion
from broker.metrics.scrape import Metrics
from broker.net.sockets import bind_admin
from console import app
from console.app import Console
from tests.broker.node import Node

FAMILY = Family("rollcall_example", MetricKind.GAUGE, "Example.", ("number",))
WAIT_S = 60.0


class Bulk:
    """In place of a daemon's metrics: `portions` of 64 KB each, one of which may fail."""

    def __init__(self, portions: int, fail_at: int = -1) -> None:
        self.count = portions
        self.fail_at = fail_at
        self.made = 0
        self.broken_off = asyncio.Event()

    def portions(self) -> Iterator[Portion | None]:
        try:
            for number in range(self.count):
                if number == self.fail_at:
                    raise ValueError("broken in the middle")
                self.made += 1
                yield Portion(FAMILY, [f'rollcall_example{{number="{"x" * 1_000}"}} 1\n'] * 64)
        finally:
            if self.made < self.count:
                self.broken_off.set()


@asynccontextmanager
async def console(node: Node) -> AsyncIterator[tuple[Console, int]]:
    """The node's console, on a free port."""
    admin = bind_admin("127.0.0.1", 0)
    opened = Console(node.daemon)
    await opened.open(admin)
    try:
        yield opened, admin.port
    finally:
        await opened.close()
        admin.close()


class Scraper:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def ask(cls, port: int, method: str = "GET", version: str = "1.1") -> "Scraper":
        # A small buffer, so that a reader who stops is noticed soon.
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=4_096)
        writer.write(
            f"{method} /metrics HTTP/{version}\r\n"
            "Host: localhost\r\nConnection: close\r\n\r\n".encode()
        )
        return cls(reader, writer)

    async def head(self) -> str:
        return (await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), WAIT_S)).decode()

    async def rest(self) -> bytes:
        """Until the end, however that comes."""
        parts: list[bytes] = []
        try:
            while part := await asyncio.wait_for(self.reader.read(65_536), WAIT_S):
                parts.append(part)
        except ConnectionError:
            pass
        return b"".join(parts)


async def test_the_head_of_an_answer_costs_no_scrape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bulk = Bulk(1)
    monkeypatch.setattr(Metrics, "portions", bulk.portions)
    async with Node(tmp_path) as node, console(node) as (_, port):
        scraper = await Scraper.ask(port, "HEAD")
        head = await scraper.head()
        assert head.startswith("HTTP/1.1 200 ")
        assert "Content-Type: text/plain; version=0.0.4; charset=utf-8" in head
        assert "Server: rollcall\r\n" in head
        assert await scraper.rest() == b""
        assert bulk.made == 0


async def test_a_scrape_ends_with_an_end_in_both_versions_of_http(tmp_path: Path) -> None:
    async with Node(tmp_path) as node, console(node) as (_, port):
        new = await Scraper.ask(port)
        assert "Transfer-Encoding: chunked" in await new.head()
        assert (await new.rest()).endswith(b"\r\n0\r\n\r\n")
        old = await Scraper.ask(port, version="1.0")
        head = await old.head()
        assert "Transfer-Encoding" not in head
        assert b"rollcall_ready 1\n" in await old.rest()


async def test_too_many_scrapers_are_refused_and_the_next_one_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bulk = Bulk(500)
    monkeypatch.setattr(Metrics, "portions", bulk.portions)
    monkeypatch.setattr(app, "SCRAPERS_MAX", 1)
    async with Node(tmp_path) as node, console(node) as (_, port):
        first = await Scraper.ask(port)
        await first.head()  # and reads no more: it stays one of the scrapers
        second = await Scraper.ask(port)
        assert (await second.head()).startswith("HTTP/1.1 503 ")
        assert await second.rest() == b"1 scrapes are under way\n"
        assert (await first.rest()).endswith(b"0\r\n\r\n")
        third = await Scraper.ask(port)
        assert (await third.head()).startswith("HTTP/1.1 200 ")


async def test_a_scraper_that_does_not_read_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bulk = Bulk(500)
    monkeypatch.setattr(Metrics, "portions", bulk.portions)
    monkeypatch.setattr(app, "SCRAPE_TIMEOUT_S", 0.2)
    async with Node(tmp_path) as node, console(node) as (opened, port):
        scraper = await Scraper.ask(port)
        await scraper.head()
        async with asyncio.timeout(WAIT_S):
            while opened.scrapers:  # noqa: ASYNC110 - no event reports it
                await asyncio.sleep(0.01)
        whole = await scraper.rest()
        assert not whole.endswith(b"0\r\n\r\n")
        assert len(whole) < 64_000 * 500
        assert "PartFailed" not in node.log.getvalue()
        assert "Traceback" not in node.log.getvalue()


async def test_scrapers_that_do_not_read_give_their_places_up_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long before the time for a whole scrape is over."""
    bulk = Bulk(500)
    monkeypatch.setattr(Metrics, "portions", bulk.portions)
    monkeypatch.setattr(app, "SCRAPE_WRITE_TIMEOUT_S", 0.3)
    async with Node(tmp_path) as node, console(node) as (opened, port):
        idle = [await Scraper.ask(port) for _ in range(app.SCRAPERS_MAX)]
        for scraper in idle:
            await scraper.head()  # and reads no more
        assert opened.scrapers == app.SCRAPERS_MAX
        async with asyncio.timeout(app.SCRAPE_TIMEOUT_S / 2):
            while opened.scrapers:  # noqa: ASYNC110 - no event reports it
                await asyncio.sleep(0.01)
        next_one = await Scraper.ask(port)
        assert (await next_one.head()).startswith("HTTP/1.1 200 ")
        assert (await next_one.rest()).endswith(b"0\r\n\r\n")
        assert "PartFailed" not in node.log.getvalue()


async def test_who_hangs_up_ends_a_rendering_that_nobody_else_wants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bulk = Bulk(1_000_000)
    monkeypatch.setattr(Metrics, "portions", bulk.portions)
    async with Node(tmp_path) as node, console(node) as (_, port):
        scraper = await Scraper.ask(port)
        await scraper.head()
        scraper.writer.transport.abort()
        await asyncio.wait_for(bulk.broken_off.wait(), WAIT_S)


async def test_what_breaks_in_the_middle_is_not_taken_for_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bulk = Bulk(100, fail_at=50)
    monkeypatch.setattr(Metrics, "portions", bulk.portions)
    async with Node(tmp_path) as node, console(node) as (_, port):
        scraper = await Scraper.ask(port)
        await scraper.head()
        assert not (await scraper.rest()).endswith(b"0\r\n\r\n")
        assert "broken in the middle" in node.log.getvalue()


async def test_what_breaks_before_the_first_line_is_a_plain_500(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bulk = Bulk(100, fail_at=0)
    monkeypatch.setattr(Metrics, "portions", bulk.portions)
    async with Node(tmp_path) as node, console(node) as (_, port):
        scraper = await Scraper.ask(port)
        assert (await scraper.head()).startswith("HTTP/1.1 500 ")
        assert await scraper.rest() == b"500 Internal Server Error\n"
        assert "broken in the middle" in node.log.getvalue()
