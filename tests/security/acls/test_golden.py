"""Golden decisions: the same as Kafka's StandardAuthorizer, in random worlds of ACLs."""

import pytest

from seams.principal import parse_principal
from seams.reply_token import ReplyToken
from security.acls.authorizer import AclAuthorizer, parse_super_users
from tests.security.acls.golden.make import GOLDEN, written
from tests.security.acls.worlds import AclWorld, acl_world

LINES = GOLDEN.read_text().splitlines()


def decisions(authorizer: AclAuthorizer, world: AclWorld) -> str:
    found = []
    for principal, host, operation, resource_type, name in world.questions:
        token = ReplyToken(0, "client", f"/{host}", parse_principal(principal))
        if name is None:
            found.append(authorizer.allows_any_resource(token, operation, resource_type))
        else:
            found.append(authorizer.allows(token, operation, resource_type, name))
    return "".join(str(int(is_allowed)) for is_allowed in found)


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.split()[0])
def test_kafka_decides_the_same(line: str) -> None:
    seed, _, recorded = line.partition(" ")
    world = acl_world(int(seed))
    authorizer = AclAuthorizer(
        parse_super_users(world.super_users), allows_without_acl=world.allows_without_acl
    )
    authorizer.change(added=world.acls, removed=())
    places = [[world.acls.index(acl) for acl in each] for each in found_by_filters(world)]
    before = decisions(authorizer, world)
    assert decisions(authorizer, world) == before  # those that are kept
    authorizer.change(added=(), removed=[world.acls[place] for place in world.removed])
    after = decisions(authorizer, world)
    assert written({"before": before, "after": after, "filtered": places}) == recorded


def found_by_filters(world: AclWorld) -> list[list]:
    return [[acl for acl in world.acls if each.matches(acl)] for each in world.filters]


def test_the_recording_has_thousands_of_decisions() -> None:
    asked = sum(2 * len(acl_world(seed).questions) for seed in range(len(LINES)))
    assert asked > 10_000
    allowed = sum(int(line.split()[1], 16).bit_count() for line in LINES)
    assert 1_000 < allowed < asked // 2 - 1_000
