"""Sources: opens any source and reads it whole, to contents and tally."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from client.properties import ClientProperties
from config.keys import Config
from storage.data_dir import META_PROPERTIES
from transfer.contents import Contents
from transfer.errors import BadText, NoOffsets
from transfer.log_folders import is_in_use, partitions_in, read_partition
from transfer.rollcall_dir import RollcallDir, read_logs
from transfer.selection import Selection
from transfer.source_stats import SourceStats
from transfer.text_files import from_csv, from_json
from transfer.wire import ClusterClient, Refused


class OffsetsSource(NamedTuple):
    contents: Contents
    tally: SourceStats


def read_paths(paths: Sequence[Path], for_group: str | None, now_ms: int) -> OffsetsSource:
    """Directories of brokers, or one CSV or JSON file. Raises NoOffsets, BadText, Unusable, ..."""
    for path in paths:
        if not path.exists():
            raise NoOffsets(f"{path} does not exist")
    if len(paths) == 1 and paths[0].is_file():
        return read_text_file(paths[0], for_group, now_ms)
    for path in paths:
        if not path.is_dir():
            raise NoOffsets(f"{path} is a file: give a single --from with a file")
    if len(paths) == 1 and is_rollcalls(paths[0]):
        return read_data_dir(Config(log_dirs=(str(paths[0]),)))
    contents = Contents()
    tally = SourceStats(", ".join(map(str, paths)), "kafka")
    tally.in_use = [str(path) for path in paths if is_in_use(path)]
    for partition in partitions_in(paths):
        read_partition(partition, contents, tally)
    return OffsetsSource(contents, tally)


def is_rollcalls(path: Path) -> bool:
    meta = path / META_PROPERTIES
    return meta.exists() and b"rollcall.data.version" in meta.read_bytes()


def read_text_file(path: Path, for_group: str | None, now_ms: int) -> OffsetsSource:
    try:
        # Not as text: a \r within quotes belongs to a name.
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise BadText(f"{path} is not UTF-8 text: {fault.reason}") from None
    if text.lstrip().startswith("{"):
        return OffsetsSource(from_json(text, str(path), now_ms), SourceStats(str(path), "json"))
    return OffsetsSource(
        from_csv(text, str(path), for_group, now_ms), SourceStats(str(path), "csv")
    )


def read_data_dir(config: Config) -> OffsetsSource:
    """A stopped daemon's. Raises Unusable, DataDirRefused, Corrupt, OSError."""
    with RollcallDir(config, must_exist=True) as data_dir:
        contents, tally = Contents(), SourceStats(data_dir.path, "rollcall")
        read_logs(data_dir.logs, contents, tally)
    return OffsetsSource(contents, tally)


def read_cluster(
    bootstrap: str, client: ClientProperties | None, selection: Selection
) -> tuple[OffsetsSource, list[Refused]]:
    """The offsets of a running cluster, without those of share groups. Raises ClusterFault."""
    contents, refused = Contents(), list[Refused]()
    cluster = ClusterClient(bootstrap, client)
    try:
        for group_id, kind in cluster.group_ids():
            if selection.has(group_id) and kind != "share":
                refused += cluster.fetch(group_id, contents)
                if group_id in contents.groups:
                    contents.groups[group_id].reported_kind = kind
    finally:
        cluster.close()
    return OffsetsSource(contents, SourceStats(bootstrap, "cluster")), refused
