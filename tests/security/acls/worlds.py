"""Worlds of ACLs: random entries and questions about them, the same for each seed."""

import random
from typing import Final, NamedTuple

from protocol.acl_codes import AclOperation, PatternType, PermissionType, ResourceType
from security.acls.entry import Acl, AclFilter

_NAMES: Final = (
    *("a", "ab", "abc", "abcd", "abd", "ac", "b", "bc", "äb", "äbc", "orders", "orders.eu"),
    # None sorts before "*": with some ACLs Kafka's search for such a name does not end.
    *("hardcode", "hard", "+", "zz"),
    # Names that begin with the wildcard are no wildcards.
    *("*", "*a", "**"),
)
_PRINCIPALS: Final = ("User:amy", "User:bob", "User:root", "Group:amy", "User:CN=x,O=y:z")
_HOSTS: Final = ("127.0.0.1", "10.0.0.7", "0:0:0:0:0:0:0:1")
_TYPES: Final = (ResourceType.TOPIC, ResourceType.GROUP)
_OPERATIONS: Final = (
    *(AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.DELETE),
    *(AclOperation.ALTER, AclOperation.CREATE, AclOperation.DESCRIBE_CONFIGS),
    AclOperation.ALTER_CONFIGS,
)
SUPER_USERS: Final = "User:root; ;User:CN=x,O=y:z ;"


class Question(NamedTuple):
    principal: str
    host: str
    operation: AclOperation
    resource_type: ResourceType
    name: str | None  # None: any resource of the type


class AclWorld(NamedTuple):
    super_users: str
    allows_without_acl: bool
    acls: list[Acl]
    removed: list[int]
    filters: list[AclFilter]
    questions: list[Question]


def acl_world(seed: int) -> AclWorld:
    chance = random.Random(seed)
    acls = list({_acl(chance): None for _ in range(chance.choice((0, 2, 5, 10, 20, 60)))})
    return AclWorld(
        SUPER_USERS if chance.random() < 0.5 else "",
        chance.random() < 0.3,
        acls,
        sorted(chance.sample(range(len(acls)), len(acls) // 3)),
        [_filter(chance) for _ in range(8)],
        [
            *(_question(chance, chance.choice(_NAMES)) for _ in range(50)),
            *(_question(chance, None) for _ in range(10)),
        ],
    )


def _question(chance: random.Random, name: str | None) -> Question:
    return Question(
        chance.choice(_PRINCIPALS),
        chance.choice(_HOSTS),
        chance.choice(_OPERATIONS),
        chance.choice(_TYPES),
        name,
    )


def _acl(chance: random.Random) -> Acl:
    return Acl(
        chance.choice(_TYPES),
        chance.choice((PatternType.LITERAL, PatternType.PREFIXED)),
        chance.choice((*_NAMES, "*", "*")),
        chance.choice((*_PRINCIPALS, "User:*", "User:*")),
        chance.choice((*_HOSTS, "*", "*", "*", "*")),
        chance.choice((*_OPERATIONS, AclOperation.ALL)),
        chance.choice((PermissionType.ALLOW, PermissionType.ALLOW, PermissionType.DENY)),
    )


def _filter(chance: random.Random) -> AclFilter:
    entry = _acl(chance)
    return AclFilter(
        chance.choice((entry.resource_type, ResourceType.ANY)),
        chance.choice((entry.pattern_type, PatternType.ANY, PatternType.MATCH, PatternType.MATCH)),
        chance.choice((entry.name, chance.choice(_NAMES), None)),
        chance.choice((entry.principal, None, None)),
        chance.choice((entry.host, None, None)),
        chance.choice((entry.operation, AclOperation.ANY, AclOperation.ANY)),
        chance.choice((entry.permission, PermissionType.ANY)),
    )
