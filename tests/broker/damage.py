"""Damage: a data directory with every kind of file, what may happen to each, and what a start says.

`given_directory` runs a daemon and keeps its files, as a clean stop and as a kill leave them.
`Damage` is one change of one file. `judge` starts a daemon on the result, without and with
--repair, and raises AssertionError unless it serves all, refuses in one line that helps, or says
what was lost or set aside. A traceback, a dead end and silence are never right.
"""

import asyncio
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from protocol.acl_codes import AclOperation, PatternType, PermissionType, ResourceType
from protocol.messages import Request
from protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    QuotaAlteration,
    QuotaEntity,
    QuotaOperation,
)
from protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from protocol.messages.create_acls import AclCreation, CreateAclsRequest
from protocol.messages.incremental_alter_configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from protocol.names import HISTORY_TOPIC, OFFSETS_TOPIC, ErrorCode, GroupId
from security.acls.authorizer import STANDARD_AUTHORIZER, AclAuthorizer
from storage.api import Corrupt, Record, TopicLog, TopicPartition
from storage.batch.record_batch import (
    InvalidBatch,
    check_crc,
    encode_batch,
    iter_batches,
    stored_records,
)
from storage.data_dir import LOCK, META_PROPERTIES, DataDirRefused
from storage.journal.write_ahead import FIRST_GROUP
from storage.open import (
    ACLS_FILE,
    BROKER_CONFIGS_FILE,
    CLIENT_QUOTAS_FILE,
    GROUP_CONFIGS_FILE,
    PRODUCERS_FILE,
    SCRAM_FILE,
    TOPICS_FILE,
)
from storage.repair.repair import repair_hint
from tests.broker.members import Member, make_topic
from tests.broker.node import Node
from tests.rights import error_codes
from topics.config_resources import ConfigResourceType

SETTINGS: Final[dict[str, int | str | bool]] = {
    "offsets_topic_num_partitions": 2,
    "offsets_topic_segment_bytes": 1_500,
    "num_partitions": 2,
    "rollcall_journal_bytes": 48 << 20,
    "rollcall_checkpoint_idle_ms": 3_600_000,  # a kill finds commits in the journal alone
    "rollcall_snapshot_bytes": 1_000,
    "authorizer_class_name": STANDARD_AUTHORIZER,
    "super_users": "User:ANONYMOUS",
}
TOPIC: Final = "t"
GROUPS: Final = tuple(f"group-{number}" for number in range(6))
ROUNDS: Final = 8

STORE_FILES: Final = (
    ACLS_FILE,
    BROKER_CONFIGS_FILE,
    CLIENT_QUOTAS_FILE,
    GROUP_CONFIGS_FILE,
    SCRAM_FILE,
)
"""Files that are written as a whole. Without one, nothing was ever set."""

FIELDS: Final = {
    # Where a file's fields begin; of the others every byte of the front is one.
    ".log": (0, 8, 12, 16, 17, 21, 23, 27, 35, 43, 51, 53, 57, 61, 62, 64, 66),
    ".groups": (0, 8, 12, 16, 20, 30, 60),
    ".wal": (0, 8, 16, 17, 4096, 4104, 4112, *(FIRST_GROUP + n for n in (0, 4, 8, 16, 24, 28, 29))),
}
BEFORE_CHECKSUM: Final = "before the checksum"
BARE_BYTES: Final = 16
"""A batch's offset, length and leader epoch, which a broker rewrites."""

FRONT_BYTES: Final = 24
SAMPLES: Final = 12
"""Bits that are flipped further back, evenly spaced."""


class File(NamedTuple):
    """Its end may be zeros that were allocated and not written."""

    content: bytes
    size: int


Files = dict[str, File]


class Damage(NamedTuple):
    """`change` makes the damaged content of a sound one; None: the file is not there."""

    path: str
    words: str
    change: Callable[[bytes], bytes] | None


@dataclass
class Served:
    """What clients get. Of records None where they are refused, or do not fit their checksums."""

    offsets: dict[str, int] = field(default_factory=dict)
    stores: dict[str, object] = field(default_factory=dict)  # what the files of STORE_FILES have
    records: dict[int, list[bytes] | None] = field(default_factory=dict)


@dataclass
class Outcome:
    refusal: str = ""
    served: Served = field(default_factory=Served)
    log: str = ""

    @property
    def warnings(self) -> list[str]:
        return [line for line in self.log.splitlines() if re.search(r"\[(warning|error)", line)]


