"""Member identity: the ids of a group member, and from where and as whom it connects.

Events, log lines, the lag of owners and the group history name a member by this value. Defaults
stand for what an older record or a client without a membership does not say.
"""

from functools import lru_cache
from typing import Final, NamedTuple

from protocol.names import UNKNOWN_MEMBER_ID, GroupInstanceId, MemberId

SHARED_TEXTS: Final = 1_024
SHARED_CHARS_MAX: Final = 255
"""Longer texts are not kept: clients choose them."""


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


_kept_text = lru_cache(maxsize=SHARED_TEXTS)(str)


def shared_text(text: str) -> str:
    """An equal text of another member, if there was one lately: what most have in common is one.

    Not interned: Python 3.12 keeps that until the process ends, and each client may have its own.
    """
    return _kept_text(text) if len(text) <= SHARED_CHARS_MAX else text
