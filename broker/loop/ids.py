"""Member ids: the prefix that Kafka gives them, and a random UUID.

Kafka's counterpart: `ClassicGroup.generateMemberId`, `Uuid.randomUuid`.
"""

from base64 import urlsafe_b64encode
from uuid import uuid4

from protocol.names import MemberId


def new_member_id(prefix: str) -> MemberId:
    """`prefix` is the client id, or the instance id of a static member."""
    return MemberId(f"{prefix}-{uuid4()}")


def new_consumer_member_id() -> MemberId:
    """As Kafka prints its `Uuid`. None begins with "-", which tools take for an option."""
    while True:
        text = urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return MemberId(text)
