"""Error responses: the answer that says one error, of any API in any version.

Kafka's clients look for an error where the API's response has it: at the top, or in each partition,
topic, group or resource that the request names. The response is built from the two declarations:
error codes at the top get the error; if there is none in this version, the arrays that have some
are built from those of the request, with the names and numbers that both have. What a request class
of Kafka fills in beside that is in `_TOP` and `_ELEMENTS`. Recorded from Kafka for each API and
version: tests/testing/golden/. Kafka's counterpart: `AbstractRequest.getErrorResponse`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from protocol.api_versions import served_versions
from protocol.messages import RESPONSES, Request, Response
from protocol.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from protocol.messages.fetch import FetchRequest
from protocol.messages.join_group import JoinGroupRequest
from protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponseTopic,
)
from protocol.names import ApiKey, ErrorCode, TopicName
from protocol.schema import ERROR_CODE, ArrayOf, FieldSpec, Struct, StructOf, fields_of
from seams.principal import ANONYMOUS

_ALIASES: Final = (
    frozenset({"partition", "index", "partition_index", "partition_id"}),
    frozenset({"name", "topic", "topic_name", "user"}),
)
"""Names of one thing, in requests and in responses."""

_IDENTITY: Final = frozenset(
    {"entity", "group_id", "producer_id", "resource_name", "resource_type", "topic_id"}
    | {"transactional_id"}
).union(*_ALIASES)
"""What names a part of a request. Everything else of an element is not repeated."""

_UNKNOWN: Final = -1

_TOP: Final[Mapping[ApiKey, Mapping[str, object]]] = {
    ApiKey.CREATE_DELEGATION_TOKEN: {
        "principal_type": ANONYMOUS.principal_type,
        "principal_name": ANONYMOUS.name,
        "token_requester_principal_type": ANONYMOUS.principal_type,
        "token_requester_principal_name": ANONYMOUS.name,
        "issue_timestamp_ms": _UNKNOWN,
        "expiry_timestamp_ms": _UNKNOWN,
        "max_timestamp_ms": _UNKNOWN,
    },
    ApiKey.DESCRIBE_CLIENT_QUOTAS: {"entries": None},
    ApiKey.FIND_COORDINATOR: {"node_id": _UNKNOWN, "port": _UNKNOWN},
    ApiKey.INIT_PRODUCER_ID: {"producer_epoch": _UNKNOWN},
}
_ELEMENTS: Final[Mapping[ApiKey, Mapping[str, object]]] = {
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: {"user": ""},
    ApiKey.DELETE_RECORDS: {"low_watermark": _UNKNOWN},
    ApiKey.FETCH: {"high_watermark": _UNKNOWN, "records": b""},
    ApiKey.FIND_COORDINATOR: {"node_id": _UNKNOWN, "port": _UNKNOWN},
    ApiKey.OFFSET_FETCH: {"committed_offset": _UNKNOWN},
    ApiKey.OFFSET_FOR_LEADER_EPOCH: {"leader_epoch": _UNKNOWN},
    ApiKey.PRODUCE: {"base_offset": _UNKNOWN},
}
_ALSO_BELOW: Final = frozenset(
    {
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        ApiKey.ELECT_LEADERS,
        ApiKey.FETCH,
    }
)
"""The arrays are filled although there is an error at the top."""

_FETCH_BY_ID_SINCE: Final = 13
"""Without the names of its topics Kafka has no partitions to name."""

_FETCH_SESSIONS_SINCE: Final = 7

_NULL_NAME_SINCE: Final = 7
"""JoinGroup: no protocol is null, not an empty name."""


def error_response(request: Request, version: int, error_code: ErrorCode) -> Response | None:
    """None where a client waits for no answer: a Produce with acks=0."""
    api_key = request.API_KEY
    cls = RESPONSES[api_key]
    if getattr(request, "acks", None) == 0:
        return None
    content: dict[str, object] = {}
    top = [spec for spec in _fields(cls, version) if spec.mark.wire is ERROR_CODE]
    for spec in top:
        content[spec.name] = error_code
    if top:
        content |= _existing(cls, version, _TOP.get(api_key, {}))
    if not top or api_key in _ALSO_BELOW:
        content |= _arrays(cls, version, api_key, _asked_about(request, version), error_code)
    content |= _special(request, version, error_code)
    return replace(cls(), **content)


def _special(request: Request, version: int, error_code: ErrorCode) -> dict[str, object]:
    """What no rule gives."""
    match request:
        case ApiVersionsRequest() if error_code is ErrorCode.UNSUPPORTED_VERSION:
            return {"api_keys": [served_versions([ApiKey.API_VERSIONS])[0]]}
        case DescribeLogDirsRequest():
            return {"results": []}
        case FetchRequest() if version >= _FETCH_BY_ID_SINCE:
            return {"session_id": request.session_id, "responses": []}
        case FetchRequest() if version >= _FETCH_SESSIONS_SINCE:
            return {"session_id": request.session_id}
        case JoinGroupRequest() if version >= _NULL_NAME_SINCE:
            return {"protocol_name": None}
        case MetadataRequest() if request.topics:
            return {"topics": [_metadata_of(topic, error_code) for topic in request.topics]}
        case ListPartitionReassignmentsRequest():
            topics = request.topics or ()
            return {
                "topics": [
                    OngoingTopicReassignment(
                        topic.name,
                        [OngoingPartitionReassignment(n) for n in topic.partition_indexes],
                    )
                    for topic in topics
                ]
            }
        case _:
            return {}


def _metadata_of(topic: MetadataRequestTopic, error_code: ErrorCode) -> MetadataResponseTopic:
    """As in Kafka, one without a name gets an empty name in every version."""
    name = TopicName(topic.name or "")
    return MetadataResponseTopic(error_code, name=name, topic_id=topic.topic_id)


def _arrays(
    cls: type[Struct],
    version: int,
    api_key: ApiKey,
    asked: Iterable[object],
    error_code: ErrorCode,
) -> dict[str, object]:
    """The array of `cls` that has error codes, mirrored from what the request asked about."""
    for spec in _fields(cls, version):
        element = _element(spec)
        if element is not None and _has_errors(element, version):
            mirrored = [_mirror(element, version, api_key, each, error_code) for each in asked]
            return {spec.name: mirrored}
    return {}


def _mirror(
    cls: type[Struct], version: int, api_key: ApiKey, asked: object, error_code: ErrorCode
) -> Struct:
    content: dict[str, object] = {}
    specs = _fields(cls, version)
    own = [spec for spec in specs if spec.mark.wire is ERROR_CODE and spec.mark.tag is None]
    for spec in specs:
        if spec in own:
            content[spec.name] = error_code
        elif isinstance(asked, Struct):
            content |= _copied(spec, version, asked)
        elif type(asked) is type(spec.default) and not content.keys() - {each.name for each in own}:
            content[spec.name] = asked  # a plain number or name: the first field for one
    content |= _existing(cls, version, _ELEMENTS.get(api_key, {}))
    if not own:
        assert isinstance(asked, Struct)
        content |= _arrays(cls, version, api_key, _asked_about(asked, version), error_code)
    return replace(cls(), **content)


def _copied(spec: FieldSpec, version: int, asked: Struct) -> dict[str, object]:
    """The field, if it names the part of the request that this element answers."""
    if spec.name not in _IDENTITY:
        return {}
    names = {spec.name}.union(*(names for names in _ALIASES if spec.name in names))
    for name in asked.__struct_fields__:
        if name in names:
            value = getattr(asked, name)
            is_written = value is not None or spec.mark.nullable_in(version)
            return {spec.name: value} if is_written else {}
    return {}


def _asked_about(asked: Struct, version: int) -> Iterator[object]:
    """What the request, or a part of it, names: its first array, or several of one sense."""
    if isinstance(asked, AlterReplicaLogDirsRequest):
        return (topic for folder in asked.dirs for topic in folder.topics)
    if isinstance(asked, AlterUserScramCredentialsRequest):
        return iter((*asked.deletions, *asked.upsertions))
    for spec in _fields(type(asked), version):
        if isinstance(spec.mark.wire, ArrayOf):
            return iter(getattr(asked, spec.name) or ())
    return iter(())


def _fields(cls: type[Struct], version: int) -> list[FieldSpec]:
    return [spec for spec in fields_of(cls) if spec.mark.in_version(version)]


def _element(spec: FieldSpec) -> type[Struct] | None:
    wire = spec.mark.wire
    if isinstance(wire, ArrayOf) and isinstance(wire.element, StructOf):
        return wire.element.cls
    return None


def _has_errors(cls: type[Struct], version: int) -> bool:
    return any(
        spec.mark.wire is ERROR_CODE
        or ((element := _element(spec)) is not None and _has_errors(element, version))
        for spec in _fields(cls, version)
    )


def _existing(cls: type[Struct], version: int, content: Mapping[str, object]) -> dict[str, object]:
    names = {spec.name for spec in _fields(cls, version)}
    return {name: value for name, value in content.items() if name in names}
