"""AlterUserScramCredentials (api key 51): add, change and delete SCRAM credentials."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode
from protocol.schema import (
    BYTES,
    ERROR_CODE,
    INT8,
    INT32,
    STRING,
    Message,
    Struct,
    array,
    nullable,
)


class ScramCredentialDeletion(Struct):
    name: Annotated[str, STRING] = ""
    mechanism: Annotated[int, INT8] = 0


class ScramCredentialUpsertion(Struct):
    name: Annotated[str, STRING] = ""
    mechanism: Annotated[int, INT8] = 0
    iterations: Annotated[int, INT32] = 0
    salt: Annotated[bytes, BYTES] = b""
    salted_password: Annotated[bytes, BYTES] = b""


class AlterUserScramCredentialsRequest(Message):
    API_KEY: ClassVar = ApiKey.ALTER_USER_SCRAM_CREDENTIALS
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0

    deletions: Annotated[Sequence[ScramCredentialDeletion], array(ScramCredentialDeletion)] = ()
    upsertions: Annotated[Sequence[ScramCredentialUpsertion], array(ScramCredentialUpsertion)] = ()


class AlterUserScramCredentialsResult(Struct):
    user: Annotated[str, STRING] = ""
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    error_message: Annotated[str | None, nullable(STRING)] = ""


class AlterUserScramCredentialsResponse(Message):
    API_KEY: ClassVar = ApiKey.ALTER_USER_SCRAM_CREDENTIALS
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: Annotated[int, INT32] = 0
    results: Annotated[
        Sequence[AlterUserScramCredentialsResult], array(AlterUserScramCredentialsResult)
    ] = ()
