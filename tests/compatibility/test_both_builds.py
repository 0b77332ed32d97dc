"""Both builds: sources and compiled modules read each other's data directory after a kill."""

import asyncio
import subprocess
import sys

import pytest

from native.check import IS_COMPILED as SAYS_COMPILED
from protocol.names import ErrorCode
from tests.broker.daemon import Daemon
from tests.broker.members import Member, as_other, make_topic
from tests.broker.shell import Client
from tests.build import IS_COMPILED, NO_BUILD
from tests.conftest import StartDaemon

PURE, COMPILED = "1", "0"


async def client_of(daemon: Daemon) -> Client:
    host, _, port = daemon.bootstrap.rpartition(":")
    return await Client.connect(int(port), host)


def run_by(daemon: Daemon, build: str) -> Daemon:
    """Kill it where it stands; the other build goes on with its data."""
    daemon.kill()
    daemon.environment["ROLLCALL_PURE"] = build
    return daemon.start()


async def goes_on(member: Member, daemon: Daemon, offset: int) -> Member:
    """The member of before, in its generation, finds its last offset and commits the next."""
    member = as_other(member, await client_of(daemon))
    code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    async with asyncio.timeout(60):
        while code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            code = await member.beat()
    assert code is ErrorCode.NONE
    assert await member.committed() == offset - 1
    assert await member.commit(offset) is ErrorCode.NONE
    return member


def test_each_build_goes_on_with_what_the_other_has_written(start_daemon: StartDaemon) -> None:
    found = subprocess.run([sys.executable, "-m", "tests.build"], check=False, capture_output=True)
    if found.returncode == NO_BUILD:
        pytest.skip(found.stdout.decode())

    asyncio.run(commit_by_turns(start_daemon()))


async def commit_by_turns(daemon: Daemon) -> None:
    client = await client_of(daemon)
    await make_topic(client)
    member = Member(client)
    await member.enter()
    assert await member.commit(1) is ErrorCode.NONE

    builds = [COMPILED, PURE, COMPILED]
    for offset, build in enumerate(builds, start=2):
        member = await goes_on(member, run_by(daemon, build), offset)

    assert await member.committed() == len(builds) + 1
    assert len(SAYS_COMPILED.findall(daemon.log())) == 2 + IS_COMPILED  # and the first daemon