async def given_directory(folder: Path) -> tuple[Files, Files, Served]:
    """(as a clean stop leaves it, as a kill does, what both have to serve)"""
    async with Node(folder, SETTINGS) as node:
        client = await node.client()
        await make_topic(client, TOPIC)
        for request in _settings():
            codes = dict(error_codes(await client.call(request)))
            assert set(codes.values()) == {ErrorCode.NONE}, codes
        members = [Member(client, group) for group in GROUPS]
        for member in members:
            await member.enter()
        for number in range(ROUNDS):
            for at, member in enumerate(members):
                assert await member.commit(10 * number + at) is ErrorCode.NONE
        await node.daemon.snapshotter.stop(node.daemon.ownership.served)
        await asyncio.to_thread(_fill, node)
        expected = await _served(node)
        killed = files_in(folder / "data")
    return files_in(folder / "data"), killed, expected


def _settings() -> Iterator[Request]:
    """One for each file of STORE_FILES."""
    for kind, resource, name, value in (
        (ConfigResourceType.GROUP, GROUPS[0], "consumer.session.timeout.ms", "50000"),
        (ConfigResourceType.BROKER, "", "message.max.bytes", "900000"),
    ):
        config = IncrementalAlterableConfig(name, 0, value)
        yield IncrementalAlterConfigsRequest(
            [IncrementalAlterConfigsResource(kind, resource, [config])]
        )
    rate = QuotaOperation("producer_byte_rate", 1_000.0)
    yield AlterClientQuotasRequest([QuotaAlteration([QuotaEntity("user", "amy")], [rate])])
    yield AlterUserScramCredentialsRequest(
        upsertions=[ScramCredentialUpsertion("amy", 1, 4_096, b"a salt", b"a salted password")]
    )
    right = (AclOperation.READ, PermissionType.DENY)
    yield CreateAclsRequest(
        [AclCreation(ResourceType.TOPIC, TOPIC, PatternType.LITERAL, "User:amy", "*", *right)]
    )


def _stores(node: Node) -> dict[str, object]:
    plane = node.daemon.data_plane
    assert isinstance(plane.authorizer, AclAuthorizer)
    return {
        ACLS_FILE: list(plane.authorizer.acls),
        BROKER_CONFIGS_FILE: dict(plane.broker_configs.configs(per_broker=False)),
        CLIENT_QUOTAS_FILE: plane.client_quotas.table,
        GROUP_CONFIGS_FILE: plane.group_configs.session_timeout_ms(GroupId(GROUPS[0])),
        SCRAM_FILE: plane.scram.users,
    }


def _fill(node: Node) -> None:
    """Records of a producer in three segments each, and a line in every checkpoint file."""
    store = node.daemon.store
    for partition in range(2):
        log = store.partition_log(TopicPartition(TOPIC, partition))
        assert log is not None
        for number in range(9):
            values = [f"{partition}-{number}-{letter}".encode() for letter in "ab"]
            records = [Record(b"k", value) for value in values]
            now_ms = node.daemon.clock.now().wall_ms
            log.append(encode_batch(records, 0, now_ms, 0, 7, 0, 2 * number), now_ms)
            if number in (2, 5):
                log.roll()
        log.flush()  # or a kill may take it, and nothing needs to be said
        log.delete_before(2)
        store.set_clean_offsets({log: 0})
    store.write_checkpoints()


def files_in(data: Path) -> Files:
    found: Files = {}
    for path in sorted(data.rglob("*")):
        if path.is_file() and path.name != LOCK:
            content = path.read_bytes()
            # The journal's files are allocated in full, and mostly zeros.
            written = content.rstrip(b"\0") if path.suffix == ".wal" else content
            found[str(path.relative_to(data))] = File(written, len(content))
    return found


def write_files(data: Path, files: Files) -> None:
    for name, file in files.items():
        path = data / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as to:
            to.write(file.content)
            to.truncate(file.size)


async def _served(node: Node) -> Served:
    client = await node.client()
    wanted = [OffsetFetchRequestGroup(GroupId(group), topics=None) for group in GROUPS]
    answer = await client.call(OffsetFetchRequest(groups=wanted), 9)
    assert isinstance(answer, OffsetFetchResponse)
    served = Served()
    for group in answer.groups:
        assert group.error_code is ErrorCode.NONE, group
        for topic in group.topics:
            served.offsets[group.group_id] = topic.partitions[0].committed_offset
    client.writer.close()
    served.stores = _stores(node)
    await asyncio.to_thread(_read_records, node, served)
    return served


def _read_records(node: Node, served: Served) -> None:
    for index in range(2):
        partition = node.daemon.data_plane.registry.partition(TOPIC, index)
        if partition is None or partition.log is None or partition.offline:
            served.records[index] = None
            continue
        log = partition.log
        try:
            served.records[index] = _values(log)
        except (InvalidBatch, Corrupt, IndexError):
            served.records[index] = None


