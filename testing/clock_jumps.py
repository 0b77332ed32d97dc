"""Clock jumps: the daemon's clock goes ahead, and everything that falls due on the way happens.

A jump stops at each deadline on its way, in their order, and lets the daemon finish what follows
from it: records are stored, answers are sent. So a session that ends after 10 s and one that ends
after 45 s end in that order, also in a jump of a minute. Between jumps the clock runs on by itself.
Only deadlines by the cores' clock jump: not the rounds of the lag sampler and of the log cleaner.
"""

import asyncio
from typing import Final

from broker.daemon import Daemon

IDLE_WAIT_MAX_S: Final = 10.0
"""How long the disk may take before a jump goes on all the same."""

_POLL_S: Final = 0.0005
_PASSES: Final = 4
"""Of the loop: one reads what has arrived, one handles it, one writes, one for what that calls."""


class ClockJumps:
    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon

    async def advance(self, ahead_ms: int) -> None:
        clock, ticker = self._daemon.clock, self._daemon.ticker
        await self.wait_idle()  # what has arrived by now has arrived before the jump
        end_ms = clock.now().mono_ms + ahead_ms
        while True:
            now_ms = clock.now().mono_ms
            due_ms = ticker.next_deadline_ms
            if due_ms is None or due_ms > end_ms or now_ms >= end_ms:
                break
            clock.jump(max(due_ms - now_ms, 1))  # a deadline that stays must not hold it up
            ticker.tick_after_jump()
            await self.wait_idle()
        clock.jump(max(end_ms - clock.now().mono_ms, 0))
        ticker.tick_after_jump()
        await self.wait_idle()

    async def wait_idle(self) -> None:
        """Until what was appended is stored, threads are idle, and the loop has gone round."""
        daemon = self._daemon
        daemon.ticker.arm()
        for _ in range(_PASSES):
            await asyncio.sleep(0)
        ends_s = daemon.loop.time() + IDLE_WAIT_MAX_S
        while self._is_busy() and daemon.loop.time() < ends_s:
            await asyncio.sleep(_POLL_S)
            if not self._is_busy():
                await asyncio.sleep(0)  # what the threads have reported is delivered by now

    def _is_busy(self) -> bool:
        io = self._daemon.io
        threads = (io.admin, io.checker, io.reader, io.appender)
        return bool(self._daemon.journal.queued_bytes) or any(each.pending for each in threads)
