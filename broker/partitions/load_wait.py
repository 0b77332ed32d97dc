"""Load wait: requests about groups while partitions load; which partition is next, who waits.

The partitions of the groups in requests are loaded first. An OffsetFetch of one group waits for its
partition for up to `HOLD_S`. Kafka refuses it with COORDINATOR_LOAD_IN_PROGRESS at once, and its
clients ask again after `retry.backoff.ms`. But the partition that is next is loaded within some ten
milliseconds, so its clients are served sooner here, and do not take time from the load by asking
again. Only reads wait. They are answered in the step of the loop in which their partition is
served, before any later request.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from broker.loop.clock import SystemClock
from broker.partitions.ownership import Ownership
from protocol.messages import Request
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.offset_fetch import OffsetFetchRequest
from protocol.names import GroupId
from seams.handler import Handler
from seams.reply_token import ReplyToken

HOLD_S: Final = 0.1
"""The `retry.backoff.ms` of Kafka's clients: they would ask again after it."""


class _Held:
    __slots__ = ("ask", "timer")

    def __init__(self, ask: Callable[[], None], timer: asyncio.TimerHandle) -> None:
        self.ask = ask
        self.timer = timer


class LoadWait:
    """All of it runs on the event loop."""

    __slots__ = ("_clock", "_failed", "_held", "_ownership", "_partition_for")

    def __init__(
        self,
        ownership: Ownership,
        partition_for: Callable[[GroupId], int],
        clock: SystemClock,
        failed: Callable[[ReplyToken, Exception], None],
    ) -> None:
        """`failed` is called with what a handler raised, as for any other request."""
        self._ownership = ownership
        self._partition_for = partition_for
        self._clock = clock
        self._failed = failed
        self._held: dict[int, dict[ReplyToken, _Held]] = {}  # in the order in which they came
        ownership.on_load_ended = self._load_ended

    def takes(self, request: Request, token: ReplyToken, handler: Handler) -> bool:
        """Whether the request waits; `handler` gets it later then. Called before each request."""
        if not self._ownership.is_reading:
            return False
        group_ids: list[str]
        match request:
            case OffsetFetchRequest():
                group_ids = [request.group_id, *(group.group_id for group in request.groups)]
            case FindCoordinatorRequest():
                group_ids = [request.key, *request.coordinator_keys]
            case _:
                group_ids = [getattr(request, "group_id", "")]
        partitions = [self._partition_for(GroupId(name)) for name in group_ids if name]
        for partition in partitions:
            self._ownership.prioritize(partition)
        if not isinstance(request, OffsetFetchRequest) or len(partitions) != 1:
            return False
        (partition,) = partitions
        if not self._ownership.is_loading(partition):
            return False
        self._hold(partition, request, token, handler)
        return True

    def _hold(self, partition: int, request: Request, token: ReplyToken, handler: Handler) -> None:
        def ask() -> None:
            try:
                handler(request, token, self._clock.now())
            except Exception as error:  # noqa: BLE001 - no request may end the load
                self._failed(token, error)

        held = self._held.setdefault(partition, {})

        def give_up() -> None:
            del held[token]
            ask()

        timer = asyncio.get_running_loop().call_later(HOLD_S, give_up)
        held[token] = _Held(ask, timer)

    def _load_ended(self, partition: int) -> None:
        """It is served, or it will not be: ask for those that wait."""
        for held in self._held.pop(partition, {}).values():
            held.timer.cancel()
            held.ask()
