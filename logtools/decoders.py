"""Record decoders: by topic, how a record's key and value are shown.

A decoder turns key and value into what `dump` prints and filters by. It never drops a record: what
it cannot decode is shown in base64, with the reason. `DECODERS` has the topics whose records have a
format of their own; records of other topics are shown as text if they are UTF-8.
"""

from collections.abc import Callable
from typing import Final

from logtools.group_records import decode_group_record
from logtools.history_records import decode_history, decode_lag
from logtools.kafka_json import Json, base64_text
from logtools.record_view import CONTROL_RECORD, PLAIN_RECORD, ShownRecord
from logtools.transaction_records import decode_transaction_record
from protocol.names import HISTORY_TOPIC, LAG_TOPIC, OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC

Decoder = Callable[[bytes | None, bytes | None], ShownRecord]


def decode_plain(key: bytes | None, value: bytes | None) -> ShownRecord:
    """A record of any topic."""
    return ShownRecord(PLAIN_RECORD, _text(key), _text(value))


def _text(raw: bytes | None) -> Json:
    """Text where it is text, and otherwise its bytes."""
    if raw is None:
        return None
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return {"bytes": base64_text(raw)}


CONTROL_TYPES: Final = {
    0: "ABORT",
    1: "COMMIT",
    2: "LEADER_CHANGE",
    3: "SNAPSHOT_HEADER",
    4: "SNAPSHOT_FOOTER",
    5: "KRAFT_VERSION",
    6: "KRAFT_VOTERS",
}
_TRANSACTION_ENDS: Final = (0, 1)


def decode_control(key: bytes | None, value: bytes | None) -> ShownRecord:
    """A record of a control batch: how a transaction ended, or something of Kafka's controller."""
    if key is None or len(key) < 4:
        return ShownRecord(
            CONTROL_RECORD, _bytes(key), _bytes(value), problem="a control record's key"
        )
    version, kind = int.from_bytes(key[:2], signed=True), int.from_bytes(key[2:4], signed=True)
    shown_key: dict[str, Json] = {"version": version, "type": CONTROL_TYPES.get(kind, kind)}
    if kind in _TRANSACTION_ENDS and value is not None and len(value) >= 6:
        shown_value: Json = {
            "version": int.from_bytes(value[:2], signed=True),
            "data": {"coordinatorEpoch": int.from_bytes(value[2:6], signed=True)},
        }
    else:
        shown_value = _bytes(value)
    return ShownRecord(CONTROL_RECORD, shown_key, shown_value)


def _bytes(raw: bytes | None) -> Json:
    return None if raw is None else {"bytes": base64_text(raw)}


DECODERS: Final[dict[str, Decoder]] = {
    OFFSETS_TOPIC: decode_group_record,
    TRANSACTION_STATE_TOPIC: decode_transaction_record,
    HISTORY_TOPIC: decode_history,
    LAG_TOPIC: decode_lag,
}
"""Topics whose records have a form of their own."""


def decoder_for(topic: str) -> Decoder:
    return DECODERS.get(topic, decode_plain)
