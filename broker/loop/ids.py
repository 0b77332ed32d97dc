"""What is a new member called? The client's own name and something that nobody else has.

Kafka's counterpart: `ClassicGroup.generateMemberId`.
"""

from uuid import uuid4

from protocol.names import MemberId


def new_member_id(prefix: str) -> MemberId:
    """`prefix` is the client id, or the instance id of a static member."""
    return MemberId(f"{prefix}-{uuid4()}")
