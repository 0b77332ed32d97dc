"""The console in a headless Chromium: `make browser`.

Leaves a picture of each page in build/console/, to be looked at. Without BROWSER=1 all is skipped.
"""

import asyncio
import json
import os
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
import pytest_asyncio
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.broker.daemon import TEST_SETTINGS, Daemon
from tests.browser.chromium import NAMES, Browser, Page, browser_on_path, chromium
from tests.browser.many_groups import MANY_GROUPS, form_many_groups
from tests.console.live import create

pytestmark = [
    pytest.mark.skipif(not os.environ.get("BROWSER"), reason="make browser"),
    pytest.mark.asyncio(loop_scope="module"),
]

PICTURES = Path(__file__).parents[2] / "build" / "console"
ODD_GROUPS = (
    "a/b c%20d", "..", ".", "<script>alert(1)</script>", "\"quotes' & more", "группа-日本",
    "?q=1#f", "tab\tnew\nline", "%2e%2e", "{name}", "<img src=x onerror=alert(1)>", "x" * 249,
)  # fmt: skip
ODD_CLIENT = "<b>bold</b>"
FIRST_PAINT_MS_MAX = 1_000
TIMEOUT_S = 60


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    if browser_on_path() is None:
        pytest.exit(f"make browser needs a Chromium on PATH, as one of {', '.join(NAMES)}", 1)
    PICTURES.mkdir(parents=True, exist_ok=True)
    settings = {**TEST_SETTINGS, "rollcall.lag.interval.ms": "1000"}
    daemon = Daemon(tmp_path_factory.mktemp("browser"), settings).start()
    members: list[Member] = []
    try:
        create(daemon, "orders", 4)
        create(daemon, "events", 1)
        producer = Producer({"bootstrap.servers": daemon.bootstrap})
        for number in range(400):
            producer.produce("orders", value=str(number), partition=number % 4)
        assert producer.flush(TIMEOUT_S) == 0
        for group in ODD_GROUPS:
            commit(daemon, group, 5)
        members += [Member(daemon, client) for client in ("clerk", ODD_CLIENT, "")]
        form_many_groups(daemon)
        traffic = Traffic(daemon)
        yield daemon
        traffic.close()
    finally:
        for each in members:
            each.close()
        daemon.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser(
    daemon: Daemon, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Browser]:
    async with chromium(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


def commit(daemon: Daemon, group: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": daemon.bootstrap, "group.id": group})
    consumer.commit(offsets=[TopicPartition("orders", 0, offset)], asynchronous=False)
    consumer.close()


class Member:
    """A consumer of `billing` that polls in a thread, so that it takes part in rebalances."""

    def __init__(self, daemon: Daemon, client: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": daemon.bootstrap,
                "group.id": "billing",
                "client.id": client,
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 200,
            }
        )
        self._is_assigned = threading.Event()
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        assert self._is_assigned.wait(TIMEOUT_S)

    def _run(self) -> None:
        self._consumer.subscribe(["orders"], on_assign=lambda *_: self._is_assigned.set())
        while not self._is_closing.is_set():
            self._consumer.poll(0.05)
        self._consumer.close()

    def close(self) -> None:
        self._is_closing.set()
        self._thread.join()


class Traffic:
    """Records for `orders` all the time, so that charts have something to show."""

    def __init__(self, daemon: Daemon) -> None:
        self._producer = Producer({"bootstrap.servers": daemon.bootstrap})
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._is_closing.wait(0.05):
            number += 1
            for partition in range(4):
                if number % (partition + 1) == 0:
                    self._producer.produce("orders", value=b"x", partition=partition)
            self._producer.poll(0)

    def close(self) -> None:
        self._is_closing.set()
        self._thread.join()


def at(daemon: Daemon, path: str) -> str:
    return f"http://{daemon.admin}{path}"


def page_of(group: str) -> str:
    return f"/console/groups/{quote(group, safe='')}"


async def fine(page: Page) -> None:
    assert page.browser_errors == []
    host = await page.run("location.host")
    assert [url for url in page.requests if f"//{host}/" not in url] == []
    assert await page.run("document.querySelectorAll('main script, main img').length") == 0


FIRST_PAINT_MS = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
ROWS = "document.querySelectorAll('tbody tr').length"
HEADING = "document.querySelector('h1').textContent"
NAMES_SHOWN = "[...document.querySelectorAll('tbody th a')].map((each) => each.textContent)"


async def test_ten_thousand_groups_are_painted_in_a_second(
    daemon: Daemon, browser: Browser
) -> None:
    figures = []
    for visit in range(4):
        page = await browser.open(at(daemon, "/console/"))
        await page.until(f"{ROWS} >= 50")
        paint_ms = await page.run(FIRST_PAINT_MS)
        rows_ms = await page.run("performance.now()")
        figures.append((round(paint_ms), round(rows_ms)))
        assert str(MANY_GROUPS // 1000) in await page.run(
            "document.querySelector('.tile').innerText"
        )
        await fine(page)
        if visit == 0:
            kilobytes = page.bytes_received / 1000
    print(f"\n{MANY_GROUPS} groups: first paint and rows, ms, of each visit: {figures}")
    print(f"{kilobytes:.0f} kB received by the first visit")
    assert min(paint for paint, _ in figures) < FIRST_PAINT_MS_MAX
    await page.picture(PICTURES / "groups.png", whole=False)
    await page.prefer("dark")
    await page.picture(PICTURES / "groups-dark.png", whole=False)


async def test_search_sort_and_pages_by_keyboard(daemon: Daemon, browser: Browser) -> None:
    page = await browser.open(at(daemon, "/console/"))
    await page.until(f"{ROWS} >= 50")
    await page.tab()
    assert await page.run("document.activeElement.className") == "skip"
    await page.enter()
    await page.until("document.activeElement.id === 'main'")
    await page.run("document.querySelector('input[type=search]').focus()")
    await page.type("group-00990")
    await page.until(f"{ROWS} === 10")
    assert "search=group-00990" in await page.run("location.search")
    for _ in range(40):
        await page.tab()
        if await page.run("document.activeElement.textContent") == "Group":
            break
    outline = await page.run("getComputedStyle(document.activeElement).outlineWidth")
    assert outline == "3px"
    await page.enter()
    await page.until("document.querySelector('th[aria-sort=ascending]')")
    names = await page.run(NAMES_SHOWN)
    assert names == sorted(names)
    await page.run("document.querySelector('input[type=search]').select()")
    await page.type("group-00")
    await page.until("document.querySelector('.pager')")
    await page.run("[...document.querySelectorAll('.pager a')].at(-1).focus()")
    await page.enter()
    await page.until("location.search.includes('page=200')")
    await page.until("document.querySelector('.pager').innerText.includes('200 of 200')")
    await fine(page)


async def test_odd_names_are_texts_and_addresses(daemon: Daemon, browser: Browser) -> None:
    for group in ODD_GROUPS:
        page = await browser.open(at(daemon, "/console/?" + f"search={quote(group)}&sort=group"))
        await page.until(f"{ROWS} >= 1")
        names = await page.run(NAMES_SHOWN)
        assert group in names
        await page.run(f"document.querySelectorAll('tbody th a')[{names.index(group)}].click()")
        await page.until("document.querySelector('#members-title')")
        await page.until("document.querySelector('#lag-chart canvas')")
        assert await page.run(HEADING) == group
        assert await page.run("document.querySelector('.note')") is None
        await fine(page)


async def test_a_group_is_live(daemon: Daemon, browser: Browser) -> None:
    page = await browser.open(at(daemon, "/console/groups/billing"))
    await page.until("document.querySelectorAll('#timeline .lane').length === 3")
    await page.until("document.querySelector('#live').textContent === 'live'")
    assert ODD_CLIENT in await page.run("document.querySelector('main').textContent")
    guest = await asyncio.to_thread(Member, daemon, "guest")
    await page.until("document.querySelectorAll('#timeline .lane').length === 4")
    await page.until("document.querySelector('main').textContent.includes('4 members')")
    await page.until("document.querySelector('#timeline .span.waited')")
    await asyncio.to_thread(guest.close)
    await page.until("document.querySelector('#timeline .mark.gone')")
    await page.until("document.querySelectorAll('#timeline .lane.over').length === 1")
    await page.until("document.querySelector('#why-title ~ ol').innerText.includes('member left')")
    await fine(page)
    await page.picture(PICTURES / "group.png")
    await page.run("document.getElementById('theme').click()")
    await page.run("document.getElementById('theme').click()")
    assert await page.run("document.documentElement.dataset.theme") == "dark"
    await asyncio.sleep(1)
    await page.picture(PICTURES / "group-dark.png")
    await fine(page)


async def test_each_page_on_a_phone(daemon: Daemon, browser: Browser) -> None:
    for name, path in {
        "groups": "/console/?search=b",
        "group": "/console/groups/billing",
        "topics": "/console/topics",
        "topic": "/console/topics/orders",
        "node": "/console/node",
    }.items():
        page = await browser.open(
            at(daemon, path), width=390, height=844, phone=True, scheme="dark"
        )
        await page.until("document.querySelector('tbody tr')")
        if name == "group":
            await page.until("document.querySelector('#lag-chart canvas')")
        width = await page.run("document.documentElement.scrollWidth")
        assert width <= 390, name  # nothing makes the whole page scroll sideways
        await page.picture(PICTURES / f"{name}-phone.png")
        await fine(page)


async def test_topics_and_the_node(daemon: Daemon, browser: Browser) -> None:
    page = await browser.open(at(daemon, "/console/topics"))
    await page.until(f"{ROWS} >= 2")
    await page.run(
        "[...document.querySelectorAll('tbody a')].find((a) => a.textContent === 'orders').click()"
    )
    await page.until(f"{ROWS} === 4")
    await page.run("document.querySelector('tbody th a').click()")
    await page.until("document.querySelector('#log-title')")
    assert await page.run("location.search") == "?partition=0"
    await page.picture(PICTURES / "topic.png", whole=False)
    await fine(page)
    page = await browser.open(at(daemon, "/console/node"))
    await page.until("document.querySelector('#purgatory') && document.querySelector('#logs')")
    await page.picture(PICTURES / "node.png")
    button = "document.querySelector('#purgatory ~ .buttons button:nth-of-type(2)')"
    await page.run(f"{button}.click()")
    await page.until(f"{button}.getAttribute('aria-pressed') === 'true'")
    await fine(page)


async def test_what_is_not_there_is_said(daemon: Daemon, browser: Browser) -> None:
    page = await browser.open(at(daemon, page_of("no such group")))
    await page.until("document.querySelector('.note')")
    assert "no group of this name" in await page.run("document.querySelector('.note').textContent")
    assert all("404" in each for each in page.browser_errors)  # as the browser logs each of them


async def test_the_page_says_that_the_daemon_is_gone_and_comes_back(
    daemon: Daemon, browser: Browser
) -> None:
    page = await browser.open(at(daemon, "/console/"))
    await page.until("document.querySelector('#live').textContent === 'live'")
    await asyncio.to_thread(daemon.stop)
    await page.until("document.querySelector('#live').textContent !== 'live'")
    await asyncio.to_thread(daemon.start)
    await page.until("document.querySelector('#live').textContent === 'live'")
    await page.until(f"{ROWS} >= 50")
    refused = [each for each in page.browser_errors if "ERR_" not in each]
    assert refused == []


async def test_with_credentials(tmp_path: Path, browser: Browser) -> None:
    from base64 import b64encode

    settings = {**TEST_SETTINGS, "rollcall.admin.users": "alice:pass word"}
    daemon = Daemon(tmp_path, settings)
    await asyncio.to_thread(daemon.start)
    try:
        basic = f"Basic {b64encode(b'alice:pass word').decode()}"
        page = await browser.open(at(daemon, "/console/"), headers={"Authorization": basic})
        await page.until("document.querySelector('#live').textContent === 'live'")
        await page.until("document.querySelector('main').textContent.includes('no groups yet')")
        await fine(page)
        assert "pass word" not in json.dumps(page.requests)
    finally:
        await asyncio.to_thread(daemon.close)
