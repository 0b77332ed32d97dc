"""Exit codes: each command ends each wrong input with one line and the code in the table."""

import errno
import gc
import os
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from cli.exits import CommandFailed, of_disk, operator_errors
from seams.operator_error import OperationFailed, OperatorError, WrongInput
from storage.api import Corrupt, LogClosed
from storage.data_dir import DataDir, DataDirRefused
from storage.log.segment_swap import SwapRefused
from tests.cli.test_command import Command, rollcall

__all__ = ["rollcall"]  # a fixture

LOCKED = "is in use by process"


@pytest.fixture(autouse=True)
def _collector() -> Iterator[None]:
    """`serve` turns the garbage collector off before it finds out that it cannot start."""
    yield
    gc.enable()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a user may name by mistake."""
    here = tmp_path_factory.mktemp("inputs")
    (here / "empty").mkdir()
    (here / "file.txt").write_text("no log")
    (here / "bad.csv").write_text("group,orders,0,x\n")
    (here / "latin.csv").write_bytes(b"\xe9,orders,0,1\n")
    (here / "bad.json").write_text("{")
    (here / "bad.toml").write_text("[")
    (here / "orders-0").mkdir()
    return here


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ("config --set nosuch.name=1", 2, "nosuch.name"),
        ("config --config {}/nowhere.toml", 2, "nowhere.toml"),
        ("config --config {}/bad.toml", 2, "bad.toml"),
        ("serve --set group.max.size=0", 2, "group.max.size"),
        ("serve --data-dir {}/file.txt/data", 2, "data directory"),
        ("serve --listen 192.0.2.1:9092 --data-dir {}/served", 2, "192.0.2.1"),
        ("why g --since 2026-11-22 --until 2026-11-21", 2, "--since is after --until"),
        ("why g --since soon", 2, "'soon' is no time"),
        ("why --generation 3", 2, "--generation needs a GROUP"),
        ("why g --admin 127.0.0.1:1", 2, "no daemon answers"),
        ("history g --limit 0", 2, "--limit"),
        ("history g --admin 127.0.0.1:1", 2, "no daemon answers"),
        ("lag --admin nowhere", 2, "--admin"),
        ("lag --admin 127.0.0.1:1", 2, "no daemon answers"),
        ("verdicts --admin 127.0.0.1:1", 2, "no daemon answers"),
        ("completion tcsh", 2, "tcsh"),
        ("log dump {}/nowhere", 2, "does not exist"),
        ("log dump {}/empty", 2, "holds no partition's log"),
        ("log dump {}/file.txt", 2, "is no segment"),
        ("log dump {}/orders-0 --type Nosuch", 2, "is not a record type"),
        ("log dump {}/orders-0 --topic orders:x", 2, "is not a partition"),
        ("log lint {}/nowhere", 2, "does not exist"),
        ("log lint {}/empty", 2, "holds no partition's log"),
        ("log stat {}/nowhere", 2, "does not exist"),
        ("log stat {}/file.txt", 2, "is no segment"),
        ("log clean {}/nowhere", 2, "nowhere"),
        ("log clean {}/empty", 2, "is not a Rollcall data directory"),
        ("log clean --dry-run {}/empty", 2, "was not stopped cleanly"),
        ("log clean --set nosuch.name=1 {}/empty", 2, "nosuch.name"),
        ("offsets import --from {}/nowhere", 2, "does not exist"),
        ("offsets import --from {}/empty", 2, "no folder __consumer_offsets-N"),
        ("offsets import --from {}/bad.csv", 2, "line 1"),
        ("offsets import --from {}/latin.csv", 2, "is not UTF-8"),
        ("offsets import --from {}/bad.json", 2, "bad.json"),
        ("offsets import --from {}/bad.csv --merge --overwrite", 2, "cannot be combined"),
        ("offsets import --from {}/bad.csv --bootstrap b:1 --data-dir d", 2, "cannot be combined"),
        ("offsets import --from {}/bad.csv --set nosuch.name=1", 2, "nosuch.name"),
        ("offsets import --from {}/bad.csv --group re:( --data-dir {}/d", 2, "regular expression"),
        ("offsets export --json - --data-dir {}/nowhere", 2, "is not a Rollcall data directory"),
        ("offsets export --data-dir {}/empty", 2, "one of --for-kafka, --csv and --json"),
        ("offsets export --json - --bootstrap 127.0.0.1:1", 2, "127.0.0.1:1"),
        ("offsets export --json - --bootstrap nowhere", 2, "is not HOST:PORT"),
        ("pipeline run nosuch --from {} --to {}/out", 2, "no job 'nosuch'"),
        ("pipeline run all --from {} --to {}/out --set x", 2, "expected KEY=VALUE"),
        ("pipeline run all --from {} --to {}/out --since soon", 2, "'soon' is no time"),
        ("pipeline schema nosuch", 2, "no table 'nosuch'"),
        ("pipeline archive {}/file.txt/archive", 2, "file.txt"),
        ("pipeline stream --from {} --to {}/out --every 1x", 2, "is not a duration"),
    ],
)
def test_a_wrong_input_ends_with_one_line_and_its_code(
    rollcall: Command,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: str,
    code: int,
    says: str,
) -> None:
    monkeypatch.chdir(place)
    ended = rollcall(*words.replace("{}", str(place)).split())

    assert (ended.exit_code, ended.out) == (code, "")
    assert ended.err.count("\n") == 1, ended.err
    assert says in ended.err


@pytest.mark.parametrize(
    "words",
    ["offsets export --json - --data-dir {}", "log clean {}"],
)
def test_a_directory_in_use_is_wrong_input(rollcall: Command, tmp_path: Path, words: str) -> None:
    daemon = DataDir(str(tmp_path), 1)
    try:
        (tmp_path / "__consumer_offsets-0").mkdir()
        ended = rollcall(*words.format(tmp_path).split())
    finally:
        daemon.close()

    assert (ended.exit_code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert LOCKED in ended.err
    assert ended.err.strip().endswith("or use --bootstrap") == words.startswith("offsets")


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (WrongInput("w"), 2),
        (OperationFailed("w"), 1),
        (OSError(errno.ENOENT, os.strerror(errno.ENOENT), "f"), 2),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "f"), 1),
        (DataDirRefused("w"), 2),
        (Corrupt("f", 0, "w"), 1),
        (LogClosed("w"), 1),
        (SwapRefused("w"), 1),
    ],
)
def test_each_kind_of_error_has_its_code(fault: Exception, code: int) -> None:
    with pytest.raises(CommandFailed) as failed, operator_errors(opens_logs=True):
        raise fault
    assert failed.value.exit_code == code
    assert failed.value.format_message()
    assert "\n" not in failed.value.format_message()


@pytest.mark.parametrize(
    "fault", [KeyError("defect"), BrokenPipeError(errno.EPIPE, "closed"), click.UsageError("u")]
)
def test_other_exceptions_pass(fault: Exception) -> None:
    with pytest.raises(type(fault)), operator_errors(opens_logs=True):
        raise fault


def test_the_daemons_log_errors_are_not_a_commands() -> None:
    with pytest.raises(LogClosed), operator_errors(opens_logs=False):
        raise LogClosed("a defect in the daemon keeps its traceback")


def test_every_kind_of_operator_error_has_a_code() -> None:
    for kind in OperatorError.__subclasses__():
        assert kind.exit_code in (1, 2)
    assert of_disk(OSError(errno.EIO, "io")).exit_code == 1
