"""`rollcall scram`: the first user is made offline, and no password is shown or kept."""

import stat
from pathlib import Path

import pytest

from security.sasl.scram_credential import SCRAM_SHA_256, SCRAM_SHA_512, scram_credential
from storage.disk import RealDisk
from storage.open import SCRAM_FILE, lock_data_dir, scram_file
from tests.cli.test_command import Command, rollcall
from topics.scram_store import ScramStore

__all__ = ["rollcall"]  # the fixture

PASSWORD = "a secret \u00e4"


def stored(folder: Path) -> ScramStore:
    return ScramStore(scram_file(RealDisk(), str(folder)), lambda _: None, lambda: b"")


def fits(folder: Path, user: str, mechanism: str, password: str = PASSWORD) -> bool:
    found = stored(folder).credential(mechanism, user)
    assert found is not None
    return found == scram_credential(mechanism, password, found.salt, found.iterations)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


def test_the_first_user_of_a_new_directory(rollcall: Command, folder: Path) -> None:
    done = rollcall(
        *("scram", "add", "amy", "--data-dir", str(folder), "--password-env", "SECRET"),
        SECRET=PASSWORD,
    )
    assert (done.exit_code, done.err) == (0, "")
    assert done.out == f"added amy (SCRAM-SHA-512, 4096 iterations) in {folder}\n"
    assert fits(folder, "amy", SCRAM_SHA_512)
    file = folder / SCRAM_FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert PASSWORD.encode() not in file.read_bytes()
    lock_data_dir(str(folder), 1).close()  # nothing holds it any more


def test_users_are_changed_listed_and_removed(
    rollcall: Command, folder: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text(PASSWORD + "\n")
    here = ("--data-dir", str(folder))
    given = (*here, "--password-file", str(secret))
    assert rollcall("scram", "add", "bob", *given, "--mechanism", "scram-sha-256").exit_code == 0
    assert rollcall("scram", "add", "amy", *given, "--iterations", "16384").exit_code == 0
    assert rollcall("scram", "add", "bob", *given).exit_code == 0
    assert fits(folder, "bob", SCRAM_SHA_256)
    assert rollcall("scram", "list", *here).out.splitlines() == [
        "amy  SCRAM-SHA-512  16384 iterations",
        "bob  SCRAM-SHA-256  4096 iterations",
        "bob  SCRAM-SHA-512  4096 iterations",
    ]
    secret.write_text("other")
    changed = rollcall("scram", "add", "amy", *given)
    assert changed.out.startswith("changed the password of amy")
    assert fits(folder, "amy", SCRAM_SHA_512, "other")

    removed = rollcall("scram", "remove", "bob", *here, "--mechanism", SCRAM_SHA_256)
    assert removed.out == f"removed bob (SCRAM-SHA-256) from {folder}\n"
    assert rollcall("scram", "remove", "amy", *here).exit_code == 0
    assert rollcall("scram", "list", *here).out == "bob  SCRAM-SHA-512  4096 iterations\n"
    missing = rollcall("scram", "remove", "amy", *here)
    assert missing.exit_code == 2
    assert "no such user" in missing.err


def test_a_password_is_asked_for(
    rollcall: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("click.termui.hidden_prompt_func", lambda _: PASSWORD)
    done = rollcall("scram", "add", "amy", "--data-dir", str(folder))
    assert done.exit_code == 0, done.err
    assert PASSWORD not in done.out + done.err
    assert fits(folder, "amy", SCRAM_SHA_512)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("amy", "--password-env", "NOT_THERE"), "no environment variable NOT_THERE"),
        (("amy", "--password-env", "EMPTY"), "the password is empty"),
        (("amy", "--password-env", "EMPTY", "--password-file", "x"), "give one of them"),
        (("amy", "--password-file", "/nowhere/at/all"), "No such file"),
        (("amy", "--password-file", "/dev/zero"), "larger than a password"),
        (("", "--password-env", "SECRET"), "1 to 1024 characters"),
        (("a" * 1_025, "--password-env", "SECRET"), "1 to 1024 characters"),
        (("\u00e4", "--password-env", "SECRET"), "ASCII"),
        (("amy", "--iterations", "4095"), "4096<=x<=16384"),
        (("amy", "--mechanism", "PLAIN"), "PLAIN"),
    ],
)
def test_wrong_usage_makes_nothing(
    rollcall: Command, folder: Path, arguments: tuple[str, ...], says: str
) -> None:
    failed = rollcall(
        "scram", "add", *arguments, "--data-dir", str(folder), EMPTY="", SECRET=PASSWORD
    )
    assert failed.exit_code == 2
    assert says in failed.err
    assert not folder.exists()


@pytest.mark.parametrize("command", [("list",), ("remove", "amy")])
def test_only_add_makes_a_directory(
    rollcall: Command, folder: Path, command: tuple[str, ...]
) -> None:
    failed = rollcall("scram", *command, "--data-dir", str(folder))
    assert failed.exit_code == 2
    assert "not a Rollcall data directory" in failed.err
    assert not folder.exists()


def test_a_directory_in_use_is_refused(rollcall: Command, folder: Path) -> None:
    held = lock_data_dir(str(folder), 1)
    try:
        for command in (("add", "amy", "--password-env", "SECRET"), ("list",), ("remove", "amy")):
            failed = rollcall("scram", *command, "--data-dir", str(folder), SECRET=PASSWORD)
            assert failed.exit_code == 2
            assert "is in use by process" in failed.err
        assert not (folder / SCRAM_FILE).exists()
    finally:
        held.close()


def test_a_damaged_file_is_left_alone(rollcall: Command, folder: Path) -> None:
    lock_data_dir(str(folder), 1).close()
    (folder / SCRAM_FILE).write_text("{")
    failed = rollcall(
        *("scram", "add", "amy", "--data-dir", str(folder), "--password-env", "SECRET"),
        SECRET=PASSWORD,
    )
    assert failed.exit_code == 1
    assert (folder / SCRAM_FILE).read_text() == "{"