def _values(log: TopicLog) -> list[bytes]:
    """As a consumer reads it, who checks each batch. Raises InvalidBatch, Corrupt, IndexError."""
    found: list[bytes] = []
    offset, end = log.log_start_offset, log.log_end_offset
    while offset < end:
        content = log.read(offset, 1 << 20, up_to=end, at_least_one=True)
        if not content:
            break
        for at, header in iter_batches(content):
            check_crc(content, at, header)
            batch = content[at : at + header.size]
            records = [record for record in stored_records(batch) if record.offset >= offset]
            found += [record.value or b"" for record in records]
            offset = header.next_offset
    return found


async def start(folder: Path, *, repair: bool) -> Outcome:
    """Whatever is not a refusal is raised: the daemon would end with a traceback."""
    node = Node(folder, SETTINGS)
    node.repair = repair
    outcome = Outcome()
    try:
        async with node:
            damage = node.daemon.ownership.damage
            if damage is not None:
                raise damage
            outcome.served = await _served(node)
    except Corrupt as damage:
        outcome.refusal = repair_hint(damage)
    except (DataDirRefused, OSError) as refused:
        outcome.refusal = str(refused)
    finally:
        node.release()
    outcome.log = node.log.getvalue()
    return outcome


# --- what may happen to a file -------------------------------------------------------------------


