"""Node: the whole daemon inside the test's own loop, with real files and sockets.

For what a process cannot be made to do from outside: a disk that fails, a request that is dropped.
"""

import asyncio
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from broker.build import build
from broker.daemon import Daemon
from broker.net.sockets import Bound, bind_listener
from broker.observe.observer import Observer, open_log
from config.keys import Config
from config.listeners import Listener
from storage.data_dir import DataDir
from tests.broker.shell import Client


class Node:
    def __init__(
        self, folder: Path, settings: Mapping[str, int | str | bool] | None = None
    ) -> None:
        self.config = Config(
            log_dirs=(str(folder / "data"),),
            **{"group_initial_rebalance_delay_ms": 0, **(settings or {})},  # type: ignore[arg-type]
        )
        self.log = io.StringIO()
        self.repair = False  # as `rollcall serve --repair`
        self.daemon: Daemon
        self.listener: Bound
        self._data_dir: DataDir | None = None

    async def __aenter__(self) -> Self:
        data_dir = self._data_dir = DataDir(str(self.config.data_dir), self.config.node_id)
        try:
            self.daemon = build(
                self.config,
                Observer(open_log("human", "debug", self.log)),
                data_dir,
                asyncio.get_running_loop(),
                repair=self.repair,
                strict_files=True,
            )
        except BaseException:
            self.release()
            raise
        self.listener = bind_listener(
            Listener("PLAINTEXT", "127.0.0.1", 0, "127.0.0.1", 0),
            backlog=50,
            send_buffer_bytes=-1,
            receive_buffer_bytes=-1,
        )
        await self.daemon.open([self.listener])
        await self.daemon.load()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.daemon.stop()
        self.release()
        assert self.daemon.guard.operations == 0, self.log.getvalue()

    def release(self) -> None:
        """Let go of the directory after a start that was refused."""
        if self._data_dir is not None:
            self._data_dir.close()

    async def client(self) -> Client:
        return await Client.connect(self.listener.port)
