"""RemoveRaftVoter (api key 81): remove a controller from the voters of the metadata log."""

from typing import Annotated, ClassVar

from protocol.names import ZERO_TOPIC_ID, ApiKey, DirectoryId, ErrorCode
from protocol.schema import ERROR_CODE, INT32, STRING, UUID, Message, nullable


class RemoveRaftVoterRequest(Message):
    API_KEY: ClassVar = ApiKey.REMOVE_RAFT_VOTER
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0

    cluster_id: Annotated[str | None, nullable(STRING)] = ""
    voter_id: Annotated[int, INT32] = 0
    voter_directory_id: Annotated[DirectoryId, UUID] = ZERO_TOPIC_ID


class RemoveRaftVoterResponse(Message):
    API_KEY: ClassVar = ApiKey.REMOVE_RAFT_VOTER
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: Annotated[int, INT32] = 0
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    error_message: Annotated[str | None, nullable(STRING)] = ""
