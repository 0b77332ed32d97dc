"""The console over HTTP, without a browser: pages, files, headers, the groups API, events."""

import gzip
import http.client
import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import quote

import pytest

from console.assets import ASSET_TYPES, WEB_FOLDER
from tests.broker.daemon import TEST_SETTINGS, Daemon
from tests.conftest import StartDaemon
from tests.console.live import OUTSIDE

pytestmark = pytest.mark.xdist_group("console")

ODD_NAMES = (
    "a/b c%20d", "..", ".", "<script>alert(1)</script>", "\"quotes' & more", "группа-日本",
    "?q=1#f", "tab\tnew\nline", "%2e%2e", "{name}", "x" * 249,
)  # fmt: skip
TOKEN = "t0ken-of-the-console"


class Answer:
    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    def json(self) -> dict[str, object]:
        content = json.loads(self.body)
        assert isinstance(content, dict)
        return content


def ask(daemon: Daemon, path: str, method: str = "GET", **headers: str) -> Answer:
    connection = http.client.HTTPConnection(daemon.admin, timeout=60)
    try:
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        connection.request(method, path, headers=named)
        answer = connection.getresponse()
        found = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, found, answer.read())
    finally:
        connection.close()


def page_of(name: str) -> str:
    return f"/console/groups/{quote(name, safe='')}"


def test_each_page_is_the_page(busy: Daemon) -> None:
    first = ask(busy, "/console/")
    assert first.status == 200
    assert first.headers["content-type"] == "text/html; charset=utf-8"
    for path in ("/console/topics", "/console/node", "/console/groups/?name=..", "/console/?a=b"):
        assert ask(busy, path).body == first.body, path
    for name in ODD_NAMES:
        if name not in (".", ".."):
            assert ask(busy, page_of(name)).body == first.body, name
    for path in ("/console", "/console/groups"):
        moved = ask(busy, path)
        assert (moved.status, moved.headers["location"]) == (308, "/console/")


@pytest.mark.parametrize(
    "path",
    [
        "/console/nope",
        "/console/groups/a/b",
        "/console/../metrics",
        "/console/assets/../../app.py",
        "/console/assets/0123456789abcdef/../app.py",
        "/console/assets/0123456789abcdef/console.js",
        "/console/assets/0123456789abcdef/%2e%2e%2fapp.py",
        "//console/",
    ],
)
def test_no_other_path_is_a_page(busy: Daemon, path: str) -> None:
    assert ask(busy, path).status == 404


def test_files_are_found_by_the_page_and_kept_by_browsers(busy: Daemon) -> None:
    page = ask(busy, "/console/").body.decode()
    folder = re.search(r"/console/assets/[0-9a-f]{16}", page)
    assert folder is not None
    assert "{assets}" not in page
    files = [path for path in WEB_FOLDER.rglob("*") if path.suffix in ASSET_TYPES]
    assert len(files) > 8
    for path in files:
        if path.name == "index.html":
            continue
        whole = ask(busy, f"{folder[0]}/{path.name}")
        assert whole.status == 200
        assert whole.body == path.read_bytes()
        assert whole.headers["content-type"] == ASSET_TYPES[path.suffix]
        assert whole.headers["cache-control"] == "private, max-age=31536000, immutable"
        packed = ask(busy, f"{folder[0]}/{path.name}", accept_encoding="gzip")
        assert packed.headers["content-encoding"] == "gzip"
        assert gzip.decompress(packed.body) == whole.body
        again = ask(busy, f"{folder[0]}/{path.name}", if_none_match=whole.headers["etag"])
        assert (again.status, again.body) == (304, b"")


def test_scripts_name_files_that_are_there() -> None:
    """No build step: each import is the name of a file beside it, or of a library."""
    names = {path.name for path in WEB_FOLDER.rglob("*")}
    for path in WEB_FOLDER.glob("*.js"):
        imported = re.findall(r"""(?:from|import\()\s*["']([^"']+)["']""", path.read_text())
        assert {name.removeprefix("./") for name in imported} <= names, path.name
    page = (WEB_FOLDER / "index.html").read_text()
    assert set(re.findall(r"\{assets\}/([\w.-]+)", page)) <= names


def test_nothing_of_the_page_is_inline_or_from_elsewhere() -> None:
    page = (WEB_FOLDER / "index.html").read_text()
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:|<script>", page)
    assert re.findall(r"https?://", page) == []
    for path in WEB_FOLDER.glob("*.js"):
        text = path.read_text()
        assert not re.search(
            r"\beval\(|new Function|innerHTML|\sstyle=|https?://(?!www\.w3\.org)", text
        )


