"""Features: the versioned abilities of the cluster that are served, and their finalized levels.

ApiVersions lists them, UpdateFeatures checks against them. A feature that is not listed is at level
0: no share or streams groups. The finalized level is always the greatest that is supported.
Kafka's counterpart: `Feature`, `QuorumFeatures`.
"""

from typing import Final, NamedTuple


class Feature(NamedTuple):
    """The levels that are supported, of Kafka 4.3.1's; `max_version` is the finalized one."""

    name: str
    min_version: int
    max_version: int


SERVED_FEATURES: Final = (
    Feature("group.version", 0, 1),  # the consumer group protocol (KIP-848)
    Feature("metadata.version", 7, 30),  # 4.3-IV0
)
