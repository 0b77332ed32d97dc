"""Client quotas: of users, client ids and addresses. They are not served yet: none can be set.

DescribeClientQuotas checks its filter as Kafka does and finds nothing. AlterClientQuotas checks the
change as Kafka does. A removal succeeds, because there is nothing to remove; a new quota is
refused, because it would not be enforced.
Kafka's counterpart: `ClientQuotasImage.describe`, `ClientQuotaControlManager`.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final

from protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    QuotaAlteration,
    QuotaAlterationResult,
    QuotaEntity,
    QuotaOperation,
)
from protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    QuotaFilterComponent,
)
from protocol.names import ErrorCode
from topics.api_error import ApiError

_USER: Final = "user"
_CLIENT_ID: Final = "client-id"
_IP: Final = "ip"
_ENTITY_TYPES: Final = frozenset((_USER, _CLIENT_ID, _IP))

_CLIENT_KEYS: Final = frozenset(
    ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
)
_IP_KEYS: Final = frozenset(("connection_creation_rate",))


class MatchType(IntEnum):
    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2


_DONE: Final = ApiError(ErrorCode.NONE)
_NOT_SERVED: Final = ApiError(
    ErrorCode.UNSUPPORTED_VERSION,
    "Client quotas are not served, so this quota would have no effect.",
)


def answer_describe_client_quotas(
    request: DescribeClientQuotasRequest,
) -> DescribeClientQuotasResponse:
    fault = _filter_fault(request.components)
    if fault is not None:
        return DescribeClientQuotasResponse(
            error_code=fault.error_code, error_message=fault.message, entries=None
        )
    return DescribeClientQuotasResponse()


def _filter_fault(components: Sequence[QuotaFilterComponent]) -> ApiError | None:
    seen: set[str] = set()
    for component in components:
        kind = component.entity_type
        if kind in seen:
            return _invalid(f"Entity type {kind} cannot appear more than once in the filter.")
        if not kind:
            return _invalid("Invalid empty entity type.")
        if kind not in _ENTITY_TYPES:
            return ApiError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        fault = _match_fault(component)
        if fault is not None:
            return _invalid(fault)
        seen.add(kind)
    if _IP in seen and len(seen) > 1:
        return _invalid(
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component."
        )
    return None


def _match_fault(component: QuotaFilterComponent) -> str | None:
    also = "but also specified a match string."
    match component.match_type:
        case MatchType.EXACT:
            if component.match is None:
                return "Request specified MATCH_TYPE_EXACT, but set match string to null."
        case MatchType.DEFAULT:
            if component.match is not None:
                return f"Request specified MATCH_TYPE_DEFAULT, {also}"
        case MatchType.SPECIFIED:
            if component.match is not None:
                return f"Request specified MATCH_TYPE_SPECIFIED, {also}"
        case unknown:
            return f"Unknown match type {unknown}"
    return None


def answer_alter_client_quotas(request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(
        entries=[_altered(alteration) for alteration in request.entries]
    )


def _altered(alteration: QuotaAlteration) -> QuotaAlterationResult:
    """Of a type that is named twice the later name counts."""
    entity = {part.entity_type: part for part in alteration.entity}
    error = _alter(entity, alteration.ops)
    return QuotaAlterationResult(error.error_code, error.message, list(entity.values()))


def _alter(entity: Mapping[str, QuotaEntity], operations: Sequence[QuotaOperation]) -> ApiError:
    fault = _entity_fault(entity)
    if fault is not None:
        return _invalid(fault)
    keys = _IP_KEYS if _IP in entity else _CLIENT_KEYS
    values = [operation for operation in operations if not operation.remove]
    for operation in values:
        if operation.key not in keys:
            return _invalid(f"Invalid configuration key {operation.key}")
    return _NOT_SERVED if values else _DONE


def _entity_fault(entity: Mapping[str, QuotaEntity]) -> str | None:
    if not entity:
        return "Invalid empty client quota entity"
    for kind, part in entity.items():
        if kind not in _ENTITY_TYPES:
            return f"Unhandled client quota entity type: {kind}"
        if part.entity_name == "":
            return f"Empty {kind} not supported"
    if _IP in entity and len(entity) > 1:
        return "Invalid client quota entity: an ip cannot be combined with a user or a client-id"
    return None


def _invalid(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, text)
