"""A scrape in slices: what runs between them, who shares one, and what becomes of a broken one."""

import asyncio
import gc
import zlib
from collections.abc import Iterator
from itertools import pairwise

import pytest

from broker.metrics.family import Family, MetricKind, Portion
from broker.observe.stats import LoopStalls
from console.scraping import Form, Scrapes, negotiate

FAMILY = Family("rollcall_example", MetricKind.GAUGE, "Example.", ("number",))
PROMETHEUS_ACCEPTS = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
    "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)


class FakeMetrics:
    """`portions` of a hundred lines each; `fail_at` one of them."""

    def __init__(self, portions: int = 100, fail_at: int = -1) -> None:
        self.count = portions
        self.fail_at = fail_at
        self.made = 0
        self.closed = 0
        self.was_off = False
        self.half_done = asyncio.Event()

    def portions(self) -> Iterator[Portion | None]:
        try:
            for number in range(self.count):
                if number == self.fail_at:
                    raise ValueError("broken")
                self.made += 1
                if self.made == self.count // 2:
                    self.half_done.set()
                self.was_off = self.was_off or not gc.isenabled()
                lines = [f'rollcall_example{{number="{number}-{line}"}} 1\n' for line in range(100)]
                yield Portion(FAMILY, lines)
                yield None
        finally:
            self.closed += 1


def scrapes(metrics: FakeMetrics) -> Scrapes:
    return Scrapes(metrics, LoopStalls())  # type: ignore[arg-type]


async def read(scrapes: Scrapes, form: Form | None = None) -> bytes:
    return b"".join([chunk async for chunk in scrapes.chunks(form or Form())])


async def test_between_two_portions_others_have_their_turn() -> None:
    metrics = FakeMetrics(portions=100)
    seen: list[int] = []

    async def other_task() -> None:
        while metrics.made < 100:
            seen.append(metrics.made)
            await asyncio.sleep(0)

    other = asyncio.create_task(other_task())
    whole = await read(scrapes(metrics))
    await other
    assert whole.count(b"\n") == 10_000 + 2
    # Nobody was ever kept waiting for two portions.
    assert len(seen) >= 100
    assert max(after - before for before, after in pairwise(seen)) <= 1


async def test_who_comes_while_one_runs_shares_it() -> None:
    metrics = FakeMetrics()
    running = scrapes(metrics)
    first = asyncio.create_task(read(running))
    await metrics.half_done.wait()
    others = [asyncio.create_task(read(running)) for _ in range(5)]
    whole = await first
    assert [await other for other in others] == [whole] * 5
    assert running.renderings == 1
    assert metrics.made == 100
    # The next one is a new one: nobody is shown what is over.
    assert await read(running) == whole
    assert running.renderings == 2


async def test_other_forms_wait_for_their_turn_and_say_the_same() -> None:
    metrics = FakeMetrics()
    running = scrapes(metrics)
    forms = [Form(), Form(gzip=True), Form(openmetrics=True), Form(openmetrics=True, gzip=True)]
    plain, packed, openmetrics, both = await asyncio.gather(*(read(running, f) for f in forms))
    assert running.renderings == 4
    assert zlib.decompress(packed, 31) == plain
    assert zlib.decompress(both, 31) == openmetrics
    assert openmetrics == plain + b"# EOF\n"
    assert len(packed) < len(plain) / 5


async def test_the_collector_works_on_beside_a_scrape() -> None:
    """Else what the loop makes meanwhile is one long collection when the scrape is over."""
    metrics = FakeMetrics()
    assert gc.isenabled()
    await read(scrapes(metrics))
    assert not metrics.was_off


async def test_a_failure_reaches_every_reader_and_not_the_next_scrape() -> None:
    metrics = FakeMetrics(fail_at=50)
    running = scrapes(metrics)
    answers = await asyncio.gather(read(running), read(running), return_exceptions=True)
    assert [str(answer) for answer in answers] == ["broken", "broken"]
    metrics.fail_at = -1
    assert (await read(running)).count(b"\n") == 10_002


async def test_what_nobody_reads_any_more_is_given_up() -> None:
    metrics = FakeMetrics(portions=2_000)
    running = scrapes(metrics)
    chunks = running.chunks(Form())
    await anext(chunks)
    await chunks.aclose()
    # Who comes now must not be shown the beginning of what was given up.
    whole = await read(running)
    assert whole.count(b"\n") == 200_002
    assert metrics.closed == 2
    assert metrics.made < 4_000
    assert gc.isenabled()


async def test_a_reader_who_leaves_does_not_take_the_others_along() -> None:
    metrics = FakeMetrics()
    running = scrapes(metrics)
    leaver = running.chunks(Form())
    await anext(leaver)
    stayer = asyncio.create_task(read(running))
    await asyncio.sleep(0)
    await leaver.aclose()
    assert (await stayer).count(b"\n") == 10_002
    assert running.renderings == 1


@pytest.mark.parametrize(
    ("accept", "encoding", "form"),
    [
        ("", "", Form()),
        ("*/*", "identity", Form()),
        ("text/html,*/*;q=0.8", "gzip, deflate, br", Form(gzip=True)),
        (PROMETHEUS_ACCEPTS, "gzip", Form(openmetrics=True, gzip=True)),
        ("application/openmetrics-text", "gzip;q=0", Form(openmetrics=True)),
        ("application/openmetrics-text;q=0.3,text/plain;q=0.5", "", Form()),
        ("text/plain;q=0.5, APPLICATION/OpenMetrics-Text; q=0.6", "*", Form(True, True)),
        ("application/openmetrics-text;q=nonsense", "GZIP", Form(gzip=True)),
        (",;,q=1;", ";q=;,", Form()),
    ],
)
def test_the_form_is_what_the_scraper_prefers(accept: str, encoding: str, form: Form) -> None:
    assert negotiate(accept, encoding) == form