def test_the_headers_of_a_page(busy: Daemon) -> None:
    headers = ask(busy, page_of("billing")).headers
    policy = dict(
        part.strip().partition(" ")[::2] for part in headers["content-security-policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-frame-options"] == "DENY"
    assert "set-cookie" not in headers
    assert not any(name.startswith("access-control") for name in headers)
    assert ask(busy, "/api/groups").headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "path", ["/console/", "/api/groups", "/api/group?group=billing", "/api/events"]
)
def test_other_sites_reach_nothing(busy: Daemon, path: str) -> None:
    assert ask(busy, path, host="evil.example").status == 421
    assert ask(busy, path, origin="http://evil.example").status == 403
    assert ask(busy, path, origin="null").status == 403
    assert ask(busy, path, sec_fetch_site="cross-site", sec_fetch_mode="cors").status == 403
    framed = ask(
        busy, path, sec_fetch_site="cross-site", sec_fetch_mode="navigate", sec_fetch_dest="iframe"
    )
    assert framed.status == 403
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert ask(busy, path, method).status == 405


def test_groups_are_listed(busy: Daemon) -> None:
    found = ask(busy, "/api/groups?sort=group").json()
    assert found["groups_total"] == found["matched"] == 2
    assert found["states"] == {"Stable": 1, "Empty": 1}
    billing, outside = found["groups"]  # type: ignore[misc]
    assert billing["group"] == "billing"
    assert (billing["state"], billing["members"], billing["generation"]) == ("Stable", 1, 1)
    assert outside["group"] == OUTSIDE
    searched = ask(busy, f"/api/groups?search={quote('OF' + chr(92))}").json()
    assert [each["group"] for each in searched["groups"]] == [OUTSIDE]  # type: ignore[attr-defined]
    assert ask(busy, "/api/groups?sort=nonsense").status == 400
    assert ask(busy, "/api/groups?page=0").status == 400
    assert ask(busy, "/api/groups?limit=x").status == 400


def test_a_group_and_what_its_members_own(busy: Daemon) -> None:
    found = ask(busy, "/api/group?group=billing").json()
    (member,) = found["members"]  # type: ignore[misc]
    assert member["client_id"] == "clerk"
    assert member["doing"] == "owns its partitions"
    assert member["is_leader"] is True
    assert member["owned"] == [{"topic": "orders", "partitions": [0, 1]}]
    assert found["members_total"] == 1
    assert "principal" not in json.dumps(found)
    assert ask(busy, "/api/group").status == 400
    missing = ask(busy, "/api/group?group=%3Cscript%3E")
    assert missing.status == 404
    assert missing.headers["content-type"].startswith("application/json")


def test_lag_of_the_worst_partitions(busy: Daemon) -> None:
    found = ask(busy, "/api/lag?group=billing&limit=1").json()
    assert found["partitions_total"] == 2
    assert [each["partition"] for each in found["partitions"]] == [0]  # type: ignore[attr-defined]
    windows = ask(busy, "/api/lag/windows?group=billing").json()
    assert windows["partitions_total"] == 2
    assert {each["partition"] for each in windows["windows"]} == {0, 1}  # type: ignore[attr-defined]


def test_the_timeline_of_a_group(busy: Daemon) -> None:
    found = ask(busy, "/api/timeline?group=billing").json()
    (lane,) = found["lanes"]  # type: ignore[misc]
    assert lane["client_id"] == "clerk"
    assert lane["spans"][0][0] == "waited"
    assert lane["spans"][-1][0] == "owned"
    assert lane["spans"][-1][2] is None
    assert [mark[0] for mark in lane["marks"]] == ["joined", "synced"]
    (band,) = found["rebalances"]  # type: ignore[misc]
    assert (band["cause"], band["end"], band["generation_after"]) == ("member_joined", "stable", 1)
    assert "principal" not in json.dumps(found)
    assert ask(busy, "/api/timeline?group=nobody").status == 404
    assert ask(busy, "/api/timeline?group=billing&since=x").status == 400
    later = ask(busy, f"/api/timeline?group=billing&since={found['to_ms']}").json()
    (lane,) = later["lanes"]  # type: ignore[misc]
    assert lane["spans"] == [["owned", found["to_ms"], None]]


def test_topics_and_their_partitions(busy: Daemon) -> None:
    found = ask(busy, "/api/topics?internal=false").json()
    (orders,) = found["topics"]  # type: ignore[misc]
    assert (orders["topic"], orders["partitions"], orders["records"]) == ("orders", 2, 10)
    assert orders["bytes"] > 0
    by_size = ask(busy, "/api/topics?sort=-bytes").json()["topics"]
    sizes = [each["bytes"] for each in by_size]  # type: ignore[attr-defined]
    assert len(sizes) > 1
    assert sizes == sorted(sizes, reverse=True)
    orders_topic = ask(busy, "/api/topic?topic=orders").json()
    assert [each["high_watermark"] for each in orders_topic["partitions"]] == [10, 0]  # type: ignore[attr-defined]
    assert ask(busy, "/api/topic?topic=%2e%2e%2fetc").status == 404
    assert ask(busy, "/api/topics?sort=nonsense").status == 400


