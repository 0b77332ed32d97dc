"""Features: the versioned abilities of the cluster that are served, and their finalized levels.

ApiVersions lists them, UpdateFeatures checks against them. A feature that is not listed is at level
0: no share or streams groups. The finalized level is the greatest that is supported, unless
`rollcall.transaction.version` says otherwise.
Kafka's counterpart: `Feature`, `QuorumFeatures`.
"""

from typing import Final, NamedTuple

TRANSACTION_VERSION_MAX: Final = 2


class Feature(NamedTuple):
    """The levels that are supported, of Kafka 4.3.1's."""

    name: str
    min_version: int
    max_version: int


SERVED_FEATURES: Final = (
    Feature("group.version", 0, 1),  # the consumer group protocol (KIP-848)
    Feature("metadata.version", 7, 30),  # 4.3-IV0
    Feature("transaction.version", 0, TRANSACTION_VERSION_MAX),  # KIP-890
)


def finalized_levels(transaction_version: int = TRANSACTION_VERSION_MAX) -> dict[str, int]:
    """The level of each feature that is served."""
    levels = {feature.name: feature.max_version for feature in SERVED_FEATURES}
    return levels | {"transaction.version": transaction_version}
