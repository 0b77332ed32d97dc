"""Member identity: the ids of a group member, and from where and as whom it connects.

Events, log lines, the lag of owners and the group history name a member by this value. Defaults
stand for what an older record or a client without a membership does not say.
"""

from typing import NamedTuple

from protocol.names import UNKNOWN_MEMBER_ID, GroupInstanceId, MemberId


class MemberIdentity(NamedTuple):
    """`client_host` as Java prints it: `/10.0.0.7`.

    `principal`: as whom its connection was authenticated, as `User:alice`. None: it was not, or
    that is not known any more: records of groups do not have it.
    """

    member_id: MemberId = UNKNOWN_MEMBER_ID
    group_instance_id: GroupInstanceId | None = None
    client_id: str = ""
    client_host: str = ""
    principal: str | None = None
