"""Console assets: the files of the web page, read when the first browser asks for them.

Nothing here runs at a start. The files are read in a thread, once, compressed once, and kept (a
few hundred kilobytes). Their addresses have a digest of all of them: a browser may keep them
forever, and a new version has new addresses.
"""

import asyncio
import gzip
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from aiohttp import web

WEB_FOLDER: Final = Path(__file__).parent / "web"
DIGEST_CHARS: Final = 16
PAGE_FILE: Final = "index.html"

ASSET_TYPES: Final[Mapping[str, str]] = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".html": "text/html; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
}

IMMUTABLE: Final = "private, max-age=31536000, immutable"
ASSET_GZIP_LEVEL: Final = 9


class Asset(NamedTuple):
    """One file. `etag` in quotes, as in the header."""

    content_type: str
    body: bytes
    compressed: bytes
    etag: str


class AssetFiles(NamedTuple):
    """All files by name, and the digest of all of them."""

    digest: str
    files: Mapping[str, Asset]


class Assets:
    """The files below `folder`; a name is unique in all of its folders."""

    def __init__(self, folder: Path = WEB_FOLDER) -> None:
        self._folder = folder
        self._reading: asyncio.Future[AssetFiles] | None = None

    async def all(self) -> AssetFiles:
        if self._reading is None or (self._reading.done() and self._reading.exception()):
            loop = asyncio.get_running_loop()
            self._reading = loop.run_in_executor(None, read_assets, self._folder)
        return await asyncio.shield(self._reading)


def read_assets(folder: Path) -> AssetFiles:
    """In a thread."""
    paths = sorted(path for path in folder.rglob("*") if path.suffix in ASSET_TYPES)
    bodies = {path.name: path.read_bytes() for path in paths}
    assert len(bodies) == len(paths), "two files of the console have one name"
    whole = sha256()
    for name, body in bodies.items():
        whole.update(f"{name}\0{len(body)}\0".encode() + body)
    digest = whole.hexdigest()[:DIGEST_CHARS]
    bodies[PAGE_FILE] = bodies[PAGE_FILE].replace(b"{assets}", f"/console/assets/{digest}".encode())
    return AssetFiles(digest, {name: _asset(name, body) for name, body in bodies.items()})


def _asset(name: str, body: bytes) -> Asset:
    etag = f'"{sha256(body).hexdigest()[:DIGEST_CHARS]}"'
    packed = gzip.compress(body, ASSET_GZIP_LEVEL, mtime=0)
    return Asset(ASSET_TYPES[Path(name).suffix], body, packed, etag)


def answer_asset(request: web.Request, asset: Asset, cache_control: str) -> web.Response:
    headers = {"ETag": asset.etag, "Cache-Control": cache_control, "Vary": "Accept-Encoding"}
    if asset.etag in request.headers.get("If-None-Match", ""):
        return web.Response(status=304, headers=headers)
    headers["Content-Type"] = asset.content_type
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        return web.Response(body=asset.compressed, headers={**headers, "Content-Encoding": "gzip"})
    return web.Response(body=asset.body, headers=headers)
