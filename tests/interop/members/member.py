"""Independent member: a process that reads, commits each batch, and reports what it did.

Arguments: library, options as JSON (client.py). SIGTERM ends it as a user would: it leaves.
"""

import sys

from _say import say, stop_on_sigterm, stopping
from store import Store

from client import Offsets, Options, Partition, open_client


class PositionListener:
    def __init__(self, store: Store | None) -> None:
        self._store = store

    def assigned(self, partitions: list[Partition]) -> Offsets:
        say("assigned", partitions=partitions)
        return {} if self._store is None else self._store.positions(partitions)

    def revoked(self, partitions: list[Partition]) -> None:
        say("revoked", partitions=partitions)


def main(library: str, options: Options) -> None:
    stop_on_sigterm()
    store = Store(options.store) if options.store else None
    client = open_client(library, options)
    client.subscribe(PositionListener(store))
    say("subscribed")
    while not stopping.is_set():
        read = client.poll()
        if not read:
            continue
        if store is not None:
            store.keep(read)
        for partition, offsets in read.items():
            say("read", partition=partition, offsets=offsets)
        if store is None and options.auto_commit_ms is None:
            try:
                client.commit(None, "")
            except Exception as error:  # a rebalance or a restart: the next one will do
                say("not committed", why=f"{type(error).__name__}: {error}")
            else:
                say("committed", offsets={p: offsets[-1] + 1 for p, offsets in read.items()})
    say("closing")  # it reads nothing from here on
    client.close()
    say("closed")


main(sys.argv[1], Options.from_json(sys.argv[2]))
