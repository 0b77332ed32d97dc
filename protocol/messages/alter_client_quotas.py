"""AlterClientQuotas (api key 49): change quotas of users, client ids and addresses.

Version notes: v1 flexible.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode
from protocol.schema import (
    BOOL,
    ERROR_CODE,
    FLOAT64,
    INT32,
    STRING,
    Message,
    Struct,
    array,
    nullable,
)


class QuotaEntity(Struct):
    entity_type: Annotated[str, STRING] = ""
    entity_name: Annotated[str | None, nullable(STRING)] = ""


class QuotaOperation(Struct):
    key: Annotated[str, STRING] = ""
    value: Annotated[float, FLOAT64] = 0.0
    remove: Annotated[bool, BOOL] = False


class QuotaAlteration(Struct):
    entity: Annotated[Sequence[QuotaEntity], array(QuotaEntity)] = ()
    ops: Annotated[Sequence[QuotaOperation], array(QuotaOperation)] = ()


class AlterClientQuotasRequest(Message):
    API_KEY: ClassVar = ApiKey.ALTER_CLIENT_QUOTAS
    VERSIONS: ClassVar = range(2)
    FLEXIBLE_SINCE: ClassVar = 1

    entries: Annotated[Sequence[QuotaAlteration], array(QuotaAlteration)] = ()
    validate_only: Annotated[bool, BOOL] = False


class QuotaAlterationResult(Struct):
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    error_message: Annotated[str | None, nullable(STRING)] = ""
    entity: Annotated[Sequence[QuotaEntity], array(QuotaEntity)] = ()


class AlterClientQuotasResponse(Message):
    API_KEY: ClassVar = ApiKey.ALTER_CLIENT_QUOTAS
    VERSIONS: ClassVar = range(2)
    FLEXIBLE_SINCE: ClassVar = 1

    throttle_time_ms: Annotated[int, INT32] = 0
    entries: Annotated[Sequence[QuotaAlterationResult], array(QuotaAlterationResult)] = ()
