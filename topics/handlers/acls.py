"""ACLs: access control entries. There is no authorizer, which is what each request is answered.

Kafka's counterpart: `AclApis`, on a broker without `authorizer.class.name`.
"""

from typing import Final

from protocol.messages.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from protocol.messages.describe_acls import DescribeAclsResponse
from protocol.names import ErrorCode

_DISABLED: Final = ErrorCode.SECURITY_DISABLED
_NOT_CHANGED: Final = "No Authorizer is configured."


def answer_describe_acls() -> DescribeAclsResponse:
    return DescribeAclsResponse(
        error_code=_DISABLED, error_message="No Authorizer is configured on the broker"
    )


def answer_create_acls(request: CreateAclsRequest) -> CreateAclsResponse:
    return CreateAclsResponse(
        results=[AclCreationResult(_DISABLED, _NOT_CHANGED) for _ in request.creations]
    )


def answer_delete_acls(request: DeleteAclsRequest) -> DeleteAclsResponse:
    return DeleteAclsResponse(
        filter_results=[DeleteAclsFilterResult(_DISABLED, _NOT_CHANGED) for _ in request.filters]
    )
