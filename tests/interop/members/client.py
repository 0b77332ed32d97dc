"""Client interface: what every library's consumer can be asked for, and how it is set up.

Each `*_client.py` beside this file says them in the words of one library and adds nothing of its
own: no retry, no state that the library keeps itself. Partitions are numbers, if the client reads
one topic; one that subscribes to a pattern reports them as "TOPIC-NUMBER", and only reads them.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Protocol

LIBRARIES = ("confluent", "kafka_python", "aiokafka", "java")
CONSUMER_PROTOCOL = "consumer"
MESSAGES_PER_POLL = 100
POLL_S = 0.2

Partition = int | str
Offsets = Mapping[Partition, int]


@dataclass(frozen=True)
class Options:
    """`group` None: a consumer outside any group. `auto_commit_ms` None: it commits by hand.

    `group_protocol` "consumer": the timeouts and the assignor are the server's, not these.
    `pattern`: a regular expression to subscribe to, instead of the topic.
    `store`: a file in which a member keeps what it read, and how far it is, instead of committing.
    """

    bootstrap: str
    topic: str
    group: str | None = None
    session_timeout_ms: int = 30_000  # longer than a busy machine takes away a process
    heartbeat_interval_ms: int = 500
    assignor: str = "range"
    instance_id: str | None = None
    group_protocol: str = "classic"
    pattern: str = ""
    auto_commit_ms: int | None = None
    store: str = ""
    jars: tuple[str, ...] = ()
    jvm: str = ""

    @property
    def with_consumer_protocol(self) -> bool:
        return self.group_protocol == CONSUMER_PROTOCOL

    def name_of(self, topic: str, partition: int) -> Partition:
        return f"{topic}-{partition}" if self.pattern else partition

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> "Options":
        return Options(**json.loads(text))


class Listener(Protocol):
    """Callbacks of a rebalance. `assigned` may return other positions to begin at."""

    def assigned(self, partitions: list[Partition]) -> Offsets: ...

    def revoked(self, partitions: list[Partition]) -> None: ...


class Client(Protocol):
    def subscribe(self, listener: Listener) -> None: ...

    def assign(self, partitions: list[int]) -> None: ...

    def poll(self) -> dict[Partition, list[int]]:
        """Partition -> the offsets that were read; nothing after POLL_S, or as it must be."""

    def seek(self, partition: int, offset: int) -> None: ...

    def pause(self, partitions: list[int]) -> None: ...

    def resume(self, partitions: list[int]) -> None: ...

    def commit(self, offsets: Offsets | None, metadata: str) -> None:
        """Wait for the answer; None: what was read."""

    def commit_async(self, offsets: Offsets | None, done: Callable[[str | None], None]) -> None:
        """`done` is told the name of the error, or None, in a later poll."""

    def committed(self, partition: int) -> tuple[int, str | None] | None:
        """Offset and metadata, as far as the library tells them."""

    def offset_for_time(self, partition: int, timestamp_ms: int) -> int | None: ...

    def close(self) -> None: ...


def open_client(library: str, options: Options) -> Client:
    client: Client = import_module(f"{library}_client").open_client(options)
    return client
