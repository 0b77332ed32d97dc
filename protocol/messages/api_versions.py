"""ApiVersions (api key 18): which requests does this broker serve, and in which versions?

The first thing that most clients say. The response's header is v0 in every version, so that a
client can read it before it knows anything; an unserved version is answered in v0.

Version notes: v1 throttle_time_ms; v3 flexible, the client's name and version, and the broker's
features in tags (KIP-511, KIP-584); v4 a feature's min_version may be 0.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode
from protocol.schema import (
    BOOL,
    ERROR_CODE,
    INT16,
    INT32,
    INT64,
    STRING,
    Message,
    Struct,
    array,
    since,
    tagged,
)


class ApiVersionsRequest(Message):
    API_KEY: ClassVar = ApiKey.API_VERSIONS
    VERSIONS: ClassVar = range(5)
    FLEXIBLE_SINCE: ClassVar = 3

    client_software_name: Annotated[str, since(STRING, 3, ignorable=True)] = ""
    client_software_version: Annotated[str, since(STRING, 3, ignorable=True)] = ""


class ApiVersion(Struct):
    api_key: Annotated[int, INT16] = 0
    min_version: Annotated[int, INT16] = 0
    max_version: Annotated[int, INT16] = 0


class SupportedFeatureKey(Struct):
    name: Annotated[str, STRING] = ""
    min_version: Annotated[int, INT16] = 0
    max_version: Annotated[int, INT16] = 0


class FinalizedFeatureKey(Struct):
    name: Annotated[str, STRING] = ""
    max_version_level: Annotated[int, INT16] = 0
    min_version_level: Annotated[int, INT16] = 0


class ApiVersionsResponse(Message):
    API_KEY: ClassVar = ApiKey.API_VERSIONS
    VERSIONS: ClassVar = range(5)
    FLEXIBLE_SINCE: ClassVar = 3

    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    api_keys: Annotated[Sequence[ApiVersion], array(ApiVersion)] = ()
    throttle_time_ms: Annotated[int, since(INT32, 1, ignorable=True)] = 0
    supported_features: Annotated[
        Sequence[SupportedFeatureKey],
        tagged(array(SupportedFeatureKey), 0, since=3, ignorable=True),
    ] = ()
    finalized_features_epoch: Annotated[int, tagged(INT64, 1, since=3, ignorable=True)] = -1
    finalized_features: Annotated[
        Sequence[FinalizedFeatureKey],
        tagged(array(FinalizedFeatureKey), 2, since=3, ignorable=True),
    ] = ()
    zk_migration_ready: Annotated[bool, tagged(BOOL, 3, since=3, ignorable=True)] = False
