"""Console pages: the web page at /console/, and the files that it consists of.

    GET /console/                     the groups
    GET /console/groups/NAME          one group; the name percent-encoded
    GET /console/topics[/NAME]        the topics, or one of them
    GET /console/node                 logs, journal, cleaner, purgatory
    GET /console/assets/DIGEST/FILE   scripts, styles, pictures
Each page is one and the same file: its script looks at the address and asks the JSON APIs. The
page only shows; nothing on the admin port changes anything. docs/console.md is for users, ADR 0047
has the reasons.
"""

import re
from typing import Final

from aiohttp import web

from console.assets import IMMUTABLE, PAGE_FILE, Assets, answer_asset

NAMED_PAGES: Final = re.compile(
    r"/console/(?:groups|topics)/[^/]+|/console/assets/[0-9a-f]{16}/[A-Za-z0-9.-]+"
)
"""Paths with a free segment, as the request has them: nothing is decoded."""

PAGES: Final = (
    "/console/",
    "/console/groups/",
    "/console/topics",
    "/console/topics/",
    "/console/node",
)

PAGE_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types lit-html"
)
"""No inline script or style, no eval, nothing from elsewhere. lit-html makes its templates with a
policy of its own, from texts of our scripts only."""

_ANYTHING: Final = r"{name:[\s\S]+}"


class ConsolePages:
    def __init__(self) -> None:
        self._assets = Assets()

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/console", self._moved),
            web.get("/console/groups", self._moved),
            *(web.get(path, self._page) for path in PAGES),
            web.get("/console/assets/{digest}/{file}", self._asset),
            web.get(f"/console/groups/{_ANYTHING}", self._page),
            web.get(f"/console/topics/{_ANYTHING}", self._page),
        ]

    async def _moved(self, _request: web.Request) -> web.Response:
        return web.Response(status=308, headers={"Location": "/console/"})

    async def _page(self, request: web.Request) -> web.Response:
        """Asked again each time, so that a new version's files are found; 304 if unchanged."""
        files = (await self._assets.all()).files
        response = answer_asset(request, files[PAGE_FILE], "no-cache")
        response.headers["Content-Security-Policy"] = PAGE_POLICY
        return response

    async def _asset(self, request: web.Request) -> web.Response:
        """A file of another version is gone: the page that names it is older than the daemon."""
        digest, files = await self._assets.all()
        asset = files.get(request.match_info["file"])
        if asset is None or digest != request.match_info["digest"]:
            return web.Response(status=404, text="404 Not Found\n")
        return answer_asset(request, asset, IMMUTABLE)
