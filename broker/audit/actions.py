"""Audited actions: what an administrative request and its answer say, resource by resource.

Only names: the values of configs, salts and passwords are never read here. A request that was only
validated is no action. Kafka has no counterpart.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, cast

from broker.audit.entry import bounded, names_of
from protocol.acl_codes import AclOperation, PatternType, PermissionType, ResourceType
from protocol.messages import Request, Response, create_acls, delete_acls, write_txn_markers
from protocol.messages import alter_client_quotas as quotas
from protocol.messages import alter_configs as configs
from protocol.messages import alter_user_scram_credentials as scram
from protocol.messages import create_partitions as partitions
from protocol.messages import create_topics as topics
from protocol.messages import delete_groups as groups
from protocol.messages import delete_records as records
from protocol.messages import delete_topics as topic_deletion
from protocol.messages import elect_leaders as elections
from protocol.messages import incremental_alter_configs as incremental
from protocol.messages import offset_delete as offsets
from protocol.names import ApiKey, ErrorCode
from topics.config_resources import ConfigOperation, ConfigResourceType


class AuditedAction(NamedTuple):
    """One resource, what became of it, and what was to change."""

    resource: str
    error_code: ErrorCode
    detail: str = ""


_Actions = Iterable[AuditedAction]


def resource_text(resource_type: int, name: str, pattern: int = PatternType.LITERAL) -> str:
    """As `SecurityUtils.resourceTypeName` and Kafka's audit line write it."""
    kind = _code(ResourceType, resource_type).title().replace("_", "")
    return f"{kind}:{_code(PatternType, pattern)}:{name}"


def _topic(name: str | None) -> str:
    return resource_text(ResourceType.TOPIC, name or "?")


def _code(
    codes: type[AclOperation | PatternType | PermissionType | ResourceType], code: int
) -> str:
    try:
        return codes(code).name
    except ValueError:
        return str(code)


def _created_topics(
    asked: topics.CreateTopicsRequest, got: topics.CreateTopicsResponse
) -> _Actions:
    if asked.validate_only:
        return
    for each in got.topics:
        yield AuditedAction(_topic(each.name), each.error_code)


def _deleted_topics(
    _: topic_deletion.DeleteTopicsRequest, got: topic_deletion.DeleteTopicsResponse
) -> _Actions:
    for each in got.responses:
        yield AuditedAction(_topic(each.name or str(each.topic_id)), each.error_code)


def _added_partitions(
    asked: partitions.CreatePartitionsRequest, got: partitions.CreatePartitionsResponse
) -> _Actions:
    if asked.validate_only:
        return
    counts = {each.name: each.count for each in asked.topics}
    for each in got.results:
        count = counts.get(each.name)
        detail = "" if count is None else f"partitions={count}"
        yield AuditedAction(_topic(each.name), each.error_code, detail)


def _altered_configs(
    asked: configs.AlterConfigsRequest | incremental.IncrementalAlterConfigsRequest,
    got: configs.AlterConfigsResponse | incremental.IncrementalAlterConfigsResponse,
) -> _Actions:
    if asked.validate_only:
        return
    named = {
        (resource.resource_type, resource.resource_name): names_of(
            [_config(each) for each in resource.configs]
        )
        for resource in asked.resources
    }
    for each in got.responses:
        try:
            kind = ConfigResourceType(each.resource_type).name.title().replace("_", "")
        except ValueError:
            kind = str(each.resource_type)
        detail = named.get((each.resource_type, each.resource_name), "")
        yield AuditedAction(f"{kind}Config:{each.resource_name}", each.error_code, detail)


def _config(each: configs.AlterableConfig | incremental.IncrementalAlterableConfig) -> str:
    """Never its value."""
    if isinstance(each, configs.AlterableConfig):
        return f"SET {each.name}"
    try:
        return f"{ConfigOperation(each.config_operation).name} {each.name}"
    except ValueError:
        return f"{each.config_operation} {each.name}"


def _created_acls(
    asked: create_acls.CreateAclsRequest, got: create_acls.CreateAclsResponse
) -> _Actions:
    for acl, each in zip(asked.creations, got.results, strict=False):
        resource = resource_text(acl.resource_type, acl.resource_name, acl.resource_pattern_type)
        yield AuditedAction(resource, each.error_code, _acl(acl))


def _deleted_acls(
    _: delete_acls.DeleteAclsRequest, got: delete_acls.DeleteAclsResponse
) -> _Actions:
    for found in got.filter_results:
        if found.error_code is not ErrorCode.NONE:
            yield AuditedAction("", found.error_code, "a filter")
        for acl in found.matching_acls:
            resource = resource_text(acl.resource_type, acl.resource_name, acl.pattern_type)
            yield AuditedAction(resource, acl.error_code, _acl(acl))


def _acl(acl: create_acls.AclCreation | delete_acls.DeleteAclsMatchingAcl) -> str:
    """As kafka-acls prints it."""
    operation = _code(AclOperation, acl.operation)
    permission = _code(PermissionType, acl.permission_type)
    client = f"principal={bounded(acl.principal)}, host={bounded(acl.host)}"
    return f"({client}, operation={operation}, permissionType={permission})"


