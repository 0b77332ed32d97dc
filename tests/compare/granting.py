"""Granting: ACLs of a scenario's client, which has another address than the rest of the scenario.

The rest is the administrator, who may do everything. Both are User:ANONYMOUS.
"""

from collections.abc import Sequence
from typing import Final

from protocol.acl_codes import AclOperation, PatternType, PermissionType, ResourceType
from protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from protocol.names import ErrorCode
from tests.compare.script import Script
from tests.topics.rights import Right

ADMINISTRATOR: Final = "127.0.0.1"
CLIENT: Final = "127.0.0.2"
PRINCIPAL: Final = "User:ANONYMOUS"
EFFECTIVE_MS: Final = 200
"""Kafka's controller takes over ACLs by itself, when the broker has them already."""


def protect(script: Script) -> None:
    """The administrator may do everything, and others nothing."""
    everything = (
        (ResourceType.CLUSTER, "kafka-cluster"),
        (ResourceType.TOPIC, "*"),
        (ResourceType.GROUP, "*"),
        (ResourceType.TRANSACTIONAL_ID, "*"),
    )
    _create_acls(script, [Right(AclOperation.ALL, *each) for each in everything], ADMINISTRATOR)


def grant(script: Script, rights: Sequence[Right], *, asks_controller: bool = True) -> None:
    """These rights and no others. `asks_controller`: Kafka's controller answers what follows."""
    everything = DeleteAclsFilter(
        ResourceType.ANY, None, PatternType.ANY, None, CLIENT, AclOperation.ANY, PermissionType.ANY
    )
    answer = script.ask_aside(DeleteAclsRequest((everything,)), 3, DeleteAclsResponse)
    assert answer.filter_results[0].error_code is ErrorCode.NONE
    if rights:
        _create_acls(script, rights, CLIENT)
    script.until("the ACLs are in effect", lambda: _count(script) == len(rights))
    if asks_controller:
        script.pause_ms(EFFECTIVE_MS)


def _create_acls(script: Script, rights: Sequence[Right], host: str) -> None:
    creations = [
        AclCreation(
            right.resource_type,
            right.name,
            PatternType.LITERAL,
            PRINCIPAL,
            host,
            right.operation,
            PermissionType.ALLOW,
        )
        for right in rights
    ]
    answer = script.ask_aside(CreateAclsRequest(creations), 3, CreateAclsResponse)
    assert not any(result.error_code for result in answer.results), answer


def _count(script: Script) -> int:
    """ACLs of the client's host."""
    request = DescribeAclsRequest(
        ResourceType.ANY, None, PatternType.ANY, None, CLIENT, AclOperation.ANY, PermissionType.ANY
    )
    answer = script.ask_aside(request, 3, DescribeAclsResponse)
    return sum(len(resource.acls) for resource in answer.resources)
