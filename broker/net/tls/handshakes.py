"""Handshakes: the turns of TLS handshakes, so that they leave the loop to requests.

A handshake costs about a millisecond, mostly the server's signature. Clients that connect all at
once are served in the order of their bytes, for HANDSHAKE_PASS_S in each pass of the loop.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Protocol

HANDSHAKE_PASS_S: Final = 0.002
"""For the handshakes of one pass. One handshake that takes longer ends it."""


class Handshaking(Protocol):
    """A channel whose handshake has bytes to go on with."""

    def step(self) -> None:
        """Go on as far as these bytes allow. Raises nothing."""


class HandshakeQueue:
    """`call_soon` is the loop's; `stopwatch` is in seconds."""

    def __init__(
        self, call_soon: Callable[[Callable[[], None]], object], stopwatch: Callable[[], float]
    ) -> None:
        self._call_soon = call_soon
        self.stopwatch = stopwatch
        self._waiting: OrderedDict[Handshaking, None] = OrderedDict()
        self._is_due = False

    def add(self, channel: Handshaking) -> None:
        """Have `channel.step` called once its turn comes; once, however often it is added."""
        self._waiting[channel] = None
        self._schedule()

    def forget(self, channel: Handshaking) -> None:
        self._waiting.pop(channel, None)

    def _schedule(self) -> None:
        if self._waiting and not self._is_due:
            self._is_due = True
            self._call_soon(self._run)

    def _run(self) -> None:
        self._is_due = False
        ends_s = self.stopwatch() + HANDSHAKE_PASS_S
        while self._waiting:
            channel, _ = self._waiting.popitem(last=False)
            channel.step()
            if self.stopwatch() >= ends_s:
                break
        self._schedule()