def test_the_node_its_logs_and_its_purgatory(busy: Daemon) -> None:
    node = ask(busy, "/api/node").json()
    journal = node["journal"]
    assert isinstance(journal, dict)
    assert journal["flushes"] >= 2
    assert journal["synced"] is True
    assert sum(journal["flush_seconds_counts"]) == journal["flushes"]
    logs = ask(busy, "/api/logs?sort=topic&search=orders-").json()
    assert [(each["partition"], each["segments"]) for each in logs["logs"]] == [  # type: ignore[attr-defined]
        (0, 1),
        (1, 0),
    ]
    log = ask(busy, "/api/log?topic=orders&partition=0").json()
    assert (log["segments_total"], log["log_end_offset"], log["cleanup"]) == (1, 10, "delete")
    (segment,) = log["segments"]  # type: ignore[misc]
    assert (segment["base_offset"], segment["next_offset"]) == (0, 10)
    assert segment["bytes"] == log["bytes"]
    assert segment["max_timestamp_ms"] > 0
    assert ask(busy, "/api/log?topic=orders&partition=1").json()["segments"] == []
    assert ask(busy, "/api/log?topic=orders&partition=2").status == 404
    assert ask(busy, "/api/log?topic=orders&partition=-1").status == 404
    assert ask(busy, "/api/log?topic=orders").status == 400
    waiting = ask(busy, "/api/purgatory?kind=DelayedHeartbeat&search=BILL").json()
    (operation,) = waiting["operations"]  # type: ignore[misc]
    assert operation["kind"] == "DelayedHeartbeat"
    assert operation["keys"][-1][:2] == ["session", "billing"]
    assert operation["due_in_ms"] > 0
    assert ask(busy, "/api/purgatory?search=nobody").json()["operations"] == []


# ---------------------------------------------------------------- events


@contextmanager
def events(daemon: Daemon, path: str, **headers: str) -> Iterator[Iterator[tuple[str, str, str]]]:
    """(event, data, id) of a stream, one after the other."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    deadline = time.monotonic() + 60
    while True:
        connection = http.client.HTTPConnection(daemon.admin, timeout=60)
        connection.request("GET", path, headers=named)
        answer = connection.getresponse()
        if answer.status != 503 or time.monotonic() > deadline:
            break  # else the end of the stream before it is still on its way
        connection.close()
    assert answer.status == 200
    assert answer.getheader("Content-Type") == "text/event-stream"

    def read() -> Iterator[tuple[str, str, str]]:
        about: dict[str, str] = {}
        while line := answer.readline().decode():
            name, _, value = line.rstrip("\n").partition(": ")
            if name:
                about[name] = value
            elif "event" in about:
                yield about["event"], about["data"], about.get("id", "")
                about = {}

    try:
        yield read()
    finally:
        answer.close()
        connection.close()


def test_a_stream_has_changes_and_continues(start_daemon: StartDaemon) -> None:
    daemon = start_daemon({**TEST_SETTINGS, "rollcall.admin.event.streams.max": "2"})
    from confluent_kafka import Consumer, TopicPartition

    from tests.console.live import create

    create(daemon, "orders", 1)

    def commit(group: str) -> None:
        consumer = Consumer({"bootstrap.servers": daemon.bootstrap, "group.id": group})
        consumer.commit(offsets=[TopicPartition("orders", 0, 5)], asynchronous=False)
        consumer.close()

    with events(daemon, "/api/events") as all_groups:
        assert next(all_groups)[0] == "hello"
        assert next(all_groups)[0] == "reset"
        for name in ("a/b <c>", "other"):
            commit(name)
        seen: list[str] = []
        last = ""
        while "other" not in seen:
            event, data, number = next(all_groups)
            if event == "groups":
                seen += json.loads(data)["groups"]
                last = number
        assert seen[0] == "a/b <c>"
    commit("third")
    with events(daemon, "/api/events", last_event_id=last) as again:
        assert next(again)[0] == "hello"
        event, data, _ = next(again)
        assert (event, json.loads(data)["groups"]) == ("groups", ["third"])
        with events(daemon, "/api/events?group=other") as one_group:
            assert [next(one_group)[0] for _ in range(3)] == ["hello", "reset", "offsets"]
            refused = ask(daemon, "/api/events")
            assert (refused.status, refused.headers["retry-after"]) == (503, "10")
            began = time.monotonic()
            assert daemon.stop() == 0
            assert "bye" in [event for event, _, _ in one_group]
        assert time.monotonic() - began < 60


def test_credentials_open_the_console(start_daemon: StartDaemon) -> None:
    """A browser asks for a name and a password; the events carry them too."""
    from base64 import b64encode

    daemon = start_daemon({**TEST_SETTINGS, "rollcall.admin.token": TOKEN})
    paths = ("/console/", "/api/groups", "/api/events", "/console/groups/x")
    for path in paths:
        refused = ask(daemon, path)
        assert refused.status == 401
        assert 'Basic realm="rollcall"' in refused.headers["www-authenticate"]
    basic = f"Basic {b64encode(f'token:{TOKEN}'.encode()).decode()}"
    page = ask(daemon, "/console/", authorization=basic)
    assert page.status == 200
    assert ask(daemon, "/api/groups", authorization=f"Bearer {TOKEN}").status == 200
    with events(daemon, "/api/events", authorization=basic) as stream:
        assert next(stream)[0] == "hello"
    assert TOKEN.encode() not in page.body
    assert TOKEN not in daemon.log()
