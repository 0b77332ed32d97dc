"""Admin port: /metrics, /livez, /readyz, the JSON APIs, the console, and a page that lists them.

For scrapers, orchestrators and people; GET and HEAD only, nothing here changes anything. /livez is
200 while the event loop runs; /readyz is 503 with a reason while clients should not be sent here.
`access.py` says which requests are answered at all.
"""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Final

from aiohttp import web

from broker.daemon import Daemon
from broker.metrics.scrape import Metrics
from broker.net.admin_tls import AdminCertificate, admin_certificate
from broker.net.sockets import ADMIN_BACKLOG, Bound, CannotListen
from broker.net.tls.channel import TlsChannel
from broker.observe.events import DaemonStep, PartFailed, Warned
from config.admin_access import admin_access
from console.access import AccessRefusal, AccessRules, RequestHead
from console.attempts import Attempts
from console.connections import SECURITY_HEADERS, AdminConnection, AdminConnections
from console.events_api import EventsApi
from console.groups_api import GroupsApi
from console.history_api import HistoryApi
from console.lag_api import LagApi
from console.node_api import NodeApi
from console.pages import NAMED_PAGES, ConsolePages
from console.scraping import Form, Scrapes, negotiate
from console.since_start import SinceStart
from console.timeline_api import TimelineApi
from console.topics_api import TopicsApi
from console.transactions_api import TransactionsApi
from console.verdicts_api import VerdictsApi
from rollcall import __version__

CLOSE_TIMEOUT_S: Final = 1.0

CERTIFICATE_INTERVAL_S: Final = 5.0
"""How often the files of the certificate are inspected."""

RETRY_AFTER: Final = {"Retry-After": "1"}

PAGE_HEADERS: Final = ("Cache-Control", "Content-Security-Policy")
"""Kept where a page has them already."""

SCRAPERS_MAX: Final = 20
"""At one time; they share their work, but each holds what it has not read yet."""

SCRAPE_TIMEOUT_S: Final = 60.0
"""For one scraper to read all of it; Prometheus gives up after ten seconds, by default."""

SCRAPE_WRITE_TIMEOUT_S: Final = 5.0
"""For one scraper to take the next chunk (64 KB before compression). One that does not read keeps
its place no longer than that."""

