"""Topic names: Kafka's rules for names, and the names of internal topics.

Pure functions of the name, used by CreateTopics, by automatic creation in Metadata, and wherever it
matters whether a topic is internal. Kafka's counterpart: `Topic`.
"""

from typing import Final

from protocol.names import HISTORY_TOPIC, LAG_TOPIC, OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC

MAX_NAME_LENGTH: Final = 249  # a folder is called name-partition, and 255 is the limit of a folder
INTERNAL_TOPICS: Final = frozenset(
    {OFFSETS_TOPIC, HISTORY_TOPIC, LAG_TOPIC, TRANSACTION_STATE_TOPIC, "__share_group_state"}
)
CLUSTER_METADATA_TOPIC: Final = "__cluster_metadata"

_LEGAL: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def is_internal(name: str) -> bool:
    return name in INTERNAL_TOPICS


def name_fault(name: str) -> str | None:
    """Kafka's error for an invalid name; None if it is valid."""
    reason = _fault(name)
    return None if reason is None else f"Topic name is invalid: {reason}"


def _fault(name: str) -> str | None:
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > MAX_NAME_LENGTH:
        return f"the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    if not _LEGAL.issuperset(name):
        return (
            f"'{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    return None


def collision_key(name: str) -> str | None:
    """Names must not share this key: metrics write '.' as '_'. None for names with neither."""
    if "." in name or "_" in name:
        return name.replace(".", "_")
    return None
