"""SCRAM store: the file is private, and a mechanism of a user is changed by itself."""

import stat
from pathlib import Path

import pytest

from security.sasl.scram_credential import SCRAM_SHA_256, SCRAM_SHA_512, scram_credential
from storage.disk import RealDisk
from storage.open import scram_file
from tests.simulator.disk import SimulatedDisk
from topics.admin_queue import run_now
from topics.scram_store import ScramCredentialsDamaged, ScramStore

CREDENTIALS = [scram_credential(SCRAM_SHA_256, f"password {n}", b"salt", 4_096) for n in range(3)]
BEFORE = {("amy", SCRAM_SHA_256): CREDENTIALS[0], ("bob", SCRAM_SHA_256): CREDENTIALS[1]}
AFTER = {("amy", SCRAM_SHA_256): CREDENTIALS[2], ("bob", SCRAM_SHA_256): None}


def store_on(disk: SimulatedDisk | RealDisk, folder: str = "/data") -> ScramStore:
    return ScramStore(scram_file(disk, folder), lambda _: None, lambda: b"secret")


def test_only_the_owner_may_read_the_file_and_its_copy(tmp_path: Path) -> None:
    store = store_on(RealDisk(), str(tmp_path))
    run_now(store.change(BEFORE))
    (file,) = tmp_path.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600

    file.write_text("damaged")
    file.chmod(0o644)
    with pytest.raises(ScramCredentialsDamaged):
        store_on(RealDisk(), str(tmp_path))
    ScramStore(
        scram_file(RealDisk(), str(tmp_path)), lambda _: None, lambda: b"secret", repair=True
    )
    assert len(list(tmp_path.iterdir())) == 2
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}


def test_a_mechanism_of_a_user_is_removed_by_itself() -> None:
    disk = SimulatedDisk()
    disk.make_dir("/data")
    store = store_on(disk)
    other = scram_credential(SCRAM_SHA_512, "password", b"salt", 4_096)
    run_now(store.change({**BEFORE, ("amy", SCRAM_SHA_512): other}))
    run_now(store.change({("amy", SCRAM_SHA_256): None}))
    assert store.users["amy"] == {SCRAM_SHA_512: other}
    assert store_on(disk).users == store.users
