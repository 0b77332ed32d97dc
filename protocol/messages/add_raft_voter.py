"""AddRaftVoter (api key 80): add a controller to the voters of the metadata log.

Version notes: v1 ack_when_committed.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import ZERO_TOPIC_ID, ApiKey, DirectoryId, ErrorCode
from protocol.schema import (
    BOOL,
    ERROR_CODE,
    INT32,
    STRING,
    UINT16,
    UUID,
    Message,
    Struct,
    array,
    nullable,
    since,
)


class RaftVoterListener(Struct):
    name: Annotated[str, STRING] = ""
    host: Annotated[str, STRING] = ""
    port: Annotated[int, UINT16] = 0


class AddRaftVoterRequest(Message):
    API_KEY: ClassVar = ApiKey.ADD_RAFT_VOTER
    VERSIONS: ClassVar = range(2)
    FLEXIBLE_SINCE: ClassVar = 0

    cluster_id: Annotated[str | None, nullable(STRING)] = ""
    timeout_ms: Annotated[int, INT32] = 0
    voter_id: Annotated[int, INT32] = 0
    voter_directory_id: Annotated[DirectoryId, UUID] = ZERO_TOPIC_ID
    listeners: Annotated[Sequence[RaftVoterListener], array(RaftVoterListener)] = ()
    ack_when_committed: Annotated[bool, since(BOOL, 1)] = True


class AddRaftVoterResponse(Message):
    API_KEY: ClassVar = ApiKey.ADD_RAFT_VOTER
    VERSIONS: ClassVar = range(2)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: Annotated[int, INT32] = 0
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    error_message: Annotated[str | None, nullable(STRING)] = ""
