"""Member identity: the ids of a group member and where it connects from.

Events, log lines, the lag of owners and the group history name a member by this value. Defaults
stand for what an older record or a client without a membership does not say.
"""

from typing import NamedTuple

from protocol.names import UNKNOWN_MEMBER_ID, GroupInstanceId, MemberId


class MemberIdentity(NamedTuple):
    """`client_host` as Java prints it: `/10.0.0.7`."""

    member_id: MemberId = UNKNOWN_MEMBER_ID
    group_instance_id: GroupInstanceId | None = None
    client_id: str = ""
    client_host: str = ""
