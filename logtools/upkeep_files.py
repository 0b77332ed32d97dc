"""How far has the cleaner come? Its checkpoint, where there is one."""

from typing import Final

from logtools.places import DataPlace
from logtools.read_only import ReadOnlyDisk
from storage.api import Corrupt
from storage.checkpoints import read_offsets

CLEANER_OFFSETS: Final = "cleaner-offset-checkpoint"


def first_dirty_offsets(place: DataPlace) -> dict[tuple[str, int], int]:
    """Where the part begins that was never cleaned, by topic and partition; {} if unknown."""
    data_dir = place.path if place.is_data_dir else place.path.absolute().parent
    try:
        offsets = read_offsets(ReadOnlyDisk(), str(data_dir / CLEANER_OFFSETS))
    except (Corrupt, OSError):
        return {}
    return {(key.topic, key.partition): offset for key, offset in offsets.items()}
