"""Security store faults: ACLs, SCRAM users and quotas on a disk that fails or is cut off.

At every disk operation of a change. After an error nothing has changed, the next change works, and
a start finds what was answered last.
"""

import random
from collections.abc import Callable, Mapping
from typing import Final

import pytest
from msgspec import Struct

from protocol.acl_codes import AclOperation, PatternType, PermissionType, ResourceType
from seams.reply_token import ReplyToken
from security.acls.authorizer import AclAuthorizer
from security.acls.entry import Acl
from security.quotas.limits import QuotaTable
from storage.atomic_file import StoredFile
from tests.simulator.disk import PowerCut, SimulatedDisk
from tests.topics import test_scram_store as scram
from topics.acl_store import AclStore
from topics.admin_queue import Steps, run_now
from topics.client_quota_store import ClientQuotaStore
from topics.scram_store import ScramStore

TOKEN: Final = ReplyToken(0, "client", "/127.0.0.1")
ACLS: Final = [
    Acl(
        ResourceType.TOPIC,
        PatternType.PREFIXED,
        name,
        "User:amy",
        "*",
        AclOperation.READ,
        PermissionType.ALLOW,
    )
    for name in ("first", "second")
]

QUOTAS: Final[QuotaTable] = {(("user", "amy"),): {"producer_byte_rate": 1_000.0}}
MORE_QUOTAS: Final[QuotaTable] = {
    **QUOTAS,
    (("client-id", None), ("user", "ä\udc80")): {"request_percentage": float("inf")},
}


class Opened(Struct):
    """A store: what it has, and two changes of it."""

    state: Callable[[], object]
    first: Callable[[], Steps[object]]
    second: Callable[[], Steps[object]]


def acl_store(disk: SimulatedDisk) -> Opened:
    file = StoredFile(disk, "/data/rollcall-acls.json")
    store = AclStore(file, AclAuthorizer(), lambda _: None, acls_max=10)
    return Opened(
        lambda: list(store.acls),
        lambda: store.add(ACLS[:1], TOKEN),
        lambda: store.add(ACLS[1:], TOKEN),
    )


def scram_store(disk: SimulatedDisk) -> Opened:
    store: ScramStore = scram.store_on(disk)
    return Opened(
        lambda: dict(store.users),
        lambda: store.change(scram.BEFORE),
        lambda: store.change(scram.AFTER),
    )


def quota_store(disk: SimulatedDisk) -> Opened:
    store = ClientQuotaStore(StoredFile(disk, "/data/quotas.json"), 10, lambda _: None)
    return Opened(
        lambda: store.table, lambda: store.change(QUOTAS), lambda: store.change(MORE_QUOTAS)
    )


STORES: Final[Mapping[str, Callable[[SimulatedDisk], Opened]]] = {
    "acls": acl_store,
    "scram": scram_store,
    "quotas": quota_store,
}
EACH_STORE = pytest.mark.parametrize("open_store", STORES.values(), ids=STORES)


def new_disk() -> SimulatedDisk:
    disk = SimulatedDisk()
    disk.make_dir("/data")
    disk.sync_dir("/")
    return disk


@EACH_STORE
def test_a_disk_that_fails_once(open_store: Callable[[SimulatedDisk], Opened]) -> None:
    steps, has_failed = 0, True
    while has_failed:
        disk = new_disk()
        store = open_store(disk)
        run_now(store.first())
        before = store.state()
        disk.fail_at = disk.operations + steps
        try:
            run_now(store.second())
            has_failed = False
        except OSError:
            assert store.state() == before
            run_now(store.second())
        disk.fail_at = None
        assert store.state() != before
        assert open_store(disk.after_kill()).state() == store.state()
        steps += 1
    assert steps > 3


@EACH_STORE
@pytest.mark.parametrize("loses_power", [False, True], ids=["kill", "power"])
def test_a_change_is_made_or_not_made(
    open_store: Callable[[SimulatedDisk], Opened], *, loses_power: bool
) -> None:
    steps, is_answered = 0, False
    while not is_answered:
        disk = new_disk()
        store = open_store(disk)
        run_now(store.first())
        before = store.state()
        disk.cut_power_at = disk.operations + steps
        try:
            run_now(store.second())
            is_answered = True
        except PowerCut:
            pass
        left = disk.after_crash(random.Random(steps)) if loses_power else disk.after_kill()
        found = open_store(left).state()
        if found != before:
            run_now((again := open_store(left)).second())
            assert found == again.state()
        assert found != before or not is_answered
        steps += 1
    assert steps > 3
