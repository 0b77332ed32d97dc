"""DescribeUserScramCredentials (api key 50): which SCRAM credentials do these users have?"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode
from protocol.schema import ERROR_CODE, INT8, INT32, STRING, Message, Struct, array, nullable


class UserName(Struct):
    name: Annotated[str, STRING] = ""


class DescribeUserScramCredentialsRequest(Message):
    API_KEY: ClassVar = ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0

    users: Annotated[Sequence[UserName] | None, nullable(array(UserName))] = ()


class CredentialInfo(Struct):
    mechanism: Annotated[int, INT8] = 0
    iterations: Annotated[int, INT32] = 0


class DescribeUserScramCredentialsResult(Struct):
    user: Annotated[str, STRING] = ""
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    error_message: Annotated[str | None, nullable(STRING)] = ""
    credential_infos: Annotated[Sequence[CredentialInfo], array(CredentialInfo)] = ()


class DescribeUserScramCredentialsResponse(Message):
    API_KEY: ClassVar = ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: Annotated[int, INT32] = 0
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    error_message: Annotated[str | None, nullable(STRING)] = ""
    results: Annotated[
        Sequence[DescribeUserScramCredentialsResult], array(DescribeUserScramCredentialsResult)
    ] = ()
