"""`rollcall drill`: whole drills with model clients, planted defects, and its exit codes.

`make test` runs a few short ones. `make long-drills` (LONG_DRILLS=1) runs every shipped drill with
every library that is installed here; DRILL_LIBRARIES names them.
"""

import json
import os
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import click
import pytest
from confluent_kafka.admin import AdminClient

from cli.commands import cli
from drills.catalog import shipped_drills
from drills.clients import libraries
from drills.clients.libraries import LIBRARIES
from drills.events import wait_for
from pipeline.java import NoJava
from tests.broker.daemon import TEST_SETTINGS
from tests.conftest import StartDaemon
from tests.drills.planted import DAEMON_DEFECTS
from tests.interop.kafka_tools import require_kafka_tools

LONG = os.environ.get("LONG_DRILLS", "") not in ("", "0")
LONG_ONLY = pytest.mark.skipif(not LONG, reason="LONG_DRILLS is not set")
NAMES = os.environ.get("DRILL_LIBRARIES", ",".join(LIBRARIES)).split(",")
TIMEOUT_S = 280

GROUP = """
[group]
members = 2
partitions = 2
"""
SOME_ANSWERED = f"""{GROUP}
[[step]]
do = "kill"
target = "daemon"
at = "some-syncs-answered"
[[step]]
do = "start"
member = "m3"
[[step]]
do = "restart"
"""
KILL_DAEMON = f"""{GROUP}
[[step]]
do = "kill"
target = "daemon"
[[step]]
do = "restart"
[[step]]
do = "start"
member = "m3"
[promises]
recover_within_s = 8
"""
KILL_MEMBER = f"""{GROUP}
session_timeout_ms = 1000
[[step]]
do = "kill"
target = "m2"
"""


