"""Attempts: failed credentials are answered late, and only so many of one address at a time.

So one address tries four passwords in a second, and all addresses together a few hundred. While its
places are taken, an address is refused without a check: right credentials too. Each /64 of IPv6
counts as one address. Everything here is bounded.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from ipaddress import IPv6Address, ip_address
from typing import Final

DELAY_S: Final = 1.0
OF_ONE_ADDRESS_MAX: Final = 4
DELAYED_ATTEMPTS_MAX: Final = 256
LINE_INTERVAL_MS: Final = 60_000
ADDRESSES_MAX: Final = 1_024


class Attempts:
    """Failed ones, that wait for their answer."""

    def __init__(
        self,
        report: Callable[[str, int], None],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`report` is called with an address and the failures that were not reported before."""
        self._report = report
        self._sleep = sleep
        self._waiting: Counter[str] = Counter()
        self._reported: OrderedDict[str, tuple[int, int]] = OrderedDict()

    def is_full(self, host: str) -> bool:
        return (
            self._waiting[source_of(host)] >= OF_ONE_ADDRESS_MAX
            or self._waiting.total() >= DELAYED_ATTEMPTS_MAX
        )

    async def failed(self, host: str, now_ms: int) -> None:
        """Returns when the answer is due."""
        source = source_of(host)
        self._count(source, now_ms)
        self._waiting[source] += 1
        try:
            await self._sleep(DELAY_S)
        finally:
            self._waiting[source] -= 1
            if not self._waiting[source]:
                del self._waiting[source]

    def _count(self, source: str, now_ms: int) -> None:
        since_ms, suppressed = self._reported.get(source, (now_ms - LINE_INTERVAL_MS, 0))
        if now_ms - since_ms < LINE_INTERVAL_MS:
            self._reported[source] = (since_ms, suppressed + 1)
            return
        self._reported[source] = (now_ms, 0)
        self._reported.move_to_end(source)
        if len(self._reported) > ADDRESSES_MAX:
            self._reported.popitem(last=False)
        self._report(source, suppressed + 1)


def source_of(host: str) -> str:
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return f"{IPv6Address(int(address) >> 64 << 64)}/64"
    return str(address)