_INDEX: Final = f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Rollcall</title>
<h1>Rollcall {__version__}</h1>
<p>The admin port. Kafka clients connect elsewhere.
<p><a href="/console/">The console</a> shows groups, topics and this node.
<ul>
<li><a href="/metrics">/metrics</a> for Prometheus
<li><a href="/readyz">/readyz</a> whether the daemon is ready for clients, and why not
<li><a href="/livez">/livez</a> whether the process is alive
<li><a href="/api/groups">/api/groups</a> the groups, a page at a time; /api/group?group=G one group
<li><a href="/api/lag">/api/lag</a> how far behind the groups are; ?group=G for one of them
<li><a href="/api/verdicts">/api/verdicts</a> current verdicts on groups; ?group=G for one of them
<li><a href="/api/transactions">/api/transactions</a> open transactions and their producers
<li>/api/rebalances?group=G why a group rebalanced; /api/history?group=G its events
</ul>
</html>
"""

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Console:
    """The admin port of one daemon."""

    def __init__(self, daemon: Daemon, since_start: SinceStart | None = None) -> None:
        """`since_start`: what was counted before; else counted from now on."""
        self._daemon = daemon
        since_start = since_start or SinceStart(daemon)
        metrics = Metrics(daemon, since_start.costs, since_start.started_s)
        self._scrapes = Scrapes(metrics, daemon.ticker.stalls)
        self.scrapers = 0
        self.events = EventsApi(daemon)
        app = web.Application(middlewares=[self._guarded])
        app.add_routes(
            [
                web.get("/", self._index),
                web.get("/metrics", self._show_metrics),
                web.get("/livez", self._livez),
                web.get("/readyz", self._readyz),
                *ConsolePages().routes(),
                *GroupsApi(daemon).routes(),
                *self.events.routes(),
                *LagApi(daemon).routes(),
                *VerdictsApi(daemon).routes(),
                *TransactionsApi(daemon).routes(),
                *HistoryApi(daemon).routes(),
                *TimelineApi(daemon, since_start.steps).routes(),
                *TopicsApi(daemon).routes(),
                *NodeApi(daemon).routes(),
            ]
        )
        self._runner = web.AppRunner(
            app, access_log=None, handle_signals=False, shutdown_timeout=CLOSE_TIMEOUT_S
        )
        app.on_response_prepare.append(_secure)
        paths = frozenset(
            resource.canonical
            for resource in app.router.resources()
            if isinstance(resource, web.PlainResource)
        )
        self._rules = AccessRules(admin_access(daemon.config), paths, NAMED_PAGES)
        self._attempts = Attempts(self._on_failed_attempts)
        self._certificate: AdminCertificate | None = None
        self._servers: list[asyncio.Server] = []
        self._reloading: asyncio.Task[None] | None = None

    async def open(self, admin: Bound) -> None:
        loop = asyncio.get_running_loop()
        config = self._daemon.config
        self._certificate = await loop.run_in_executor(None, admin_certificate, config)
        await self._runner.setup()
        assert self._runner.server is not None
        self.connections = AdminConnections(loop, self._runner.server, _silent())
        for sock in admin.sockets:
            self._servers.append(
                await loop.create_server(self._accept, sock=sock, backlog=ADMIN_BACKLOG)
            )
        if self._certificate is not None:
            self._reloading = loop.create_task(self._reload(self._certificate))

    async def close(self) -> None:
        if self._reloading is not None:
            self._reloading.cancel()
        self.events.hub.close()
        for server in self._servers:
            server.close()
        await self._runner.cleanup()
        self.connections.abort_all()

    def _accept(self) -> asyncio.Protocol:
        connection = self.connections()
        certificate = self._certificate
        if certificate is None:
            return connection
        return TlsChannel(connection, lambda: certificate.context, self._daemon.server.handshakes)

    async def _reload(self, certificate: AdminCertificate) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(CERTIFICATE_INTERVAL_S)
            try:
                if await loop.run_in_executor(None, certificate.reload_changed):
                    self._daemon.observer(DaemonStep("The admin port has a new certificate."))
            except CannotListen as refused:
                words = "The certificate of the admin port has changed and cannot be loaded"
                self._daemon.observer(Warned(words, {"reason": str(refused)}))

    def _on_failed_attempts(self, source: str, count: int) -> None:
        words = "The admin port refused wrong credentials"
        self._daemon.observer(Warned(words, {"peer": source, "attempts": count}))

    async def _refusal(self, request: web.Request) -> AccessRefusal | None:
        head = RequestHead(
            request.method,
            request.raw_path,
            request.version < (1, 1),
            {name.lower(): request.headers.getall(name) for name in request.headers},
        )
        host = request.remote or ""
        if self._rules.has_credentials(head) and self._attempts.is_full(host):
            return AccessRefusal(429, "Too many wrong credentials from this address", RETRY_AFTER)
        refused = self._rules.refusal(head)
        if refused is not None and refused.is_guess:
            await self._attempts.failed(host, self._daemon.clock.now().mono_ms)
        return refused

    @web.middleware
    async def _guarded(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """A mistake of ours is a line in the log and a plain 500, not a traceback."""
        if isinstance(request.protocol, AdminConnection):
            request.protocol.request_began()
        refused = await self._refusal(request)
        if refused is not None:
            text = f"{refused.text}\n"
            response = web.Response(status=refused.status, text=text, headers=refused.headers)
            if "Connection" in refused.headers:
                response.force_close()
            return response
        try:
            return await handler(request)
        except web.HTTPException as answer:
            response = web.Response(status=answer.status, text=f"{answer.status} {answer.reason}\n")
            if isinstance(answer, web.HTTPMethodNotAllowed):
                response.headers["Allow"] = ", ".join(sorted(answer.allowed_methods))
        except Exception as error:  # noqa: BLE001 - whatever it is, the daemon goes on
            self._daemon.observer(PartFailed("console", error))
            response = web.Response(status=500, text="500 Internal Server Error\n")
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

    async def _show_metrics(self, request: web.Request) -> web.StreamResponse:
        form = negotiate(
            request.headers.get("Accept", ""), request.headers.get("Accept-Encoding", "")
        )
        if request.method == "HEAD":
            return web.Response(headers=form.headers)
        if self.scrapers >= SCRAPERS_MAX:
            return web.Response(status=503, text=f"{SCRAPERS_MAX} scrapes are under way\n")
        self.scrapers += 1
        try:
            async with aclosing(self._scrapes.chunks(form)) as chunks:
                return await self._stream(request, form, chunks)
        finally:
            self.scrapers -= 1

    async def _stream(
        self, request: web.Request, form: Form, chunks: AsyncGenerator[bytes, None]
    ) -> web.StreamResponse:
        first = await anext(chunks)  # what fails before it is a plain 500
        response = web.StreamResponse(headers=form.headers)
        try:
            async with asyncio.timeout(SCRAPE_TIMEOUT_S):
                await response.prepare(request)
                await _taken(response.write(first))
                async for chunk in chunks:
                    await _taken(response.write(chunk))
                await _taken(response.write_eof())
        except Exception as error:  # noqa: BLE001 - the answer has begun: it can only be cut off
            if request.transport is not None:
                request.transport.abort()
            if not isinstance(error, OSError):  # that one, or a timeout, is the scraper's doing
                self._daemon.observer(PartFailed("console", error))
        return response


async def _taken(write: Awaitable[None]) -> None:
    async with asyncio.timeout(SCRAPE_WRITE_TIMEOUT_S):
        await write


async def _secure(_request: web.Request, response: web.StreamResponse) -> None:
    """Pages and files of the console have a policy and a life in caches of their own."""
    headers = response.headers
    kept = {name: headers[name] for name in PAGE_HEADERS if name in headers}
    headers.update(SECURITY_HEADERS)
    headers.update(kept)


def _silent() -> logging.Logger:
    """The library tells each bad request with a traceback; the peer has its 400, that is enough."""
    logger = logging.getLogger("rollcall.console")
    logger.setLevel(logging.CRITICAL + 1)
    return logger
