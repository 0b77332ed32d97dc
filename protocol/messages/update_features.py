"""UpdateFeatures (api key 57): change the finalized levels of features.

Version notes: v1 upgrade_type and validate_only; v2 no results of single features.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode
from protocol.schema import (
    BOOL,
    ERROR_CODE,
    INT8,
    INT16,
    INT32,
    STRING,
    Message,
    Struct,
    array,
    nullable,
    since,
    until,
)


class FeatureUpdateKey(Struct):
    feature: Annotated[str, STRING] = ""
    max_version_level: Annotated[int, INT16] = 0
    allow_downgrade: Annotated[bool, until(BOOL, 0)] = False
    upgrade_type: Annotated[int, since(INT8, 1)] = 1


class UpdateFeaturesRequest(Message):
    API_KEY: ClassVar = ApiKey.UPDATE_FEATURES
    VERSIONS: ClassVar = range(3)
    FLEXIBLE_SINCE: ClassVar = 0

    timeout_ms: Annotated[int, INT32] = 60000
    feature_updates: Annotated[Sequence[FeatureUpdateKey], array(FeatureUpdateKey)] = ()
    validate_only: Annotated[bool, since(BOOL, 1)] = False


class UpdatableFeatureResult(Struct):
    feature: Annotated[str, STRING] = ""
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    error_message: Annotated[str | None, nullable(STRING)] = ""


class UpdateFeaturesResponse(Message):
    API_KEY: ClassVar = ApiKey.UPDATE_FEATURES
    VERSIONS: ClassVar = range(3)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: Annotated[int, INT32] = 0
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    error_message: Annotated[str | None, nullable(STRING)] = ""
    results: Annotated[
        Sequence[UpdatableFeatureResult], until(array(UpdatableFeatureResult), 1, ignorable=True)
    ] = ()
