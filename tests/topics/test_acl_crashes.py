"""ACL store: a change that a crash cuts short is made or not made."""

import random

import pytest

from protocol.acl_codes import AclOperation, PatternType, PermissionType, ResourceType
from seams.reply_token import ReplyToken
from security.acls.authorizer import AclAuthorizer
from security.acls.entry import Acl
from storage.atomic_file import StoredFile
from tests.simulator.disk import PowerCut, SimulatedDisk
from topics.acl_store import AclStore
from topics.admin_queue import run_now

TOKEN = ReplyToken(0, "client", "/127.0.0.1")
FIRST, SECOND = (
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
)


def store_on(disk: SimulatedDisk) -> AclStore:
    file = StoredFile(disk, "/data/rollcall-acls.json")
    return AclStore(file, AclAuthorizer(), lambda _: None, acls_max=10)


@pytest.mark.parametrize("loses_power", [False, True], ids=["kill", "power"])
def test_a_change_is_made_or_not_made(*, loses_power: bool) -> None:
    steps, is_answered = 0, False
    while not is_answered:
        disk = SimulatedDisk()
        disk.make_dir("/data")
        disk.sync_dir("/")
        store = store_on(disk)
        run_now(store.add([FIRST], TOKEN))
        disk.cut_power_at = disk.operations + steps
        try:
            run_now(store.add([SECOND], TOKEN))
            is_answered = True
        except PowerCut:
            pass
        left = disk.after_crash(random.Random(steps)) if loses_power else disk.after_kill()
        found = list(store_on(left).acls)
        assert found == [FIRST, SECOND] if is_answered else found in ([FIRST], [FIRST, SECOND])
        steps += 1
    assert steps > 3
