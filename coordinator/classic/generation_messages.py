"""Generation messages: the key and the value of a generation record (generation_record.py)."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from protocol.schema import BYTES, INT32, INT64, STRING, Message, Struct, array, nullable


class GenerationBegunKey(Message):
    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0

    group: Annotated[str, STRING] = ""


class OfferedProtocol(Struct):
    name: Annotated[str, STRING] = ""
    metadata: Annotated[bytes, BYTES] = b""


class BegunMember(Struct):
    """A member with all that it offers: a client that joins again is compared with the whole."""

    member_id: Annotated[str, STRING] = ""
    group_instance_id: Annotated[str | None, nullable(STRING)] = None
    client_id: Annotated[str, STRING] = ""
    client_host: Annotated[str, STRING] = ""
    rebalance_timeout: Annotated[int, INT32] = 0
    session_timeout: Annotated[int, INT32] = 0
    protocols: Annotated[Sequence[OfferedProtocol], array(OfferedProtocol)] = ()


class GenerationBegunValue(Message):
    """Without members when they would not fit: then only the number is spent."""

    VERSIONS: ClassVar = range(1)
    FLEXIBLE_SINCE: ClassVar = 0

    generation: Annotated[int, INT32] = 0
    protocol_type: Annotated[str, STRING] = ""
    protocol_name: Annotated[str, STRING] = ""
    leader: Annotated[str, STRING] = ""
    begun_at: Annotated[int, INT64] = 0
    members: Annotated[Sequence[BegunMember], array(BegunMember)] = ()
