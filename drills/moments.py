"""Moments: a request or an answer of a member that a step waits for, `slow sends JoinGroup`.

sends       the request has left the member, and is held before the coordinator gets it
sent        the coordinator got it, and the answer is pending
receives    the answer has left the coordinator, and is held before the member gets it
received    the member got it
"""

from typing import Final

from msgspec import Struct

from protocol.names import ApiKey

VERBS: Final = ("sends", "sent", "receives", "received")

API_NAMES: Final = {
    "JoinGroup": ApiKey.JOIN_GROUP,
    "SyncGroup": ApiKey.SYNC_GROUP,
    "Heartbeat": ApiKey.HEARTBEAT,
    "LeaveGroup": ApiKey.LEAVE_GROUP,
    "OffsetCommit": ApiKey.OFFSET_COMMIT,
    "OffsetFetch": ApiKey.OFFSET_FETCH,
    "Fetch": ApiKey.FETCH,
    "FindCoordinator": ApiKey.FIND_COORDINATOR,
    "ConsumerGroupHeartbeat": ApiKey.CONSUMER_GROUP_HEARTBEAT,
}


class NoMoment(Exception):
    """These words name no moment."""


class Moment(Struct, frozen=True):
    member: str
    verb: str
    api_key: ApiKey

    @property
    def is_held(self) -> bool:
        """Whether the frame waits until the step is over."""
        return self.verb in ("sends", "receives")

    @staticmethod
    def parse(words: str, member: str) -> "Moment":
        """`[MEMBER] VERB API`; without a member it is that of the step. Raises NoMoment."""
        parts = words.split()
        if len(parts) == 2:
            parts = [member, *parts]
        if len(parts) != 3 or parts[1] not in VERBS:
            raise NoMoment(f"{words!r} is not [MEMBER] {'|'.join(VERBS)} API")
        name, verb, api = parts
        if api not in API_NAMES:
            raise NoMoment(f"{api!r} is none of {', '.join(API_NAMES)}")
        return Moment(name, verb, API_NAMES[api])
