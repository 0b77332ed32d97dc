"""UpdateFeatures: changes the finalized levels of features; here they are a setting of the daemon.

A request for the present levels succeeds, any other one fails as a whole.
Kafka's counterpart: `FeatureControlManager.updateFeatures`.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from protocol.features import SERVED_FEATURES
from protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from protocol.names import ErrorCode

METADATA_VERSION: Final = "metadata.version"
LAST_VERSION_WITH_RESULTS: Final = 1
_FEATURES: Final = {feature.name: feature for feature in SERVED_FEATURES}


class UpgradeType(IntEnum):
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


def answer_update_features(
    request: UpdateFeaturesRequest, version: int, node_id: int, levels: Mapping[str, int]
) -> UpdateFeaturesResponse:
    """`levels` are the finalized ones."""
    for update in request.feature_updates:
        fault = _fault(update, node_id, levels)
        if fault is not None:
            return UpdateFeaturesResponse(
                error_code=ErrorCode.INVALID_UPDATE_VERSION,
                error_message="The update failed for all features since the following feature "
                f"had an error: {fault}",
            )
    names = dict.fromkeys(update.feature for update in request.feature_updates)
    results = [UpdatableFeatureResult(name, ErrorCode.NONE, "NONE") for name in names]
    return UpdateFeaturesResponse(
        error_message=None, results=results if version <= LAST_VERSION_WITH_RESULTS else ()
    )


def _fault(update: FeatureUpdateKey, node_id: int, levels: Mapping[str, int]) -> str | None:
    name, level = update.feature, update.max_version_level
    invalid = f"Invalid update version {level} for feature {name}."
    if update.upgrade_type not in set(UpgradeType):
        return f"{invalid} The controller does not support the given upgrade type."
    if level < 0:
        return f"{invalid} A feature version cannot be less than 0."
    feature = _FEATURES.get(name)
    if feature is None:
        return f"{invalid} Local controller {node_id} does not support this feature."
    first, last = feature.min_version, feature.max_version
    if not first <= level <= last:
        return f"{invalid} Local controller {node_id} only supports versions {first}-{last}"
    present = levels[name]
    if level == present:
        return None
    if level > present:
        return f"{invalid} It is served at level {present} only."
    return _downgrade_fault(name, level, present, update.upgrade_type, invalid)


def _downgrade_fault(name: str, level: int, present: int, upgrade_type: int, invalid: str) -> str:
    if upgrade_type == UpgradeType.UPGRADE:
        return (
            f"{invalid} Can't downgrade the version of this feature without setting the upgrade "
            "type to either safe or unsafe downgrade."
        )
    if name != METADATA_VERSION:
        return f"{invalid} It is served at level {present} only."
    what = f"Unsupported metadata.version downgrade from {present} to {level}."
    if upgrade_type == UpgradeType.SAFE_DOWNGRADE:
        return (
            f"{what} Refusing to perform the requested downgrade because it might delete "
            "metadata information."
        )
    return f"{what} Unsafe metadata downgrade is not supported in this version."
