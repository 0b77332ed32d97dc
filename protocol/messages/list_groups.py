"""ListGroups (api key 16): which groups does this broker coordinate?

Version notes: v1 throttle_time_ms; v3 flexible; v4 a filter by state, and the state in the answer
(KIP-518); v5 the same for the group's type (KIP-848).
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.names import ApiKey, ErrorCode, GroupId
from protocol.schema import ERROR_CODE, INT32, STRING, Message, Struct, array, since


class ListGroupsRequest(Message):
    API_KEY: ClassVar = ApiKey.LIST_GROUPS
    VERSIONS: ClassVar = range(6)
    FLEXIBLE_SINCE: ClassVar = 3

    states_filter: Annotated[Sequence[str], since(array(STRING), 4)] = ()
    types_filter: Annotated[Sequence[str], since(array(STRING), 5)] = ()


class ListedGroup(Struct):
    group_id: Annotated[GroupId, STRING] = GroupId("")
    protocol_type: Annotated[str, STRING] = ""
    group_state: Annotated[str, since(STRING, 4, ignorable=True)] = ""
    group_type: Annotated[str, since(STRING, 5, ignorable=True)] = ""


class ListGroupsResponse(Message):
    API_KEY: ClassVar = ApiKey.LIST_GROUPS
    VERSIONS: ClassVar = range(6)
    FLEXIBLE_SINCE: ClassVar = 3

    throttle_time_ms: Annotated[int, since(INT32, 1, ignorable=True)] = 0
    error_code: Annotated[ErrorCode, ERROR_CODE] = ErrorCode.NONE
    groups: Annotated[Sequence[ListedGroup], array(ListedGroup)] = ()