def damages(files: Files) -> Iterator[Damage]:
    """Every kind of damage of every kind of file."""
    for path in kinds_of(files):
        content = files[path].content
        yield Damage(path, "absent", None)
        yield Damage(path, "empty", lambda _: b"")
        for size in sorted({1, len(content) // 2, len(content) - 1} & set(range(len(content)))):
            yield Damage(path, f"cut to {size}", lambda whole, size=size: whole[:size])
        for at in _positions(path, content):
            words = f"a bit {BEFORE_CHECKSUM} at {at}" if _is_bare(path, content, at) else ""
            words = words or f"a bit at {at}"
            yield Damage(path, words, lambda whole, at=at: _flipped(whole, at))
        middle = len(content) // 2
        yield Damage(
            path,
            "not UTF-8",
            lambda whole, middle=middle: whole[:middle] + b"\xff\xfe" + whole[middle + 2 :],
        )
        newer = _newer(path, content)
        if newer is not None:
            yield Damage(path, "a newer version", lambda _, newer=newer: newer)


def kinds_of(files: Files) -> list[str]:
    """One file of each kind: of a log's segments the first and the last, of one partition."""
    found: dict[tuple[str, str, bool], str] = {}
    for path in files:
        folder, _, name = path.rpartition("/")
        topic = folder.rpartition("-")[0]
        stem, dot, suffix = name.rpartition(".")
        is_segment = stem.isdecimal()
        is_last = is_segment and path == max(
            file for file in files if file.startswith(f"{folder}/") and file.endswith(dot + suffix)
        )
        kind = (topic, suffix if is_segment else name, is_last)
        known = found.get(kind)
        # Of several partitions the one that holds the most of it.
        if known is None or len(files[known].content) < len(files[path].content):
            found[kind] = path
    return sorted(found.values())


def _positions(path: str, content: bytes) -> list[int]:
    suffix = Path(path).suffix
    front = FIELDS.get(suffix, range(FRONT_BYTES if suffix else len(content)))
    step = max(len(content) // SAMPLES, 1)
    spread = range(step // 2, len(content), step)
    return sorted(at for at in {*front, *spread} if at < len(content))


def _is_bare(path: str, content: bytes, at: int) -> bool:
    """Is it in the front of a batch, which no checksum covers?"""
    if not path.endswith(".log"):
        return False
    return any(start <= at < start + BARE_BYTES for start, _ in iter_batches(content))


def _flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 0x04]) + content[at + 1 :]


def _newer(path: str, content: bytes) -> bytes | None:
    name = Path(path).name
    if name == META_PROPERTIES:
        return content.replace(b"rollcall.data.version=1", b"rollcall.data.version=2")
    if name in (TOPICS_FILE, PRODUCERS_FILE, *STORE_FILES):
        return re.sub(rb'("format": ?)1', rb"\g<1>99", content)
    if name == "partition.metadata":
        return content.replace(b"version: 0", b"version: 99")
    if name.endswith("-checkpoint"):
        return b"99" + content[1:]
    if name.endswith(".log"):
        return content[:16] + b"\x03" + content[17:]
    if name.endswith((".groups", ".wal")):
        return content[:7] + b"2" + content[8:]
    return None


# --- the judge -----------------------------------------------------------------------------------

REMEDIES: Final = ("--repair", "copy", "newer", "later one", "another directory", "remove", "bring")


async def judge(folder: Path, files: Files, damage: Damage, expected: Served) -> str:
    """What came of it, in a word: served, told, refused."""
    damaged = dict(files)
    if damage.change is None:
        del damaged[damage.path]
    else:
        content = damage.change(files[damage.path].content)
        # What was allocated and not written stays as it was, but a file that was cut is shorter.
        is_cut = len(content) < len(files[damage.path].content)
        size = len(content) if is_cut else max(len(content), files[damage.path].size)
        damaged[damage.path] = File(content, size)
    first = folder / "first"
    write_files(first / "data", damaged)
    outcome = await start(first, repair=False)
    needs_repair = bool(outcome.refusal)
    if outcome.refusal:
        _check_refusal(outcome.refusal, damage)
        needs_repair = "--repair" in outcome.refusal
    else:
        _check_loss(outcome, damage, expected)
        again = await start(first, repair=False)  # and no dead end at the start after it
        assert not again.refusal, f"the next start is refused: {again.refusal}"
        assert again.served == outcome.served, "the next start serves something else"
    second = folder / "second"
    write_files(second / "data", damaged)
    repaired = await start(second, repair=True)
    if repaired.refusal:
        assert outcome.refusal, f"only --repair refuses: {repaired.refusal}"
        assert not needs_repair, f"--repair was the remedy, and refuses: {repaired.refusal}"
        return "refused"
    _check_loss(repaired, damage, expected)
    if not is_beyond_notice(damage):
        assert None not in repaired.served.records.values(), "a repaired partition is not served"
    again = await start(second, repair=False)
    assert not again.refusal, f"after the repair: {again.refusal}"
    assert again.served == repaired.served, "after the repair it serves something else"
    if outcome.refusal:
        return "refused"
    return "served" if outcome.served == expected else "told"


def is_beyond_notice(damage: Damage) -> bool:
    """What neither Kafka nor this broker can notice in the records of an ordinary topic.

    The start of such a topic's log may go at any time, so that a first segment that is missing is
    no sign; a log start is a bare number; and the bytes of a batch before its checksum (offset,
    length, epoch) are read at a start only above the recovery point. In the offsets topic all of
    these are noticed. Without a file of STORE_FILES, nothing was
    ever set.
    """
    path, words = Path(damage.path), damage.words
    if path.name in STORE_FILES:
        return words == "absent"
    if path.name == "log-start-offset-checkpoint":
        return words.startswith("a bit")
    is_user_log = path.suffix == ".log" and path.parent.name.startswith(f"{TOPIC}-")
    is_first = path.stem.strip("0") == ""
    return is_user_log and (BEFORE_CHECKSUM in words or (is_first and words == "absent"))


def _check_refusal(refusal: str, damage: Damage) -> None:
    assert "\n" not in refusal
    # A wrong checkpoint is noticed by the log that contradicts it.
    is_named = Path(damage.path).name in refusal or "/data/" in refusal
    assert is_named, f"names no file: {refusal}"
    assert any(word in refusal for word in REMEDIES), f"no remedy: {refusal}"


def _check_loss(outcome: Outcome, damage: Damage, expected: Served) -> None:
    """A warning has named the place of everything that is not served any more."""
    assert "Traceback" not in outcome.log
    logged = "\n".join(outcome.warnings)
    lost = {
        group: offset
        for group, offset in expected.offsets.items()
        if outcome.served.offsets.get(group) != offset
    }
    folder = Path(damage.path).parent.name
    is_named = Path(damage.path).name in logged or (folder and folder in logged)
    assert not lost or is_named, f"silence about the offsets of {sorted(lost)}"
    for group in lost:
        is_logged = group in logged or "Lost" in logged
        assert is_logged, f"no word that {group} lost offsets: {logged}"
    for name, content in expected.stores.items():
        if outcome.served.stores.get(name) != content:
            assert name in logged or is_beyond_notice(damage), f"silence about {name}"
    for partition, values in expected.records.items():
        found = outcome.served.records.get(partition)
        name = f"{TOPIC}-{partition}"
        is_lost = found is not None and not set(values or ()) <= set(found)
        if is_lost and not is_beyond_notice(damage):
            assert is_named or name in logged, f"silence about records of {name}"
    if HISTORY_TOPIC in damage.path or OFFSETS_TOPIC not in damage.path:
        assert not lost or "wal" in damage.path, f"damage elsewhere, and offsets lost: {lost}"
