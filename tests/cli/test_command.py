"""Command line: `rollcall` as people and scripts use it: output, errors and exit codes.

Most tests run the commands within this process; a few start the installed command itself.
"""

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cli import commands
from cli.exits import of_disk
from cli.reference import reference
from config.keys import keys
from rollcall import __version__
from tests.build import IS_COMPILED

ROOT = Path(__file__).parents[2]
ROLLCALL = Path(sys.executable).with_name("rollcall")


class Outcome:
    """What one run of the command left behind."""

    def __init__(self, exit_code: int, out: str, err: str) -> None:
        self.exit_code = exit_code
        self.out = out
        self.err = err


class Command:
    """Runs `rollcall ARGUMENTS` in this process, with no KAFKA_ variables but those given."""

    def __init__(self, patch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]) -> None:
        self._patch = patch
        self._capture = capture

    def __call__(self, *arguments: str, **environment: str) -> Outcome:
        for name in list(os.environ):
            if name.startswith(("KAFKA_", "ROLLCALL_")):
                self._patch.delenv(name)
        for name, value in environment.items():
            self._patch.setenv(name, value)
        self._patch.setattr(sys, "argv", ["rollcall", *arguments])
        with pytest.raises(SystemExit) as left:
            sys.exit(commands.run())
        captured = self._capture.readouterr()
        assert isinstance(left.value.code, int)
        return Outcome(left.value.code, captured.out, captured.err)


@pytest.fixture
def rollcall(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capsys)


def test_version_and_help(rollcall: Command) -> None:
    said = rollcall("--version").out
    build = "compiled" if IS_COMPILED else "pure Python"
    assert said.startswith(f"rollcall {__version__} ({build}")
    assert " PGO, " in said
    for arguments in (("--help",), ("serve", "-h"), ("config", "--help"), ("completion", "-h")):
        shown = rollcall(*arguments)
        assert shown.exit_code == 0
        assert shown.out.startswith("Usage: rollcall")
        assert shown.err == ""


def test_the_help_of_serve_names_every_option_and_the_defaults(rollcall: Command) -> None:
    text = " ".join(rollcall("serve", "--help").out.split())
    for option in ("--data-dir", "--listen", "--advertise", "--admin", "--config", "--set"):
        assert option in text
    for default in ("127.0.0.1:9092", "127.0.0.1:9180", "./rollcall-data"):
        assert default in text


def test_the_bare_command_shows_its_help_and_is_no_success(rollcall: Command) -> None:
    shown = rollcall()
    assert shown.exit_code == 2
    assert "Commands:" in shown.err


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("serve", "--set", "group.max.size=0"), "group.max.size"),
        (("serve", "--set", "nosuch.name=1"), "nosuch.name"),
        (("serve", "--set", "group.max.size"), "--set"),
        (("serve", "--set", "ssl.engine.factory.class=k"), "ssl.engine.factory.class"),
        (("serve", "--listen", "nowhere"), "listeners"),
        (("serve", "--listen", "0.0.0.0:9092"), "advertised.listeners"),
        (("serve", "--advertise", "0.0.0.0:9092"), "advertised.listeners"),
        (("serve", "--admin", "nowhere"), "rollcall.admin.listener"),
        (("serve", "--config", "nowhere.toml"), "nowhere.toml"),
        (("serve", "--data-dir", __file__), "--data-dir"),
        (("serve", "--nosuch"), "--nosuch"),
        (("serve", "extra"), "extra"),
        (("config", "--set", "group.max.size=x"), "group.max.size"),
        (("completion", "tcsh"), "tcsh"),
        (("why", "billing", "--generation", "-5"), "--generation"),
        (("lag", "--admin", "nowhere"), "nowhere"),
        (("verdicts", "--admin", "127.0.0.1:1"), "no daemon answers at 127.0.0.1:1: start it"),
        (("lag", "--admin", "127.0.0.1:1"), "no daemon answers at 127.0.0.1:1: start it"),
        (("why", "billing", "--admin", "127.0.0.1:1"), "no daemon answers at 127.0.0.1:1: start"),
        (("history", "billing", "--admin", "127.0.0.1:1"), "no daemon answers at 127.0.0.1:1: st"),
        (("nosuch",), "no command 'nosuch'; commands: completion, config,"),
        (("sevre",), "no command 'sevre'; did you mean serve?"),
        (("offsets", "exprot"), "no command 'exprot'; did you mean export?"),
        (("log", "stats"), "did you mean stat?"),
        (("pipeline", "as_of"), "did you mean as-of?"),
        (("offsets", "import", "--from", "nowhere"), "nowhere does not exist"),
        (("log", "lint", "nowhere"), "nowhere"),
        (("serve", "--listen", "0.0.0.0:9092"), "--advertise HOST:PORT"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    rollcall: Command, arguments: tuple[str, ...], named: str
) -> None:
    refused = rollcall(*arguments)

    assert refused.exit_code == 2
    assert refused.out == ""
    assert refused.err.count("\n") == 1
    assert named in refused.err


