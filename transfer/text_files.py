"""Text formats: CSV as kafka-consumer-groups writes and reads it, and JSON.

CSV has a line per partition, `group,topic,partition,offset`, or without the group if the file has a
single group; no header. It has only offsets: no metadata, no times. JSON keeps those;
docs/migration.md has its schema. Neither has members. Anything invalid is refused with its line.
Kafka's counterpart: CsvUtils of the tools, which is Jackson's CSV.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from coordinator.group import CommittedOffset
from coordinator.writable import unwritable_offset
from logtools.kafka_json import Json
from protocol import java_text
from protocol.names import ZERO_TOPIC_ID, GroupId, TopicId
from storage.log.checkpoints import decode_uuid, encode_uuid
from transfer.contents import Contents, GroupContents
from transfer.errors import BadText

JSON_FORMAT: Final = "rollcall-offsets"
JSON_VERSION: Final = 1

_LONG_TEXT: Final = 24  # Jackson does not look into longer ones, it quotes them
_INT32_MAX: Final = 2**31 - 1
_INT64_MAX: Final = 2**63 - 1


class CsvRow(NamedTuple):
    group: str
    topic: str
    partition: int
    offset: int


# ---------------------------------------------------------------- CSV


def to_csv(contents: Contents, *, with_group: bool) -> str:
    """Lines in the order of groups, topics and partitions."""
    lines: list[str] = []
    for group_id in sorted(contents.groups):
        offsets = contents.groups[group_id].offsets
        for (topic, partition), (commit, _) in sorted(offsets.items()):
            cells = [_cell(topic), str(partition), str(commit.committed_offset)]
            lines.append(",".join([_cell(group_id), *cells] if with_group else cells))
    return "".join(f"{line}\n" for line in lines)


def _cell(text: str) -> str:
    if len(text) > _LONG_TEXT or not text or any(c in ',"\r\n' for c in text) or text[0] in "# ":
        quoted = text.replace('"', '""')
        return f'"{quoted}"'
    return text


def from_csv(text: str, name: str, group: str | None, now_ms: int) -> Contents:
    """`group` is whose offsets a file of three columns has. Raises BadText."""
    contents = Contents()
    for row in _rows(text, name, group):
        offsets = contents.group(GroupId(row.group)).offsets
        place = (row.topic, row.partition)
        if place in offsets:
            raise BadText(f"{name}: {row.topic}-{row.partition} of {row.group} occurs twice")
        offsets[place] = (CommittedOffset(row.offset, committed_at_ms=now_ms), now_ms)
    return contents


def _rows(text: str, name: str, group: str | None) -> Iterator[CsvRow]:
    reader = csv.reader(io.StringIO(text), strict=True)
    width = 0
    try:
        for cells in reader:
            if not cells:
                continue
            width = width or len(cells)
            if len(cells) != width or width not in (3, 4):
                raise BadText(
                    f"{name}, line {reader.line_num}: {len(cells)} columns, "
                    f"{width if width in (3, 4) else '3 or 4'} expected"
                )
            if width == 3 and group is None:
                raise BadText(f"{name} has no group column: name the group with --for-group")
            names = cells if width == 4 else [group or "", *cells]
            yield _row(names, f"{name}, line {reader.line_num}")
    except csv.Error as fault:
        raise BadText(f"{name}, line {reader.line_num}: {fault}") from None


def _row(cells: list[str], place: str) -> CsvRow:
    group, topic, partition, offset = cells
    return CsvRow(
        _named(group, "group", place),
        _topic_named(topic, place),
        _number(partition, "partition", _INT32_MAX, place),
        _number(offset, "offset", _INT64_MAX, place),
    )


def _topic_named(text: str, place: str) -> str:
    if not text:
        raise BadText(f"{place}: the topic name is empty")
    return _named(text, "topic", place)


def _named(text: str, what: str, place: str) -> str:
    """The empty group id is one, as in Kafka."""
    fault = unwritable_offset(text, "", "")
    if fault is not None:
        raise BadText(f"{place}: {fault.replace('group id', what)}: {text[:40]!r}")
    return text


def _number(text: str, what: str, most: int, place: str) -> int:
    number = java_text.parse_integer(text, 0, most)
    if number is None:
        raise BadText(f"{place}: invalid {what}: {text[:40]!r}")
    return number


# ---------------------------------------------------------------- JSON


def to_json(contents: Contents) -> str:
    groups: list[Json] = [
        {"group": group_id, "kind": group.kind, "offsets": list(_offsets_json(group))}
        for group_id, group in sorted(contents.groups.items())
    ]
    document = {"format": JSON_FORMAT, "version": JSON_VERSION, "groups": groups}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _offsets_json(group: GroupContents) -> Iterator[Json]:
    for (topic, partition), (commit, _) in sorted(group.offsets.items()):
        said: dict[str, Json] = {
            "topic": topic,
            "partition": partition,
            "offset": commit.committed_offset,
        }
        if commit.leader_epoch != -1:
            said["leader_epoch"] = commit.leader_epoch
        if commit.metadata:
            said["metadata"] = commit.metadata
        if commit.committed_at_ms != -1:
            said["committed_at_ms"] = commit.committed_at_ms
        if commit.expire_at_ms != -1:
            said["expire_at_ms"] = commit.expire_at_ms
        if commit.topic_id != ZERO_TOPIC_ID:
            said["topic_id"] = encode_uuid(commit.topic_id)
        yield said


def from_json(text: str, name: str, now_ms: int) -> Contents:
    """A commit that does not say when it was made was made now. Raises BadText."""
    try:
        document: Json = json.loads(text)
    except ValueError as fault:
        raise BadText(f"{name}: {fault}") from None
    except RecursionError:
        raise BadText(f"{name}: nested too deeply") from None
    top = _object(document, name)
    if top.get("format") != JSON_FORMAT or top.get("version") != JSON_VERSION:
        raise BadText(f'{name}: not "format": "{JSON_FORMAT}", "version": {JSON_VERSION}')
    contents = Contents()
    for number, listed in enumerate(_list(top.get("groups"), f"{name}: groups")):
        place = f"{name}: groups[{number}]"
        found = _object(listed, place)
        group_id = GroupId(_named(_text(found.get("group"), place), "group", place))
        if group_id in contents.groups:
            raise BadText(f"{place}: group {group_id!r} occurs twice")
        group = contents.group(group_id)
        for index, offset in enumerate(_list(found.get("offsets"), place)):
            _read_offset(group, _object(offset, place), f"{place}.offsets[{index}]", now_ms)
    return contents


def _read_offset(group: GroupContents, said: Mapping[str, Json], place: str, now_ms: int) -> None:
    where = (
        _topic_named(_text(said.get("topic"), place), place),
        _integer(said, "partition", None, 0, _INT32_MAX, place),
    )
    if where in group.offsets:
        raise BadText(f"{place}: {where[0]}-{where[1]} occurs twice")
    committed_at_ms = _integer(said, "committed_at_ms", now_ms, -1, _INT64_MAX, place)
    commit = CommittedOffset(
        _integer(said, "offset", None, 0, _INT64_MAX, place),
        _integer(said, "leader_epoch", -1, -1, _INT32_MAX, place),
        _text(said.get("metadata", ""), place),
        committed_at_ms,
        _integer(said, "expire_at_ms", -1, -1, _INT64_MAX, place),
        _topic_id(said.get("topic_id"), place),
    )
    fault = unwritable_offset(group.group_id, where[0], commit.metadata)
    if fault is not None:
        raise BadText(f"{place}: {where[0]}-{where[1]}: {fault}")
    group.offsets[where] = (commit, committed_at_ms if committed_at_ms >= 0 else now_ms)


def _topic_id(said: Json, place: str) -> TopicId:
    if said is None:
        return ZERO_TOPIC_ID
    found: TopicId | None = decode_uuid(_text(said, place))
    if found is None:
        raise BadText(f"{place}: invalid topic id: {_shown(said)}")
    return found


def _object(value: Json, place: str) -> Mapping[str, Json]:
    if not isinstance(value, dict):
        raise BadText(f"{place}: expected an object")
    return value


def _list(value: Json, place: str) -> Iterable[Json]:
    if not isinstance(value, list):
        raise BadText(f"{place}: expected a list")
    return value


def _text(value: Json, place: str) -> str:
    if not isinstance(value, str):
        raise BadText(f"{place}: expected text, not {_shown(value)}")
    return value


def _shown(value: Json) -> str:
    """For one line: a value may be long, or nested deeper than it can be printed."""
    return f"a {type(value).__name__}" if isinstance(value, list | dict) else repr(value)[:60]


def _integer(
    said: Mapping[str, Json], key: str, default: int | None, least: int, most: int, place: str
) -> int:
    value = said.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise BadText(f"{place}: invalid {key}: {_shown(value)}")
    return value
