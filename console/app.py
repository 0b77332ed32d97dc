"""What does the admin port answer? /metrics, /livez, /readyz, and a page that lists them.

For scrapers, orchestrators and people; GET and HEAD only, nothing here changes anything. /livez is
200 while the event loop runs; /readyz is 503 with a reason while clients should not be sent here.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from broker.daemon import Daemon
from broker.events import PartFailed
from broker.metrics import Metrics
from broker.sockets import ADMIN_BACKLOG, Bound
from rollcall import __version__

CLOSE_TIMEOUT_S: Final = 1.0
HEADER_BYTES_MAX: Final = 8_190

_INDEX: Final = f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Rollcall</title>
<h1>Rollcall {__version__}</h1>
<p>The admin port. Kafka clients connect elsewhere.
<ul>
<li><a href="/metrics">/metrics</a> for Prometheus
<li><a href="/readyz">/readyz</a> whether clients should be sent here, and why not
<li><a href="/livez">/livez</a> whether the process is alive
</ul>
</html>
"""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Console:
    """The admin port of one daemon."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._metrics = Metrics(daemon)
        self._scraping = asyncio.Lock()
        app = web.Application(middlewares=[self._guarded])
        app.add_routes(
            [
                web.get("/", self._index),
                web.get("/metrics", self._show_metrics),
                web.get("/livez", self._livez),
                web.get("/readyz", self._readyz),
            ]
        )
        self._runner = web.AppRunner(
            app,
            access_log=None,
            logger=_silent(),
            handle_signals=False,
            shutdown_timeout=CLOSE_TIMEOUT_S,
            max_line_size=HEADER_BYTES_MAX,
            max_field_size=HEADER_BYTES_MAX,
        )

    async def open(self, admin: Bound) -> None:
        await self._runner.setup()
        for sock in admin.sockets:
            await web.SockSite(self._runner, sock, backlog=ADMIN_BACKLOG).start()

    async def close(self) -> None:
        await self._runner.cleanup()

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """A mistake of ours is a line in the log and a plain 500, not a traceback."""
        try:
            response = await handler(request)
        except web.HTTPException as answer:
            response = web.Response(status=answer.status, text=f"{answer.status} {answer.reason}\n")
            if isinstance(answer, web.HTTPMethodNotAllowed):
                response.headers["Allow"] = ", ".join(sorted(answer.allowed_methods))
        except Exception as error:  # noqa: BLE001 - whatever it is, the daemon goes on
            self._daemon.observer(PartFailed("console", error))
            response = web.Response(status=500, text="500 Internal Server Error\n")
        response.headers["Server"] = "rollcall"
        return response

    async def _index(self, _request: web.Request) -> web.Response:
        return web.Response(text=_INDEX, content_type="text/html")

    async def _livez(self, _request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _readyz(self, _request: web.Request) -> web.Response:
        health = self._daemon.health
        body = json.dumps(health.report(), indent=1) + "\n"
        status = 200 if health.ready else 503
        return web.Response(status=status, text=body, content_type="application/json")

    async def _show_metrics(self, _request: web.Request) -> web.Response:
        async with self._scraping:  # one at a time: a second scraper must not double the work
            parts: list[bytes] = []
            for family in self._metrics.families():
                if family is None:
                    await asyncio.sleep(0)
                else:
                    parts.append(generate_latest(_One(family)))
        headers = {"Content-Type": CONTENT_TYPE_PLAIN_0_0_4}
        return web.Response(body=b"".join(parts), headers=headers)


def _silent() -> logging.Logger:
    """The library tells each bad request with a traceback; the peer has its 400, that is enough."""
    logger = logging.getLogger("rollcall.console")
    logger.setLevel(logging.CRITICAL + 1)
    return logger


class _One(CollectorRegistry):
    """A registry of one family, which is what the library can write at a time."""

    def __init__(self, family: Metric) -> None:
        super().__init__(auto_describe=False)
        self._family = family

    def collect(self) -> list[Metric]:
        return [self._family]
