"""Certificate watch: uses changed key and trust stores of the listeners while the broker runs.

The files are read in a thread. A certificate that cannot be used is logged once, and the one before
it stays.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from broker.observe.events import CertificateRefused, CertificateReloaded, PartFailed
from config.key_stores import BadStore

if TYPE_CHECKING:
    from broker.net.tls.listener_tls import ListenerTls

RELOAD_INTERVAL_S: Final = 5.0

_Event = CertificateReloaded | CertificateRefused | PartFailed


class CertificateWatch:
    """On the event loop; without TLS it does nothing."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        listeners: Sequence["ListenerTls"],
        observe: Callable[[_Event], None],
        interval_s: float = RELOAD_INTERVAL_S,
    ) -> None:
        self._loop = loop
        self._listeners = list(listeners)
        self._observe = observe
        self._interval_s = interval_s
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._listeners:
            self._task = self._loop.create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def inspect(self) -> None:
        """Look at the files once, and report what has changed."""
        found: list[tuple[ListenerTls, BadStore | None]] = []
        await self._loop.run_in_executor(
            None, reload_all, self._listeners, lambda tls, bad: found.append((tls, bad))
        )
        for tls, bad in found:
            if bad is None:
                self._observe(CertificateReloaded(tls.name))
            else:
                self._observe(CertificateRefused(tls.name, f"{bad.key}: {bad}"))

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._interval_s)
            try:
                await self.inspect()
            except Exception as error:  # noqa: BLE001 - the next look may succeed
                self._observe(PartFailed("certificate watch", error))


def reload_all(
    listeners: list["ListenerTls"], report: Callable[["ListenerTls", BadStore | None], None]
) -> None:
    """Look at the files of all listeners; `report` each change, with what is wrong with it."""
    for listener in listeners:
        try:
            if listener.reload():
                report(listener, None)
        except BadStore as bad:
            report(listener, bad)
