"""Topic ids: random ids that Kafka's tools accept on a command line.

Ids are shown in base64, and one that begins with a dash would be read as an option.
Kafka's counterpart: `Uuid.randomUuid`.
"""

from uuid import uuid4

from protocol.names import TopicId

_DASH = 0b111110 << 2  # the first six bits of an id whose base64 begins with "-"


def random_topic_id() -> TopicId:
    while True:
        topic_id = uuid4()
        if topic_id.bytes[0] & 0b11111100 != _DASH:
            return topic_id