def drill(
    folder: Path, *arguments: str, environment: dict[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "rollcall", "drill", *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        cwd=folder,
        env={**os.environ, **(environment or {}), "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def run_file(folder: Path, text: str, *arguments: str) -> tuple[int, dict]:
    """Exit code, and what report.json has of the model client, or of the only one."""
    (folder / "my.toml").write_text(text)
    done = drill(folder, "run", "my.toml", "--out", "out", *arguments)
    assert (folder / "out" / "report.json").exists(), done.stderr
    clients = json.loads((folder / "out" / "report.json").read_text())["clients"]
    (measures,) = clients.values()
    assert (folder / "out" / "picture.svg").stat().st_size > 1_000
    return done.returncode, measures


def script(path: Path, *words: str) -> str:
    """An executable that runs tests/drills/planted.py."""
    path.write_text(
        f'#!/bin/sh\nexec {sys.executable} -m tests.drills.planted {" ".join(words)} "$@"\n'
    )
    path.chmod(0o755)
    return str(path)


def broken(measures: dict) -> set[str]:
    return {promise["promise"] for promise in measures["promises"] if not promise["is_kept"]}


def test_a_coordinator_that_dies_at_a_step_keeps_every_promise(tmp_path: Path) -> None:
    exit_code, measures = run_file(tmp_path, SOME_ANSWERED)

    assert exit_code == 0, measures["promises"]
    assert measures["time_to_recover_s"] > 0
    assert measures["rebalances"] >= 1
    assert measures["records_lost"] == measures["commits_lost"] == 0
    kinds = [event["kind"] for event in measures["events"] if event["source"] == "daemon"]
    assert kinds == ["started", "ready", "killed", "started", "ready"]


def test_a_daemon_that_gives_a_partition_to_two_members_fails(tmp_path: Path) -> None:
    program = script(tmp_path / "daemon", "two-owners")
    exit_code, measures = run_file(
        tmp_path, GROUP.replace("2", "1", 1) + SHARE_LATER, "--daemon", program
    )

    assert exit_code == 1
    assert "ownership_overlaps_max" in broken(measures)
    assert measures["ownership_overlaps"] >= 1


SHARE_LATER = """
[[step]]
do = "start"
member = "m2"
[[step]]
do = "wait"
for_s = 1
[promises]
recover_within_s = 3
"""


def children_of(pid: int) -> set[int]:
    """Those that run, or are not reaped yet."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            name, _, fields = stat.read_text().rpartition(")")
            if int(fields.split()[1]) == pid:
                found.add(int(name.split()[0]))
    return found


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux ends the children")
def test_a_drill_that_is_killed_ends_what_it_started_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(f'{GROUP}[[step]]\ndo = "wait"\nfor_s = 600\n')
    sleeping = [sys.executable, "-c", "import time; time.sleep(600)", "rollcall", "serve"]
    command = [sys.executable, "-m", "rollcall", "drill", "run", "my.toml", "--out", "out"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with (
        subprocess.Popen(sleeping) as bystander,
        subprocess.Popen(
            command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL
        ) as killed,
    ):
        try:
            assert wait_for(lambda: len(children_of(killed.pid)) == 3, TIMEOUT_S)
            children = children_of(killed.pid)  # the daemon and two members
            killed.kill()
            killed.wait()
            assert wait_for(lambda: not any(map(runs, children)), TIMEOUT_S)
            assert bystander.poll() is None
        finally:
            killed.kill()
            bystander.kill()


def test_a_drill_that_could_not_run_leaves_nothing_on_a_running_server(
    tmp_path: Path, start_daemon: StartDaemon
) -> None:
    server = start_daemon(TEST_SETTINGS).bootstrap
    (tmp_path / "my.toml").write_text(f'{GROUP}[[step]]\ndo = "wait"\nfor_s = 0.1\n')
    program = tmp_path / "client"
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o755)
    clients = f"exec:{program}"
    done = drill(tmp_path, "run", "my.toml", "--clients", clients, "--against", server)

    assert done.returncode == 2
    assert "ended with 3" in done.stderr.splitlines()[-1]
    topics = AdminClient({"bootstrap.servers": server}).list_topics(timeout=60).topics
    assert [name for name in topics if name.startswith("rollcall-drill")] == []


@LONG_ONLY
@pytest.mark.parametrize("defect", [name for name in DAEMON_DEFECTS if name != "two-owners"])
def test_a_daemon_with_a_defect_fails_after_its_restart(tmp_path: Path, defect: str) -> None:
    program = script(tmp_path / "daemon", defect)
    exit_code, measures = run_file(tmp_path, KILL_DAEMON, "--daemon", program)

    expected = {"loses-commits": "commits_lost_max", "never-recovers": "recover_within_s"}
    assert exit_code == 1
    assert expected[defect] in broken(measures)


@LONG_ONLY
def test_without_a_defect_the_same_drill_passes(tmp_path: Path) -> None:
    text = KILL_DAEMON.replace("recover_within_s = 8", "recover_within_s = 60")
    assert run_file(tmp_path, text)[0] == 0


@LONG_ONLY
def test_a_client_that_commits_before_it_processes_loses_records(tmp_path: Path) -> None:
    program = script(tmp_path / "client", "commits-first")
    exit_code, measures = run_file(tmp_path, KILL_MEMBER, "--clients", f"exec:{program}")

    assert exit_code == 1
    assert broken(measures) == {"records_lost_max"}
    assert measures["records_lost"] >= 1
    assert run_file(tmp_path, KILL_MEMBER)[0] == 0


def refusal(*arguments: str) -> tuple[int, str]:
    """Exit code and text of a command that is refused, in this process."""
    with pytest.raises(click.ClickException) as refused:
        cli.main([*arguments], standalone_mode=False)
    (line,) = refused.value.format_message().splitlines()
    return refused.value.exit_code, line


def test_drills_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["drill", "list", "--json"], standalone_mode=False)
    listed = json.loads(capsys.readouterr().out)

    assert [row["name"] for row in listed] == [scenario.name for scenario in shipped_drills()]
    assert all(row["shows"] and Path(row["file"]).is_file() for row in listed)
    cli.main(["drill", "list"], standalone_mode=False)
    assert "slow-a-silent" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing"], "no such drill"),
        (["broken.toml"], "line 2"),
        (["unknown.toml"], "has no key 'speed'"),
        (["kill-daemon", "--clients", "librdcafka"], "no such library"),
        (["kill-daemon", "--clients", "model,model"], "name each library once"),
        (["kill-daemon", "--clients", "exec:no-such-program"], "there is no such program"),
        (["consumer-member-killed", "--clients", "aiokafka"], "has no group.protocol=consumer"),
        (["kill-daemon", "--against", "127.0.0.1:1"], "needs a daemon of the drill's own"),
        (["member-killed", "--against", "127.0.0.1:1"], "127.0.0.1:1: "),
        (["member-killed", "--against", "nowhere"], "--against nowhere"),
        (["kill-daemon", "--daemon", "/no/such/rollcall"], "the daemon does not start"),
        (["setting.toml"], "the daemon does not start: "),
    ],
)
def test_what_cannot_run_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    (tmp_path / "broken.toml").write_text("a = 1\nb = \n")
    (tmp_path / "unknown.toml").write_text(f"speed = 1\n{KILL_MEMBER}")
    (tmp_path / "setting.toml").write_text(f"{KILL_MEMBER}[daemon]\nno.such.key = 1\n")

    monkeypatch.chdir(tmp_path)
    code, line = refusal("drill", "run", *arguments)
    assert code == 2
    assert words in line


def test_a_port_that_is_taken_is_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = drill(tmp_path, "run", "member-killed", "--listen", address)

    assert done.returncode == 2
    assert f"cannot listen on {address}: " in done.stderr.splitlines()[-1]


def test_java_without_a_java_or_its_jars_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_CLIENTS_JARS", str(tmp_path))
    code, line = refusal("drill", "run", "member-killed", "--clients", "java")
    assert code == 2
    assert line.startswith("--clients java: ")

    def no_java() -> None:
        raise NoJava("none")

    monkeypatch.setattr(libraries, "find_java", no_java)
    code, line = refusal("drill", "run", "member-killed", "--clients", "java")
    assert code == 2
    assert "no Java 17 or later" in line


def test_a_library_that_is_not_installed_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries.importlib.util, "find_spec", lambda _: None)
    code, line = refusal("drill", "run", "member-killed", "--clients", "librdkafka")
    assert code == 2
    assert line.endswith("not installed (pip install confluent-kafka)")


@LONG_ONLY
@pytest.mark.parametrize("library", NAMES)
@pytest.mark.parametrize("scenario", shipped_drills(), ids=lambda scenario: scenario.name)
def test_every_shipped_drill_passes_with_every_library(
    tmp_path: Path, scenario, library: str
) -> None:
    if scenario.protocol not in LIBRARIES[library].protocols:
        pytest.skip(f"{library} has no group.protocol={scenario.protocol}")
    environment = {}
    if library == "java":
        jars = require_kafka_tools().jars
        environment["KAFKA_CLIENTS_JARS"] = os.pathsep.join(map(str, jars))
    done = drill(
        tmp_path,
        "run",
        scenario.name,
        "--clients",
        library,
        "--out",
        "out",
        environment=environment,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
