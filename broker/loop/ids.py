"""Member ids: the prefix that Kafka gives them, and a random UUID.

Kafka's counterpart: `ClassicGroup.generateMemberId`.
"""

from uuid import uuid4

from protocol.names import MemberId


def new_member_id(prefix: str) -> MemberId:
    """`prefix` is the client id, or the instance id of a static member."""
    return MemberId(f"{prefix}-{uuid4()}")
