"""Access rules of the admin port: each head that is refused, and wrong credentials' delays."""

import asyncio
from base64 import b64encode

import pytest

from config.admin_access import AdminAccess
from console.access import AccessRefusal, AccessRules, RequestHead
from console.attempts import (
    DELAYED_ATTEMPTS_MAX,
    LINE_INTERVAL_MS,
    OF_ONE_ADDRESS_MAX,
    Attempts,
    source_of,
)

PATHS = frozenset(("/", "/metrics", "/livez", "/readyz", "/api/lag"))
TOKEN = "a-token.of_the~test+/=="
PASSWORD = "pass:word"


def rules(*, guarded: bool = False, loopback: bool = True) -> AccessRules:
    return AccessRules(
        AdminAccess(
            tokens=("older", TOKEN) if guarded else (),
            passwords={"alice": PASSWORD} if guarded else {},
            open_paths=frozenset(("/livez", "/readyz")),
            host_names=frozenset(("localhost", "rollcall.lan")),
            is_loopback=loopback,
        ),
        PATHS,
    )


def head(
    target: str = "/metrics", *, method: str = "GET", old: bool = False, **headers: str | list[str]
) -> RequestHead:
    named: dict[str, str | list[str]] = {"host": "localhost:9180", **headers}
    lists = {
        name.replace("_", "-"): [text] if isinstance(text, str) else text
        for name, text in named.items()
        if text
    }
    return RequestHead(method, target, old, lists)


def status(asked: AccessRefusal | None) -> int:
    return 200 if asked is None else asked.status


@pytest.mark.parametrize(
    ("host", "answer"),
    [
        ("localhost:9180", 200),
        ("LOCALHOST", 200),
        ("localhost.:9180", 200),
        ("rollcall.lan:80", 200),
        ("127.0.0.1:9180", 200),
        ("127.9.9.9", 200),
        ("[::1]:9180", 200),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("evil.example:9180", 421),
        ("10.1.2.3:9180", 421),
        ("0.0.0.0:9180", 421),
        ("[fe80::1]", 421),
        ("localhost@evil.example", 400),
        ("localhost/evil", 400),
        ("localhost:9180:1", 400),
        ("localhost evil", 400),
        ("[::1", 400),
    ],
)
def test_a_foreign_host_is_refused(host: str, answer: int) -> None:
    assert status(rules().refusal(head(host=host))) == answer


def test_an_address_is_no_name_that_could_be_rebound() -> None:
    """Prometheus scrapes a pod by its address."""
    assert rules(loopback=False).refusal(head(host="10.1.2.3:9180")) is None
    assert status(rules(loopback=False).refusal(head(host="evil.example"))) == 421


def test_a_host_is_needed_unless_the_client_is_older_than_it() -> None:
    assert status(rules().refusal(head(host=""))) == 400
    assert rules().refusal(head(host="", old=True)) is None


@pytest.mark.parametrize("name", ["host", "authorization", "origin", "content_length"])
def test_a_header_that_occurs_twice_is_refused(name: str) -> None:
    asked = head(**{name: ["localhost", "localhost"]}, method="HEAD")  # type: ignore[arg-type]
    assert status(rules(guarded=True).refusal(asked)) == 400


@pytest.mark.parametrize(
    ("headers", "method", "answer"),
    [
        ({"origin": "http://evil.example"}, "GET", 403),
        ({"origin": "null"}, "GET", 403),
        ({"origin": "http://localhost:9180"}, "GET", 200),
        ({"origin": "http://evil.example"}, "HEAD", 403),
        ({"origin": "http://evil.example"}, "POST", 403),
        ({"origin": "null"}, "POST", 403),
        ({"origin": "http://localhost:3000"}, "POST", 403),
        ({"origin": "http://localhost:9180"}, "POST", 200),
        ({"sec_fetch_site": "cross-site"}, "GET", 403),
        ({"sec_fetch_site": "same-site"}, "GET", 403),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}, "GET", 200),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}, "POST", 403),
        (
            {
                "sec_fetch_site": "cross-site",
                "sec_fetch_mode": "navigate",
                "sec_fetch_dest": "iframe",
            },
            "GET",
            403,
        ),
        ({"sec_fetch_site": "same-origin"}, "GET", 200),
        ({"sec_fetch_site": "none"}, "GET", 200),
    ],
)
def test_requests_of_foreign_pages_are_refused(
    headers: dict[str, str], method: str, answer: int
) -> None:
    assert status(rules().refusal(head(method=method, **headers))) == answer  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "target",
    [
        "//metrics",
        "/./metrics",
        "/livez/../metrics",
        "/%6detrics",
        "/livez%2f..%2fmetrics",
        "/metrics/",
        "/metrics;a",
        "/metrics#a",
        "/livez\\..\\metrics",
        "/METRICS",
    ],
)
def test_a_path_is_served_letter_for_letter(target: str) -> None:
    assert status(rules().refusal(head(target))) == 404
    assert status(rules(guarded=True).refusal(head(target))) == 401


