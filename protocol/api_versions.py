"""ApiVersions: the APIs and versions that are served, and the answer to a client that asks.

An API is served if it has a handler; its versions are those of its declaration in `messages/`. What
is not served is not advertised, with Kafka's one exception: Produce is advertised from v0, because
old librdkafka disables itself otherwise, although v0-v2 are refused as every unserved version.
Kafka's counterpart: `ApiVersionsRequest`, `ApiVersionManager`.
"""

import re
from collections.abc import Iterable
from typing import Final

from protocol.messages import REQUESTS
from protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from protocol.names import ApiKey, ErrorCode

_CLIENT_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_NAMES_ITS_SOFTWARE_SINCE: Final = 3


def served_versions(api_keys: Iterable[ApiKey]) -> tuple[ApiVersion, ...]:
    """What is advertised of these APIs, in the order of the api keys."""
    return tuple(_advertised(api_key) for api_key in sorted(api_keys))


def answer_api_versions(
    api_version: int, request: ApiVersionsRequest, served: tuple[ApiVersion, ...]
) -> ApiVersionsResponse:
    """The response to ApiVersions of any version, without the features."""
    if api_version not in ApiVersionsRequest.VERSIONS:
        # Written in v0, which every client reads. It asks again with the version named here.
        return ApiVersionsResponse(
            ErrorCode.UNSUPPORTED_VERSION, (_advertised(ApiKey.API_VERSIONS),)
        )
    if api_version >= _NAMES_ITS_SOFTWARE_SINCE and not _names_its_software(request):
        return ApiVersionsResponse(ErrorCode.INVALID_REQUEST)
    return ApiVersionsResponse(ErrorCode.NONE, served)


def _names_its_software(request: ApiVersionsRequest) -> bool:
    names = (request.client_software_name, request.client_software_version)
    return all(_CLIENT_SOFTWARE.fullmatch(name) for name in names)


def _advertised(api_key: ApiKey) -> ApiVersion:
    served = REQUESTS[api_key].VERSIONS
    first = 0 if api_key is ApiKey.PRODUCE else served.start
    return ApiVersion(api_key, first, served.stop - 1)
