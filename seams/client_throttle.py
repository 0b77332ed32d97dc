"""Client throttle: what handlers ask and report, so that clients stay within their quotas.

Produced bytes and the time of requests are counted where answers are sent. A handler is involved
where it must do less than was asked: a Fetch beyond its quota is answered with nothing, and a
change of topics is refused. `ClientThrottle` itself allows everything; `broker/net/throttling.py`
has the one that decides by quotas. Kafka's counterparts: `QuotaManagers` as `KafkaApis` uses them,
`ControllerMutationQuota`.
"""

from collections.abc import Callable
from typing import Final

from seams.reply_token import ReplyToken

UNLIMITED_BYTES: Final = 2_147_483_647


class ClientThrottle:
    """Throttles no client."""

    is_active = False
    """Whether there are quotas: handlers need not count for nothing."""

    def fetch_max_bytes(self, _token: ReplyToken, /) -> int:
        """What a Fetch may read, so that a client that was idle is not throttled for its answer."""
        return UNLIMITED_BYTES

    def must_fetch_nothing(self, _token: ReplyToken, _size: Callable[[], int], /) -> bool:
        """Count an answer of so many bytes, if there are quotas of them. True: send an empty one,
        because it is over a quota."""
        return False

    def may_mutate(
        self,
        _token: ReplyToken,
        _partitions: int,
        /,
        *,
        is_strict: bool,  # noqa: ARG002 - for subclasses
    ) -> bool:
        """Count partitions to be created or deleted. False: THROTTLING_QUOTA_EXCEEDED.

        Only strict ones are refused: clients of old versions do not know that error.
        """
        return True


NO_THROTTLE: Final = ClientThrottle()
