"""Headless Chromium over its DevTools protocol: pages as a person's browser shows them.

    async with chromium(folder) as browser:
        page = await browser.open("http://127.0.0.1:9180/console/", width=1280, height=800)
        await page.until("document.querySelector('tbody tr')")
        assert page.browser_errors == []

The browser is the first on PATH of `NAMES`; nothing is downloaded. `browser_errors` are errors and
warnings of the console, exceptions, refused requests and violations of the page's policy.
"""

import asyncio
import base64
import json
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
TIMEOUT_S = 30.0
PICTURE_HEIGHT_MAX = 4_000
REDRAW_PAUSE_S = 0.5
"""For the page to draw again in a window of another size."""

OPTIONS = (
    "--headless=new",
    "--no-sandbox",  # a container's root may have no other
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-component-update",
    "--remote-debugging-port=0",
)


def browser_on_path() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Page:
    """One tab."""

    def __init__(self, browser: "Browser", session: str) -> None:
        self._browser = browser
        self._session = session
        self._shape = (0, 0, False)  # width, height, phone
        self.browser_errors: list[str] = []
        self.requests: list[str] = []
        self.bytes_received = 0

    async def call(self, method: str, **parameters: Any) -> Any:
        return await self._browser.call(method, self._session, **parameters)

    async def run(self, expression: str) -> Any:
        """The value of an expression; a promise is awaited."""
        answer = await self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def until(self, expression: str) -> Any:
        """The first true value of an expression."""
        try:
            async with asyncio.timeout(TIMEOUT_S):
                while not (value := await self._value(expression)):  # noqa: ASYNC110 - no event tells
                    await asyncio.sleep(0.05)
                return value
        except TimeoutError:
            text = await self.run("document.body.innerText")
            errors = self.browser_errors
            raise AssertionError(
                f"{expression} did not become true; errors {errors}; page:\n{text}"
            ) from None

    async def _value(self, expression: str) -> Any:
        """While a page loads there may be no context to ask."""
        with suppress(AssertionError, RuntimeError):
            return await self.run(
                f"(() => {{ const v = {expression}; return v ? v.toString() : '' }})()"
            )
        return None

    async def go(self, address: str) -> None:
        answer = await self.call("Page.navigate", url=address)
        assert "errorText" not in answer, answer

    async def key(self, name: str, code: int, text: str = "", modifiers: int = 0) -> None:
        about = {"key": name, "code": name, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        if text:
            about["text"] = text
        await self.call("Input.dispatchKeyEvent", type="keyDown", **about)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **about)

    async def tab(self) -> None:
        await self.key("Tab", 9)

    async def enter(self) -> None:
        await self.key("Enter", 13, "\r")

    async def type(self, text: str) -> None:
        await self.call("Input.insertText", text=text)

    async def size(self, width: int, height: int, *, phone: bool = False) -> None:
        self._shape = (width, height, phone)
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=2 if phone else 1, mobile=phone,
        )  # fmt: skip

    async def prefer(self, scheme: str) -> None:
        """`light` or `dark`, as the system's setting."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        await self.call("Emulation.setEmulatedMedia", features=features)

    async def picture(self, path: Path, *, whole: bool = True) -> None:
        """A PNG of the page; `whole`: not only what is in the window.

        The window is made as high as the page for it: a capture beyond the window shows the page
        in the middle of a change of its size.
        """
        width, height, phone = self._shape
        if whole:
            about = await self.call("Page.getLayoutMetrics")
            await self.size(
                width, min(int(about["cssContentSize"]["height"]), PICTURE_HEIGHT_MAX), phone=phone
            )
            await asyncio.sleep(REDRAW_PAUSE_S)
        answer = await self.call("Page.captureScreenshot", format="png")
        await asyncio.to_thread(path.write_bytes, base64.b64decode(answer["data"]))
        if whole:
            await self.size(width, height, phone=phone)

    def heard(self, method: str, about: Mapping[str, Any]) -> None:
        match method:
            case "Runtime.exceptionThrown":
                details = about["exceptionDetails"]
                thrown = details.get("exception", {}).get("description", details.get("text"))
                self.browser_errors.append(f"exception: {thrown}")
            case "Runtime.consoleAPICalled" if about["type"] in ("error", "warning", "assert"):
                words = [str(each.get("value", each.get("description"))) for each in about["args"]]
                self.browser_errors.append(f"{about['type']}: {' '.join(words)}")
            case "Log.entryAdded" if about["entry"]["level"] in ("error", "warning"):
                entry = about["entry"]
                self.browser_errors.append(
                    f"{entry['source']}: {entry['text']} {entry.get('url', '')}"
                )
            case "Network.requestWillBeSent":
                self.requests.append(about["request"]["url"])
            case "Network.loadingFinished":
                self.bytes_received += int(about["encodedDataLength"])


class Browser:
    """Its pages share nothing but the process."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._calls: dict[int, asyncio.Future[Any]] = {}
        self._pages: dict[str, Page] = {}
        self._reading = asyncio.ensure_future(self._read())

    async def call(self, method: str, session: str | None = None, **parameters: Any) -> Any:
        number = len(self._calls) + 1
        self._calls[number] = asyncio.get_running_loop().create_future()
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        await self._socket.send_json(message)
        async with asyncio.timeout(TIMEOUT_S):
            return await self._calls[number]

    async def open(
        self,
        address: str,
        *,
        width: int = 1280,
        height: int = 900,
        phone: bool = False,
        scheme: str = "light",
        headers: Mapping[str, str] | None = None,
    ) -> Page:
        context = (await self.call("Target.createBrowserContext"))["browserContextId"]
        target = await self.call("Target.createTarget", url="about:blank", browserContextId=context)
        attached = await self.call(
            "Target.attachToTarget", targetId=target["targetId"], flatten=True
        )
        page = self._pages[attached["sessionId"]] = Page(self, attached["sessionId"])
        for domain in ("Page", "Runtime", "Log", "Network"):
            await page.call(f"{domain}.enable")
        if headers:
            await page.call("Network.setExtraHTTPHeaders", headers=dict(headers))
        await page.size(width, height, phone=phone)
        await page.prefer(scheme)
        await page.go(address)
        return page

    async def close(self) -> None:
        self._reading.cancel()
        await asyncio.wait([self._reading])
        await self._socket.close()

    async def _read(self) -> None:
        async for message in self._socket:
            content = json.loads(message.data)
            if "id" in content:
                waiting = self._calls[content["id"]]
                if waiting.done():
                    continue
                if "error" in content:
                    waiting.set_exception(RuntimeError(str(content["error"])))
                else:
                    waiting.set_result(content["result"])
            elif (page := self._pages.get(content.get("sessionId", ""))) is not None:
                page.heard(content["method"], content["params"])


@asynccontextmanager
async def chromium(folder: Path) -> AsyncIterator[Browser]:
    """`folder` is for its profile."""
    path = browser_on_path()
    assert path is not None, f"no browser on PATH, of {', '.join(NAMES)}"
    process = await asyncio.create_subprocess_exec(
        path, *OPTIONS, f"--user-data-dir={folder}", "about:blank",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        async with asyncio.timeout(TIMEOUT_S):
            while "DevTools listening on " not in (
                line := (await process.stderr.readline()).decode()
            ):
                assert line, "the browser did not start"
        address = line.partition("DevTools listening on ")[2].strip()
        draining = asyncio.ensure_future(process.stderr.read())
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(address, max_msg_size=0) as socket,
        ):
            browser = Browser(socket)
            try:
                yield browser
            finally:
                await browser.close()
        draining.cancel()
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()
