"""ACLs: CreateAcls, DescribeAcls, DeleteAcls. Without an authorizer each is refused.

The entries of a request are checked one by one: good ones are created beside those that are
refused. Filters of a deletion are answered one by one, too, and all that they find is removed with
one save. Searches run in the admin thread: there may be many thousands of entries.
Kafka's counterparts: `AclApis`, `AclControlManager`, and the checks of `CreateAclsRequest`,
`AclBinding` and `DeleteAclsRequest`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from protocol.acl_codes import AclOperation, PatternType, PermissionType, ResourceType
from protocol.messages import Request, Response
from protocol.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from protocol.names import ApiKey, ErrorCode
from protocol.primitives import fits_string
from seams.authorizer import CLUSTER_NAME
from seams.handler import Handler
from seams.now import Now
from seams.reply_token import ReplyToken
from security.acls.entry import Acl, AclFilter, code_of
from topics.acl_store import AclStore
from topics.admin_queue import Steps
from topics.api_error import ApiError, disk_error

_DISABLED: Final = ErrorCode.SECURITY_DISABLED
_NOT_CHANGED: Final = "No Authorizer is configured."

_UNKNOWN_CODE: Final = 0
"""Kafka closes the connection of a request with it. Any other code that is not known is refused."""

_DONE: Final = ApiError(ErrorCode.NONE, "")
_IMPOSSIBLE: Final = AclCreationResult(ErrorCode.UNKNOWN_SERVER_ERROR, None)

RunInQueue = Callable[[ReplyToken, Callable[[], Steps[Response]]], None]
"""Runs an operation of the admin queue, and answers with its result."""


class AclRequests:
    """`handlers` has the three requests. `store` is None where no authorizer is configured."""

    def __init__(
        self,
        store: AclStore | None,
        *,
        reply: Callable[[ReplyToken, Response], None],
        hang_up: Callable[[ReplyToken], None],
        run_in_queue: RunInQueue,
    ) -> None:
        self._store = store
        self._reply, self._hang_up, self._run_in_queue = reply, hang_up, run_in_queue
        self.handlers: Mapping[ApiKey, Handler] = {
            ApiKey.DESCRIBE_ACLS: self._describe,
            ApiKey.CREATE_ACLS: self._create,
            ApiKey.DELETE_ACLS: self._delete,
        }

    def _describe(self, request: Request, token: ReplyToken, _now: Now) -> None:
        assert isinstance(request, DescribeAclsRequest)
        store = self._store
        if _UNKNOWN_CODE in _codes(request):
            self._hang_up(token)
        elif store is None:
            text = "No Authorizer is configured on the broker"
            self._reply(token, DescribeAclsResponse(error_code=_DISABLED, error_message=text))
        else:
            self._run_in_queue(token, lambda: _describe_acls(request, store))

    def _create(self, request: Request, token: ReplyToken, _now: Now) -> None:
        assert isinstance(request, CreateAclsRequest)
        store = self._store
        if any(_UNKNOWN_CODE in _codes_of_entry(each) for each in request.creations):
            self._hang_up(token)
        elif store is None:
            results = [AclCreationResult(_DISABLED, _NOT_CHANGED) for _ in request.creations]
            self._reply(token, CreateAclsResponse(results=results))
        else:
            self._run_in_queue(token, lambda: _create_acls(request, token, store))

    def _delete(self, request: Request, token: ReplyToken, _now: Now) -> None:
        assert isinstance(request, DeleteAclsRequest)
        store = self._store
        if any(_UNKNOWN_CODE in _codes(each) for each in request.filters):
            self._hang_up(token)
        elif store is None:
            results = [DeleteAclsFilterResult(_DISABLED, _NOT_CHANGED) for _ in request.filters]
            self._reply(token, DeleteAclsResponse(filter_results=results))
        else:
            self._run_in_queue(token, lambda: _delete_acls(request, token, store))


# DescribeAcls


def _describe_acls(request: DescribeAclsRequest, store: AclStore) -> Steps[Response]:
    resources: list[DescribeAclsResource] = []
    yield lambda: resources.extend(_resources(store.matching(_filter(request))))
    return DescribeAclsResponse(resources=resources)


def _resources(acls: Iterable[Acl]) -> Iterator[DescribeAclsResource]:
    by_pattern: dict[tuple[ResourceType, PatternType, str], list[AclDescription]] = {}
    for acl in acls:
        pattern = (acl.resource_type, acl.pattern_type, acl.name)
        by_pattern.setdefault(pattern, []).append(
            AclDescription(acl.principal, acl.host, acl.operation, acl.permission)
        )
    for (resource_type, pattern_type, name), descriptions in by_pattern.items():
        yield DescribeAclsResource(resource_type, name, pattern_type, descriptions)


# CreateAcls


def _create_acls(request: CreateAclsRequest, token: ReplyToken, store: AclStore) -> Steps[Response]:
    acls = [_acl_of(creation) for creation in request.creations]
    if not all(map(_is_possible, acls)):
        return CreateAclsResponse(results=[_IMPOSSIBLE for _ in acls])
    faults = [_fault(acl) for acl in acls]
    new: dict[Acl, ApiError] = {}
    for acl, fault in zip(acls, faults, strict=True):
        if fault is None and acl not in store.acls and acl not in new:
            new[acl] = _DONE if len(new) < store.room else _no_room(store)
    added = [acl for acl, result in new.items() if result is _DONE]
    try:
        yield from store.add(added, token)
    except OSError as failed:
        new.update(dict.fromkeys(added, disk_error(failed)))
    return CreateAclsResponse(
        results=[
            AclCreationResult(*(fault or new.get(acl, _DONE)))
            for acl, fault in zip(acls, faults, strict=True)
        ]
    )


def _acl_of(creation: AclCreation) -> Acl:
    return Acl(
        code_of(ResourceType, creation.resource_type),
        code_of(PatternType, creation.resource_pattern_type),
        creation.resource_name,
        creation.principal,
        creation.host,
        code_of(AclOperation, creation.operation),
        code_of(PermissionType, creation.permission_type),
    )


def _is_possible(acl: Acl) -> bool:
    """Kafka cannot even make a binding with a code that is for filters: the request fails."""
    return (
        acl.resource_type is not ResourceType.ANY
        and acl.pattern_type not in (PatternType.ANY, PatternType.MATCH)
        and acl.operation is not AclOperation.ANY
        and acl.permission is not PermissionType.ANY
    )


def _fault(acl: Acl) -> ApiError | None:
    """Why the entry cannot be created."""
    if acl.resource_type is ResourceType.CLUSTER and acl.name != CLUSTER_NAME:
        return _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not acl.name:
        return _invalid("Invalid empty resource name")
    for what, code in (
        ("resourceType", acl.resource_type),
        ("patternType", acl.pattern_type),
        ("operation", acl.operation),
        ("permissionType", acl.permission),
    ):
        if code.value == _UNKNOWN_CODE:
            return _invalid(f"Invalid {what} {code.name}")
    if ":" not in acl.principal:
        return _invalid(
            f"Could not parse principal from `{acl.principal}` (no colon is present separating "
            "the principal type from the principal name)"
        )
    if not all(map(fits_string, (acl.name, acl.principal, acl.host))):
        return _invalid("A name, a principal or a host is longer than a string may be")
    return None


def _invalid(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, text)


def _no_room(store: AclStore) -> ApiError:
    text = f"There may be at most {store.acls_max} ACLs (rollcall.acls.max)."
    return ApiError(ErrorCode.POLICY_VIOLATION, text)


# DeleteAcls


def _delete_acls(request: DeleteAclsRequest, token: ReplyToken, store: AclStore) -> Steps[Response]:
    results: list[DeleteAclsFilterResult] = []
    removed: dict[Acl, None] = {}

    def search() -> None:
        for each in request.filters:
            wanted = _filter(each)
            fault = _filter_fault(wanted)
            acls = [] if fault is not None else store.matching(wanted)
            removed.update(dict.fromkeys(acls))
            results.append(_filter_result(acls, fault or ApiError(ErrorCode.NONE)))

    yield search
    try:
        yield from store.remove(removed, token)
    except OSError as failed:
        refused = _filter_result((), disk_error(failed))
        results = [refused if result.matching_acls else result for result in results]
    return DeleteAclsResponse(filter_results=results)


def _filter_result(acls: Sequence[Acl], outcome: ApiError) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(
        outcome.error_code,
        outcome.message,
        [
            DeleteAclsMatchingAcl(
                ErrorCode.NONE,
                None,
                acl.resource_type,
                acl.name,
                acl.pattern_type,
                acl.principal,
                acl.host,
                acl.operation,
                acl.permission,
            )
            for acl in acls
        ],
    )


# Filters


def _filter(request: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    return AclFilter(
        code_of(ResourceType, request.resource_type_filter),
        code_of(PatternType, request.pattern_type_filter),
        request.resource_name_filter,
        request.principal_filter,
        request.host_filter,
        code_of(AclOperation, request.operation),
        code_of(PermissionType, request.permission_type),
    )


def _filter_fault(wanted: AclFilter) -> ApiError | None:
    """DescribeAcls with such a filter finds nothing."""
    if _UNKNOWN_CODE in (wanted.resource_type, wanted.pattern_type):
        return _invalid("Unknown patternFilter.")
    if _UNKNOWN_CODE in (wanted.operation, wanted.permission):
        return _invalid("Unknown entryFilter.")
    return None


def _codes(request: DescribeAclsRequest | DeleteAclsFilter) -> tuple[int, ...]:
    return (
        request.resource_type_filter,
        request.pattern_type_filter,
        request.operation,
        request.permission_type,
    )


def _codes_of_entry(creation: AclCreation) -> tuple[int, ...]:
    return (
        creation.resource_type,
        creation.resource_pattern_type,
        creation.operation,
        creation.permission_type,
    )
