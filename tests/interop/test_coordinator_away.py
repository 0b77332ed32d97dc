"""Coordinator away: what unmodified consumers do while it is down or still loads.

It must never look as if nothing had been committed: a consumer would begin at the start of the log.
"""

import time
from concurrent.futures import ThreadPoolExecutor

from protocol.messages.offset_commit import OffsetCommitResponse
from tests.compare.wire import Wire
from tests.conftest import StartDaemon
from tests.drills.crowd import COMMIT_VERSION, commit_request
from tests.interop.conftest import SETTINGS, create_topic, produce
from tests.interop.group import EACH_LIBRARY, TIMEOUT_S, Failed, Obedient, consumers
from tests.interop.members.client import Options

COMMITS = 3_000  # so that the group takes a moment to load
RESTARTS = 3


def answer(consumer: Obedient) -> object:
    """What it says was committed, asked again while it says that it cannot know: that is honest."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            return consumer("committed", 0)
        except Failed:
            if time.monotonic() > deadline:
                raise


@EACH_LIBRARY
def test_what_was_committed_is_never_taken_for_nothing(
    start_daemon: StartDaemon, library: str
) -> None:
    daemon = start_daemon(SETTINGS)
    create_topic(daemon.bootstrap, "orders", 1)
    produce(daemon.bootstrap, "orders", 1, range(30))
    wire = Wire(daemon.port, "commits-a-lot")
    for n in range(COMMITS):
        wire.send(commit_request("billing", "orders", {0: n % 30}), COMMIT_VERSION)
        wire.receive(OffsetCommitResponse, COMMIT_VERSION)
    wire.close()

    with consumers() as (_, start), ThreadPoolExecutor(1) as aside:
        consumer = start("c", library, Options(daemon.bootstrap, "orders", "billing"))
        consumer("assign", [0])
        consumer("commit", {0: 7}, "")
        for _ in range(RESTARTS):
            daemon.kill()
            back = aside.submit(daemon.start)
            # Asked while nobody listens; answered by one who is just coming back.
            found = answer(consumer)
            assert isinstance(found, list), "nothing was committed, it believes"
            assert found[0] == 7
            back.result()
        consumer.stop()
