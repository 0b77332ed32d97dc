"""DescribeClientQuotas (api key 48): which quotas do users, client ids and addresses have?

Version notes: v1 flexible.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode
from protocol.schema import (
    BOOL,
    ERROR_CODE,
    FLOAT64,
    INT8,
    INT32,
    STRING,
    Message,
    Struct,
    array,
    nullable,
)


class QuotaFilterComponent(Struct):
    entity_type: Annotated[str, STRING] = ""
    match_type: Annotated[int, INT8] = 0
    match: Annotated[str | None, nullable(STRING)] = ""


class DescribeClientQuotasRequest(Message):
    API_KEY: ClassVar = ApiKey.DESCRIBE_CLIENT_QUOTAS
    VERSIONS: ClassVar = range(2)
    FLEXIBLE_SINCE: ClassVar = 1

    components: Annotated[Sequence[QuotaFilterComponent], array(QuotaFilterComponent)] = ()
    strict: Annotated[bool, BOOL] = False


class QuotaEntity(Struct):
    entity_type: Annotated[str, STRING] = ""
    entity_name: Annotated[str | None, nullable(STRING)] = ""


class QuotaValue(Struct):
    key: Annotated[str, STRING] = ""
    value: Annotated[float, FLOAT64] = 0.0


class QuotaEntry(Struct):
    entity: Annotated[Sequence[QuotaEntity], array(QuotaEntity)] = ()
    values: Annotated[Sequence[QuotaValue], array(QuotaValue)] = ()


class DescribeClientQuotasResponse(Message):
    API_KEY: ClassVar = ApiKey.DESCRIBE_CLIENT_QUOTAS
    VERSIONS: ClassVar = range(2)
    FLEXIBLE_SINCE: ClassVar = 1

    throttle_time_ms: Annotated[int, INT32] = 0
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    error_message: Annotated[str | None, nullable(STRING)] = ""
    entries: Annotated[Sequence[QuotaEntry] | None, nullable(array(QuotaEntry))] = ()
