"""Pytest plugin: as a user has it, with fixtures by name, reports, xdist, and no cost if unused."""

import pytest

PLUGIN = ("-p", "no:rollcall", "-p", "rollcall.pytest_plugin", "-p", "no:cacheprovider")
"""Loaded by its module: an environment may have been installed before there was an entry point."""

JOIN = '''
import socket, struct

def text(value):
    return struct.pack(">h", len(value)) + value

def join(bootstrap, group):
    """JoinGroup v1, as bytes: no client library, and nothing of Rollcall's."""
    host, port = bootstrap.split(":")
    body = text(group) + struct.pack(">ii", 45_000, 300_000) + text(b"") + text(b"consumer")
    body += struct.pack(">i", 1) + text(b"range") + struct.pack(">i", 0)
    frame = struct.pack(">hhi", 11, 1, 1) + text(b"raw") + body
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall(struct.pack(">i", len(frame)) + frame)
        size = struct.unpack(">i", connection.recv(4))[0]
        answer = connection.recv(size)
        assert struct.unpack(">h", answer[4:6]) == (0,), answer
'''


@pytest.fixture(autouse=True)
def _quiet(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")


def test_the_groups_are_in_the_report_of_a_failure_and_of_no_other(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        JOIN
        + """
def test_passes(rollcall_session):
    join(rollcall_session.bootstrap, b"earlier-group")

def test_of_one_daemon(rollcall):
    join(rollcall.bootstrap, b"billing")
    rollcall.advance(46)
    rollcall.wait("billing", state="Stable", timeout=0)

def test_of_the_session(rollcall_session):
    join(rollcall_session.bootstrap, b"later")
    assert False

def test_of_a_factory(rollcall_factory):
    rollcall_factory(group_max_size=1)
    closed = rollcall_factory()
    closed.close()
    assert False
"""
    )

    result = pytester.runpytest_subprocess(*PLUGIN)

    result.assert_outcomes(passed=1, failed=3)
    result.stdout.fnmatch_lines(
        [
            "*WaitTimedOut: group billing is not Stable after 0 s: it is Empty with 0 members",
            "*- rollcall 127.0.0.1:* -*",
            "Group billing: Empty, generation 2, 0 members",
            "*Z  billing  members_removed: expired in generation 1: raw*",
            "*- rollcall 127.0.0.1:* -*",
            "*Z  later  member_joined: *",
            "*- rollcall 127.0.0.1:* -*",
            "There are no groups, and there were none.",
        ]
    )
    report = result.stdout.str()
    assert report.count("- rollcall 127.0.0.1:") == 3
    assert "earlier-group" not in report.partition("- rollcall")[2]  # another test's
    assert "Z  later" not in report.partition("- rollcall")[2].partition("- rollcall")[0]


def test_each_process_of_xdist_has_daemons_of_its_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
import os, pathlib, pytest

@pytest.mark.parametrize("number", range(4))
def test_one(rollcall, rollcall_session, number):
    line = f"{os.getpid()} {rollcall_session.bootstrap} {rollcall.folder}\\n"
    with pathlib.Path("seen").open("a") as seen:
        seen.write(line)
    assert rollcall.folder.exists()
"""
    )

    result = pytester.runpytest_subprocess(*PLUGIN, "-n2")

    result.assert_outcomes(passed=4)
    seen = [line.split() for line in (pytester.path / "seen").read_text().splitlines()]
    assert len({folder for _, _, folder in seen}) == 4
    assert len({process for process, _, _ in seen}) == len({session for _, session, _ in seen})
    assert not [folder for _, _, folder in seen if pytester.path.joinpath(folder).parent.exists()]


def test_a_run_without_a_daemon_imports_and_starts_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
import sys

def test_modules(request):
    assert "rollcall.pytest_plugin" in sys.modules
    loaded = {name for name in sys.modules if name.startswith("rollcall")}
    assert loaded == {"rollcall", "rollcall.pytest_plugin"}
    assert "broker" not in sys.modules
"""
    )

    pytester.runpytest_subprocess(*PLUGIN).assert_outcomes(passed=1)


def test_an_asyncio_test_uses_the_same_fixtures(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        JOIN
        + """
import asyncio, pytest

@pytest.mark.asyncio
async def test_waits(rollcall):
    await asyncio.to_thread(join, rollcall.bootstrap, b"billing")
    group = await rollcall.wait_async("billing", members=1)
    rollcall.expire("billing", group.members[0].member_id)
    await rollcall.wait_async("billing", state="Empty", members=0)
"""
    )

    pytester.runpytest_subprocess(*PLUGIN).assert_outcomes(passed=1)
