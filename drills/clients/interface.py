"""Client interface: what each library's consumer is asked for, and how it is set up.

Each module beside this one has a function `open_client(settings)` and adds nothing of its own to
what its library does: no retry, and no state that the library keeps itself.
"""

from collections.abc import Mapping
from typing import Final, Protocol

import msgspec

RECORDS_PER_POLL: Final = 200
POLL_S: Final = 0.1
CONSUMER_PROTOCOL: Final = "consumer"


class ClientSettings(msgspec.Struct, frozen=True):
    """One member. Times in milliseconds. `client_id` is the member's name in the drill.

    With `protocol` "consumer" the timeouts and the assignor are the server's.
    """

    bootstrap: str
    topic: str
    group: str
    client_id: str
    protocol: str
    assignor: str
    partitions: int
    session_timeout_ms: int
    heartbeat_interval_ms: int
    rebalance_timeout_ms: int
    jars: tuple[str, ...] = ()
    jvm: str = ""


class OwnershipCallbacks(Protocol):
    """The callbacks of a rebalance."""

    def assigned(self, partitions: list[int]) -> None: ...

    def revoked(self, partitions: list[int]) -> None: ...


class DrillClient(Protocol):
    def subscribe(self, ownership: OwnershipCallbacks) -> None: ...

    def poll(self) -> dict[int, list[int]]:
        """Partition -> offsets of the records that were read; nothing after POLL_S or so."""

    def commit(self, offsets: Mapping[int, int]) -> None:
        """Return when it is acknowledged. Raises what the library raises."""

    def close(self) -> None:
        """Leave the group."""
