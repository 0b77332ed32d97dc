"""Member identity: the ids of a group member and where it connects from.

Events, log lines and the group history name a member by this value.
"""

from typing import NamedTuple

from protocol.names import GroupInstanceId, MemberId


class MemberIdentity(NamedTuple):
    member_id: MemberId
    group_instance_id: GroupInstanceId | None
    client_id: str
    client_host: str
