"""Check of a compiled build: one daemon serves one group, from the first request to a clean stop.

    .venv/bin/python -m native.check

`native/compile.py` runs it before it lets the program use what it has compiled: a translation that
does not work must not be found by the user. Exit code 0, or the reason on standard error.
"""

import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any, Final

from protocol.codec import RequestHeader, decode_response, encode_request
from protocol.messages import REQUESTS
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from protocol.names import ErrorCode, GroupId, MemberId, TopicName

ROOT: Final = Path(__file__).resolve().parents[1]
TIMEOUT_S: Final = 120.0
"""For the whole check: then the daemon is killed, and whoever waits for it reads its end."""

IS_COMPILED: Final = re.compile(r"build=.compiled, ")  # in the log line of a complete start
GROUP: Final = GroupId("check")
TOPIC: Final = TopicName("check")
NAMED_TOPICS: Final = 9  # the last version of commits and fetches that names topics


class Wrong(Exception):
    """What the daemon did not do."""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [
                *(sys.executable, "-P", "-m", "rollcall", "serve", "--data-dir", folder),
                *("--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"),
                *("--set", "group.initial.rebalance.delay.ms=0"),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "ROLLCALL_PURE": "0", "PYTHONPATH": str(ROOT)},
            cwd=ROOT,
        )
        watchdog = threading.Timer(TIMEOUT_S, process.kill)
        watchdog.daemon = True
        watchdog.start()
        try:
            _serve(process)
        except (Wrong, OSError, AssertionError, LookupError, subprocess.TimeoutExpired) as wrong:
            process.kill()
            said = process.communicate()[1]
            sys.exit(f"{type(wrong).__name__}: {wrong}; {_last_line(said)}")
        finally:
            watchdog.cancel()


def _serve(process: "subprocess.Popen[str]") -> None:
    assert process.stdout is not None
    ready = process.stdout.readline().split()
    if ready[:3] != ["rollcall", "ready:", "clients"]:
        raise Wrong("the daemon does not start")
    host, _, port = ready[3].rpartition(":")
    with socket.create_connection((host, int(port)), TIMEOUT_S) as client:
        _use_a_group(client)
    process.terminate()
    said = process.communicate(timeout=TIMEOUT_S)[1]
    if process.returncode or "Traceback" in said or not IS_COMPILED.search(said):
        raise Wrong(_last_line(said))


def _use_a_group(client: socket.socket) -> None:
    topic = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
    while _ask(client, topic).topics[0].error_code is not ErrorCode.NONE:
        """The daemon creates it on request."""
    join = JoinGroupRequest(
        GROUP, 60_000, 60_000, MemberId(""), protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol("range", b"")],
    )  # fmt: skip
    joined = _ask(client, join)
    while joined.error_code is not ErrorCode.NONE:  # a member id first; and the load may go on
        join.member_id = joined.member_id
        joined = _ask(client, join)
    member, generation = joined.member_id, joined.generation_id
    assigned = [SyncGroupRequestAssignment(member, b"all")]
    sync = SyncGroupRequest(GROUP, generation, member, None, "consumer", "range", assigned)
    synced = _ask(client, sync)
    rows = [OffsetCommitRequestPartition(0, 42)]
    topics = [OffsetCommitRequestTopic(name=TOPIC, partitions=rows)]
    commit = OffsetCommitRequest(GROUP, generation, member, topics=topics)
    committed = _ask(client, commit, NAMED_TOPICS).topics[0].partitions[0].error_code
    beat = _ask(client, HeartbeatRequest(GROUP, generation, member)).error_code
    fetch = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(GROUP, topics=None)])
    fetched = _ask(client, fetch, NAMED_TOPICS).groups[0].topics[0].partitions[0]
    found = (synced.assignment, committed, beat, fetched.committed_offset)
    if found != (b"all", ErrorCode.NONE, ErrorCode.NONE, 42):
        raise Wrong(f"it answers {found}")


def _ask(client: socket.socket, request: Any, version: int | None = None) -> Any:
    api_key = request.API_KEY
    if version is None:
        version = REQUESTS[api_key].VERSIONS[-1]
    client.sendall(encode_request(RequestHeader(api_key, version, 1, "check"), request))
    size = int.from_bytes(_receive(client, 4), "big")
    return decode_response(api_key, version, _receive(client, size), 0, size)[1]


def _receive(client: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        more = client.recv(size - len(received))
        if not more:
            raise Wrong("it closes the connection")
        received += more
    return received


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else "no reason given"


if __name__ == "__main__":
    main()
