"""Many groups: ten thousand real ones, each with a member, an assignment and commits."""

import asyncio
from typing import Final

from bench.scrape import CONNECTIONS, Seat, form_groups
from tests.broker.daemon import Daemon
from tests.console.live import create

MANY_GROUPS: Final = 10_000
PARTITIONS: Final = 2


def form_many_groups(daemon: Daemon) -> None:
    """They are called group-000000 and so on. Their members stay without a connection."""
    create(daemon, "bench", PARTITIONS)
    asyncio.run(_form(daemon))


async def _form(daemon: Daemon) -> None:
    seats: list[Seat] = []
    writers: list[asyncio.StreamWriter] = []
    for _ in range(CONNECTIONS):
        reader, writer = await asyncio.open_connection(daemon.host, daemon.port)
        seats.append(Seat(reader, writer))
        writers.append(writer)
    await form_groups(seats, MANY_GROUPS, PARTITIONS)
    for writer in writers:
        writer.close()
