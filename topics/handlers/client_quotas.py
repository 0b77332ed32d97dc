"""Client quotas: of users, client ids and addresses, as clients read and change them.

Kafka's counterpart: `ClientQuotasImage.describe`, `ClientQuotaControlManager`.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final

from protocol.java_text import INT_MAX, LONG_MAX
from protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    QuotaAlterationResult,
    QuotaEntity,
    QuotaOperation,
)
from protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    QuotaEntry,
    QuotaFilterComponent,
    QuotaValue,
)
from protocol.messages.describe_client_quotas import QuotaEntity as DescribedEntity
from protocol.names import ErrorCode
from security.quotas.limits import (
    CLIENT_QUOTA_KEYS,
    ENTITY_NAME_MAX,
    EntityType,
    QuotaEntityNames,
    QuotaKey,
    plain_address,
)
from topics.admin_queue import Steps
from topics.api_error import ApiError, disk_error
from topics.client_quota_store import ClientQuotaStore

_ENTITY_TYPES: Final = frozenset(EntityType)
_IP_KEYS: Final = frozenset((QuotaKey.CONNECTION_CREATION,))
_FRACTIONS: Final = frozenset((QuotaKey.REQUEST, QuotaKey.CONTROLLER_MUTATION))
"""Quotas that need not be whole numbers."""

_FRACTION_MIN: Final = 1e-6
_DUPLICATE: Final = "Ignoring duplicate entity"


class MatchType(IntEnum):
    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2


_DONE: Final = ApiError(ErrorCode.NONE)


def answer_describe_client_quotas(
    request: DescribeClientQuotasRequest, store: ClientQuotaStore
) -> DescribeClientQuotasResponse:
    fault = _filter_fault(request.components)
    if fault is not None:
        return DescribeClientQuotasResponse(
            error_code=fault.error_code, error_message=fault.message, entries=None
        )
    return DescribeClientQuotasResponse(
        entries=[
            QuotaEntry(
                [DescribedEntity(kind, name) for kind, name in entity],
                [QuotaValue(key, bound) for key, bound in quotas.items()],
            )
            for entity, quotas in store.table.items()
            if _matches(dict(entity), request.components, is_strict=request.strict)
        ],
    )


def _matches(
    entity: Mapping[str, str | None],
    components: Sequence[QuotaFilterComponent],
    *,
    is_strict: bool,
) -> bool:
    """A strict filter names all parts of an entity, any other only some."""
    if is_strict and len(entity) != len(components):
        return False
    return all(
        component.entity_type in entity
        and (
            component.match_type == MatchType.SPECIFIED
            or entity[component.entity_type] == component.match
        )
        for component in components
    )


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
    if EntityType.IP in seen and len(seen) > 1:
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


def answer_alter_client_quotas(
    request: AlterClientQuotasRequest, store: ClientQuotaStore
) -> Steps[AlterClientQuotasResponse]:
    """Each entity is checked by itself; the valid changes are made together."""
    results: dict[QuotaEntityNames, ApiError] = {}
    after = dict(store.table)
    for alteration in request.entries:
        # Of a type that is named twice the later name counts.
        entity = {part.entity_type: part.entity_name for part in alteration.entity}
        names = tuple(sorted(entity.items()))
        keys = [operation.key for operation in alteration.ops]
        if names in results or len(set(keys)) < len(keys):
            # As in Kafka: what was named first is changed all the same.
            results[names] = _invalid(f"{_DUPLICATE} {_shown(entity)}")
        else:
            results[names] = _alter(names, alteration.ops, after, store)
    if not request.validate_only:
        try:
            yield from store.change(after)
        except OSError as fault:
            failed = disk_error(fault)
            results = {
                names: failed if error.error_code is ErrorCode.NONE else error
                for names, error in results.items()
            }
    return AlterClientQuotasResponse(
        entries=[
            QuotaAlterationResult(
                error.error_code, error.message, [QuotaEntity(*part) for part in names]
            )
            for names, error in results.items()
        ]
    )


def _alter(
    names: QuotaEntityNames,
    operations: Sequence[QuotaOperation],
    after: dict[QuotaEntityNames, Mapping[str, float]],
    store: ClientQuotaStore,
) -> ApiError:
    """Change the table, or name the first fault."""
    entity = dict(names)
    fault = _entity_fault(entity)
    if fault is not None:
        return _invalid(fault)
    quotas = dict(after.get(names, {}))
    for operation in operations:
        if operation.remove:
            quotas.pop(operation.key, None)
            continue
        fault = _value_fault(entity, operation)
        if fault is not None:
            return _invalid(fault)
        quotas[operation.key] = operation.value
    if not quotas:
        after.pop(names, None)
    elif names not in after and len(after) >= store.quotas_max:
        return _invalid(f"{store.quotas_max} entities have quotas: no others can be given any.")
    else:
        after[names] = quotas
    return _DONE


def _value_fault(entity: Mapping[str, str | None], operation: QuotaOperation) -> str | None:
    key, bound = operation.key, operation.value
    if key not in (_IP_KEYS if EntityType.IP in entity else CLIENT_QUOTA_KEYS):
        return f"Invalid configuration key {key}"
    if not bound > 0:  # NaN as well: Kafka takes it, and throttles by nothing
        return f"Quota {key} must be greater than 0"
    if key in _FRACTIONS:
        return None
    most, kind = (INT_MAX, "an INT") if key in _IP_KEYS else (LONG_MAX, "a LONG")
    if bound > most:
        return f"Proposed value for {key} is too large for {kind}."
    if bound % 1.0 > _FRACTION_MIN:
        return f"{key} cannot be a fractional value."
    return None


def _entity_fault(entity: Mapping[str, str | None]) -> str | None:
    if not entity:
        return "Invalid empty client quota entity"
    for kind, name in entity.items():
        if kind not in _ENTITY_TYPES:
            return f"Unhandled client quota entity type: {kind}"
        if name == "":
            return f"Empty {kind} not supported"
        if name is not None and len(name) > ENTITY_NAME_MAX:
            return f"The name of a {kind} is longer than {ENTITY_NAME_MAX} characters"
    address = entity.get(EntityType.IP)
    if EntityType.IP in entity and len(entity) > 1:
        return "Invalid client quota entity: an ip cannot be combined with a user or a client-id"
    if address is not None and plain_address(address) is None:
        # Kafka differs: it takes the name of a host, and asks DNS.
        return f"{address} is not a valid IP"
    return None


def _shown(entity: Mapping[str, str | None]) -> str:
    parts = ", ".join(f"{kind}={name}" for kind, name in entity.items())
    return f"ClientQuotaEntity(entries={{{parts}}})"


def _invalid(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, text)