def _altered_users(
    asked: scram.AlterUserScramCredentialsRequest, got: scram.AlterUserScramCredentialsResponse
) -> _Actions:
    for each in got.results:
        changes = ["DELETE" for deletion in asked.deletions if deletion.name == each.user]
        changes += ["SET" for upsertion in asked.upsertions if upsertion.name == each.user]
        resource = resource_text(ResourceType.USER, each.user)
        yield AuditedAction(resource, each.error_code, names_of(changes))


def _altered_quotas(
    asked: quotas.AlterClientQuotasRequest, got: quotas.AlterClientQuotasResponse
) -> _Actions:
    if asked.validate_only:
        return
    for wanted, each in zip(asked.entries, got.entries, strict=False):
        entity = ", ".join(
            f"{part.entity_type}={'<default>' if part.entity_name is None else part.entity_name}"
            for part in wanted.entity
        )
        keys = [f"{'DELETE' if op.remove else 'SET'} {op.key}" for op in wanted.ops]
        yield AuditedAction(f"ClientQuota:{entity}", each.error_code, names_of(keys))


def _deleted_groups(_: groups.DeleteGroupsRequest, got: groups.DeleteGroupsResponse) -> _Actions:
    for each in got.results:
        yield AuditedAction(resource_text(ResourceType.GROUP, each.group_id), each.error_code)


class _Indexed(Protocol):
    @property
    def partition_index(self) -> int: ...

    @property
    def error_code(self) -> ErrorCode: ...


def _by_code(name: str, results: Sequence[_Indexed]) -> Mapping[ErrorCode, list[str]]:
    """The partitions of a topic by what became of them."""
    found: dict[ErrorCode, list[str]] = {}
    for each in results:
        found.setdefault(each.error_code, []).append(f"{name}-{each.partition_index}")
    return found


def _deleted_offsets(
    asked: offsets.OffsetDeleteRequest, got: offsets.OffsetDeleteResponse
) -> _Actions:
    resource = resource_text(ResourceType.GROUP, asked.group_id)
    if got.error_code is not ErrorCode.NONE:
        yield AuditedAction(resource, got.error_code)
    for topic in got.topics:
        for code, names in _by_code(topic.name, topic.partitions).items():
            yield AuditedAction(resource, code, names_of(names))


def _deleted_records(
    _: records.DeleteRecordsRequest, got: records.DeleteRecordsResponse
) -> _Actions:
    for topic in got.topics:
        for code, names in _by_code(topic.name, topic.partitions).items():
            yield AuditedAction(_topic(topic.name), code, names_of(names))


def _written_markers(
    asked: write_txn_markers.WriteTxnMarkersRequest,
    got: write_txn_markers.WriteTxnMarkersResponse,
) -> _Actions:
    results = {marker.producer_id: marker.transaction_result for marker in asked.markers}
    for marker in got.markers:
        word = "COMMIT" if results.get(marker.producer_id) else "ABORT"
        for topic in marker.topics:
            for code, names in _by_code(topic.name, topic.partitions).items():
                detail = f"{word} of producer {marker.producer_id} in {names_of(names)}"
                yield AuditedAction(_topic(topic.name), code, detail)


def _elected(_: elections.ElectLeadersRequest, got: elections.ElectLeadersResponse) -> _Actions:
    if got.error_code is not ErrorCode.NONE:
        yield AuditedAction(resource_text(ResourceType.CLUSTER, "kafka-cluster"), got.error_code)
    for topic in got.replica_election_results:
        for each in topic.partition_result:
            detail = f"{topic.topic}-{each.partition_id}"
            yield AuditedAction(_topic(topic.topic), each.error_code, detail)


_Describe = Callable[[Request, Response], _Actions]

AUDITED_REQUESTS: Final = cast(
    "Mapping[ApiKey, _Describe]",
    {
        ApiKey.CREATE_TOPICS: _created_topics,
        ApiKey.DELETE_TOPICS: _deleted_topics,
        ApiKey.CREATE_PARTITIONS: _added_partitions,
        ApiKey.ALTER_CONFIGS: _altered_configs,
        ApiKey.INCREMENTAL_ALTER_CONFIGS: _altered_configs,
        ApiKey.CREATE_ACLS: _created_acls,
        ApiKey.DELETE_ACLS: _deleted_acls,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _altered_users,
        ApiKey.ALTER_CLIENT_QUOTAS: _altered_quotas,
        ApiKey.DELETE_GROUPS: _deleted_groups,
        ApiKey.OFFSET_DELETE: _deleted_offsets,
        ApiKey.DELETE_RECORDS: _deleted_records,
        ApiKey.WRITE_TXN_MARKERS: _written_markers,
        ApiKey.ELECT_LEADERS: _elected,
    },
)
"""The requests that change something for others, and how their answers are read."""
