"""Admin port start: imported when somebody first connects, and nothing is missed until then."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

from broker.net.sockets import bind_admin
from broker.observe.events import PartFailed
from console.start import AdminPort, open_console
from history.causes import Cause, End
from history.entries import Rebalance, RebalanceEndedEntry
from tests.broker.node import Node


async def ask(port: int, path: str) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    return answer.decode()


async def test_the_first_connection_opens_the_console_and_sees_what_was_before(
    tmp_path: Path,
) -> None:
    async with Node(tmp_path) as node:
        admin = bind_admin("127.0.0.1", 0)
        port = await open_console(node.daemon, admin)
        assert node.daemon.history is not None
        ended = Rebalance(Cause.MEMBER_LEFT, 5, end=End.STABLE)
        now = node.daemon.clock.now()
        node.daemon.history.record_entry(RebalanceEndedEntry("g", 5, ended), now)
        try:
            scraped = await ask(admin.port, "/metrics")
            assert "ok" in await ask(admin.port, "/livez")
        finally:
            await port.close()
            admin.close()
    counted = 'group_coordinator_rebalances_ended_total{cause="member_left",end="stable"} 1'
    assert counted in scraped


async def test_a_port_that_nobody_asked_is_closed(tmp_path: Path) -> None:
    async with Node(tmp_path) as node:
        admin = bind_admin("127.0.0.1", 0)
        port = AdminPort(node.daemon, admin)
        await port.close()
        admin.close()


async def test_a_console_that_cannot_open_is_a_line_in_the_log(tmp_path: Path) -> None:
    async with Node(tmp_path) as node:
        admin = bind_admin("127.0.0.1", 0)
        reported: list[object] = []
        seen = asyncio.Event()

        class Broken(AdminPort):
            async def _open_console(self) -> NoReturn:
                raise ImportError("no such library")

        def observe(event: object) -> None:
            reported.append(event)
            seen.set()

        node.daemon.observer = observe  # type: ignore[assignment]
        port = Broken(node.daemon, admin)
        _, writer = await asyncio.open_connection("127.0.0.1", admin.port)
        await seen.wait()
        await port.close()
        writer.close()
        admin.close()
    assert isinstance(reported[0], PartFailed)


def test_a_start_does_not_import_the_http_library() -> None:
    code = (
        "from rollcall.program import use_program_path; use_program_path(); import sys; "
        "import cli.serve, broker.main, console.start; print('aiohttp' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