@pytest.mark.parametrize(
    ("number", "exit_code"),
    [(errno.ENOSPC, 1), (errno.EIO, 1), (errno.ENOENT, 2), (errno.EACCES, 2), (errno.EISDIR, 2)],
)
def test_a_disk_that_fails_is_another_code_than_a_wrong_path(number: int, exit_code: int) -> None:
    fault = of_disk(OSError(number, os.strerror(number), "some/file"))

    assert fault.exit_code == exit_code
    assert str(fault) == f"some/file: {os.strerror(number)}"


def test_an_output_that_cannot_be_written_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", "from cli.main import main; main()", "config"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert done.returncode == 1
    assert done.stderr == "rollcall: disk: No space left on device\n"


def test_config_prints_every_value_with_its_origin(rollcall: Command) -> None:
    shown = rollcall(
        "config",
        *("--listen", "127.0.0.1:0", "--admin", "", "--data-dir", "somewhere"),
        *("--advertise", "a.example:1", "--set", "group.max.size=9"),
        KAFKA_NUM_PARTITIONS="6",
    )

    assert shown.exit_code == 0
    assert len(shown.out.splitlines()) == len(keys())
    for line in (
        r"listeners = PLAINTEXT://127.0.0.1:0 +\(command line --listen\)",
        r"advertised.listeners = PLAINTEXT://a.example:1 +\(command line --advertise\)",
        r"rollcall.admin.listener = +\(command line --admin\)",
        r"log.dirs = somewhere +\(command line --data-dir\)",
        r"group.max.size = 9 +\(command line --set\)",
        r"num.partitions = 6 +\(environment KAFKA_NUM_PARTITIONS\)",
        r"offset.metadata.max.bytes = 4096 +\(default\)",
    ):
        assert re.search(f"^{line}$", shown.out, re.MULTILINE), line


def test_config_as_json_is_typed(rollcall: Command) -> None:
    shown = rollcall("config", "--json", ROLLCALL_FLUSH="os")
    values = json.loads(shown.out)

    assert values["rollcall.flush"] == {
        "value": "os",
        "source": "environment",
        "place": "ROLLCALL_FLUSH",
    }
    assert values["auto.create.topics.enable"]["value"] is True
    assert values["listeners"]["value"] == ["PLAINTEXT://127.0.0.1:9092"]
    assert values["log.retention.ms"]["value"] is None


def test_config_can_show_only_what_was_changed(rollcall: Command, tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text("group.max.size = 9\n")
    shown = rollcall("config", "--changed", ROLLCALL_CONFIG=str(path))

    assert shown.out.split() == ["group.max.size", "=", "9", "(file", f"{path})"]


def test_what_is_passed_over_is_said_on_the_error_stream(rollcall: Command) -> None:
    shown = rollcall("config", "--set", "num.network.threads=3", KAFKA_BROKER_RAK="r1")

    assert shown.exit_code == 0
    assert shown.err.splitlines() == [
        (
            "rollcall: warning: Environment ignored, no such configuration: KAFKA_BROKER_RAK "
            "(did you mean broker.rack?)"
        ),
        (
            "rollcall: warning: Configuration accepted, but Rollcall has no use for it: "
            "num.network.threads"
        ),
    ]


def test_the_reference_page_is_current() -> None:
    written = (ROOT / "docs" / "configuration.md").read_text()
    assert written == reference(), "docs/configuration.md is old: run `make docs`"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_for_this_command(rollcall: Command, shell: str) -> None:
    shown = rollcall("completion", shell)

    assert shown.exit_code == 0
    assert "_ROLLCALL_COMPLETE" in shown.out


def test_the_shell_completes_commands_options_and_property_names() -> None:
    def complete(words: str) -> str:
        asked = subprocess.run(
            [ROLLCALL],
            env={
                **os.environ,
                "_ROLLCALL_COMPLETE": "bash_complete",
                "COMP_WORDS": words,
                "COMP_CWORD": str(len(words.split(" ")) - 1),
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return asked.stdout

    assert "plain,serve" in complete("rollcall se")
    assert "plain,--data-dir" in complete("rollcall serve --da")
    assert "plain,group.initial.rebalance.delay.ms=" in complete("rollcall serve --set group.init")


def test_the_installed_command_neither_loads_the_daemon_nor_fails() -> None:
    # The parts that only a running daemon needs would make each press of Tab slow.
    script = (
        "import sys, cli.commands; print(sorted({'aiohttp', 'uvloop', 'asyncio'} & {*sys.modules}))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert loaded.stdout == "[]\n"


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    piped = subprocess.run(
        f"'{ROLLCALL}' config --markdown | head -n 1",
        shell=True,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert piped.stderr == ""