@pytest.mark.parametrize("target", ["*", "http://localhost/metrics", "localhost:80", ""])
def test_a_target_for_a_proxy_is_refused(target: str) -> None:
    assert status(rules().refusal(head(target))) == 400


def test_a_body_is_refused() -> None:
    assert status(rules().refusal(head(content_length="5"))) == 413
    assert status(rules().refusal(head(transfer_encoding="chunked"))) == 413
    assert rules().refusal(head(content_length="0")) is None


def basic(text: str) -> str:
    return f"Basic {b64encode(text.encode()).decode()}"


@pytest.mark.parametrize(
    ("authorization", "answer", "is_guess"),
    [
        ("", 401, False),
        (f"Bearer {TOKEN}", 200, False),
        ("bearer   older", 200, False),
        (basic(f"alice:{PASSWORD}"), 200, False),
        (basic("alice:pass"), 401, True),
        (basic(f"bob:{PASSWORD}"), 401, True),
        (basic("alice"), 401, True),
        ("Basic !!!", 401, True),
        ("Basic /w==", 401, True),
        ("Basic ", 401, True),
        ("Bearer ", 401, True),
        (f"Bearer alice:{PASSWORD}", 401, True),
        (basic(f"x:{TOKEN}"), 401, True),
        (f"Bearer {TOKEN} ", 200, False),
        (f"Bearer {TOKEN}x", 401, True),
        (f"Digest {TOKEN}", 401, True),
        ("Bearer \udcff", 401, True),
    ],
)
def test_credentials(authorization: str, answer: int, is_guess: bool) -> None:
    refused = rules(guarded=True).refusal(head(authorization=authorization))

    assert status(refused) == answer
    assert refused is None or refused.is_guess is is_guess
    if refused is not None:
        challenge = 'Bearer realm="rollcall", Basic realm="rollcall"'
        assert refused.headers == {"WWW-Authenticate": challenge}


def test_only_open_paths_need_no_credentials() -> None:
    guarded = rules(guarded=True)
    assert {path: status(guarded.refusal(head(path))) for path in sorted(PATHS)} == {
        "/": 401,
        "/api/lag": 401,
        "/livez": 200,
        "/metrics": 401,
        "/readyz": 200,
    }
    assert guarded.refusal(head("/livez?verbose=1")) is None
    assert status(guarded.refusal(head("/nope"))) == 401
    assert status(guarded.refusal(head("/nope", authorization=f"Bearer {TOKEN}"))) == 404


class Delays:
    """In place of the clock: how long each waits, until it is let go."""

    def __init__(self) -> None:
        self.waiting: list[asyncio.Future[None]] = []
        self.lines: list[tuple[str, int]] = []
        self.attempts = Attempts(lambda *line: self.lines.append(line), self.sleep)

    async def sleep(self, _seconds: float) -> None:
        self.waiting.append(asyncio.get_running_loop().create_future())
        await self.waiting[-1]

    async def fail(self, host: str, now_ms: int = 0) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(self.attempts.failed(host, now_ms))
        await asyncio.sleep(0)  # up to its own sleep
        return task


async def test_one_address_has_few_attempts_at_a_time() -> None:
    delays = Delays()
    tasks = [await delays.fail("10.0.0.1") for _ in range(OF_ONE_ADDRESS_MAX)]

    assert delays.attempts.is_full("10.0.0.1")
    assert not delays.attempts.is_full("10.0.0.2")
    delays.waiting[0].set_result(None)
    await tasks[0]
    assert not delays.attempts.is_full("10.0.0.1")
    tasks[1].cancel()  # its client has gone: its place is free as well
    await asyncio.gather(tasks[1], return_exceptions=True)
    for future in delays.waiting[2:]:
        future.set_result(None)
    await asyncio.gather(*tasks[2:])


async def test_all_addresses_together_have_a_limit() -> None:
    delays = Delays()
    tasks = [await delays.fail(f"10.0.{number}.1") for number in range(DELAYED_ATTEMPTS_MAX)]

    assert delays.attempts.is_full("192.0.2.1")
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert not delays.attempts.is_full("192.0.2.1")


async def test_one_line_a_minute_counts_the_attempts_of_an_address() -> None:
    delays = Delays()
    times = (0, 1, 2, LINE_INTERVAL_MS, LINE_INTERVAL_MS + 1)
    tasks = [await delays.fail("10.0.0.0", now) for now in times]

    assert delays.lines == [("10.0.0.0", 1), ("10.0.0.0", 3)]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def test_addresses_of_one_network_count_as_one() -> None:
    assert source_of("2001:db8:1:2:3:4:5:6") == source_of("2001:db8:1:2::9") == "2001:db8:1:2::/64"
    assert source_of("::ffff:10.0.0.1") == source_of("10.0.0.1") == "10.0.0.1"
    assert source_of("fe80::1%eth0") == "fe80::/64"
    assert source_of("") == ""
