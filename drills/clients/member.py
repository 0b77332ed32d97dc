"""Member program: a consumer of one library that reads, commits each batch, and reports it.

`python -m drills.clients.member MODULE SETTINGS`: the module that opens the client, and its
settings as JSON. It reports by lines of JSON on stdout, each with the time of CLOCK_MONOTONIC, and
leaves the group when a line comes on stdin, or its end. A client of a user's own can do the same
(docs/drills.md).
"""

import json
import sys
import threading
import time
from importlib import import_module

import msgspec

from drills.clients.interface import ClientSettings, DrillClient
from drills.clients.stop import stop_with_stdin, stopping

COMMIT_PAUSE_S = 0.02
"""After a commit that failed: what follows is read and committed in any case."""

_lock = threading.Lock()


def report_event(event: str, **facts: object) -> None:
    """One line, whole even if a library calls back in a thread of its own."""
    line = json.dumps({"event": event, "at_ns": time.monotonic_ns(), **facts}) + "\n"
    with _lock:
        sys.stdout.write(line)
        sys.stdout.flush()


class _Reporter:
    def assigned(self, partitions: list[int]) -> None:
        report_event("assigned", partitions=sorted(partitions))

    def revoked(self, partitions: list[int]) -> None:
        report_event("revoked", partitions=sorted(partitions))


def main() -> None:
    module, settings = sys.argv[1], msgspec.json.decode(sys.argv[2], type=ClientSettings)
    stop_with_stdin()
    client: DrillClient = import_module(module).open_client(settings)
    client.subscribe(_Reporter())
    report_event("subscribed")
    while not stopping.is_set():
        read = client.poll()
        for partition, offsets in read.items():
            report_event("read", partition=partition, offsets=offsets)
        if read:
            _commit(client, {p: offsets[-1] + 1 for p, offsets in read.items()})
    report_event("closing")
    client.close()
    report_event("closed")


def _commit(client: DrillClient, offsets: dict[int, int]) -> None:
    try:
        client.commit(offsets)
    except Exception as error:  # noqa: BLE001  each library has its own; the next commit will do
        report_event("not committed", why=f"{type(error).__name__}: {error}")
        stopping.wait(COMMIT_PAUSE_S)
    else:
        report_event("committed", offsets=offsets)


if __name__ == "__main__":
    main()
