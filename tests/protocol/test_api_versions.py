"""ApiVersions: what is advertised is served, and agrees with Kafka 4.3.1 for these requests."""

import pytest

from protocol.api_versions import answer_api_versions, served_versions
from protocol.messages import REQUESTS, RESPONSES
from protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from protocol.names import ApiKey, ErrorCode

KAFKA_4_3_1 = {
    ApiKey.PRODUCE: (0, 13),  # Offered from 0, served from 3.
    ApiKey.FETCH: (4, 18),
    ApiKey.LIST_OFFSETS: (1, 11),
    ApiKey.METADATA: (0, 13),
    ApiKey.OFFSET_COMMIT: (2, 10),
    ApiKey.OFFSET_FETCH: (1, 10),
    ApiKey.FIND_COORDINATOR: (0, 6),
    ApiKey.JOIN_GROUP: (0, 9),
    ApiKey.HEARTBEAT: (0, 4),
    ApiKey.LEAVE_GROUP: (0, 5),
    ApiKey.SYNC_GROUP: (0, 5),
    ApiKey.DESCRIBE_GROUPS: (0, 6),
    ApiKey.LIST_GROUPS: (0, 5),
    ApiKey.API_VERSIONS: (0, 4),
    ApiKey.CREATE_TOPICS: (2, 7),
    ApiKey.DELETE_TOPICS: (1, 6),
    ApiKey.DELETE_RECORDS: (0, 2),
    ApiKey.INIT_PRODUCER_ID: (0, 5),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (2, 4),
    ApiKey.ADD_PARTITIONS_TO_TXN: (0, 5),
    ApiKey.ADD_OFFSETS_TO_TXN: (0, 4),
    ApiKey.END_TXN: (0, 5),
    ApiKey.WRITE_TXN_MARKERS: (1, 2),
    ApiKey.TXN_OFFSET_COMMIT: (0, 5),
    ApiKey.DESCRIBE_ACLS: (1, 3),
    ApiKey.SASL_HANDSHAKE: (0, 1),
    ApiKey.SASL_AUTHENTICATE: (0, 2),
    ApiKey.CREATE_ACLS: (1, 3),
    ApiKey.DELETE_ACLS: (1, 3),
    ApiKey.DESCRIBE_CONFIGS: (1, 4),
    ApiKey.ALTER_CONFIGS: (0, 2),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (1, 2),
    ApiKey.DESCRIBE_LOG_DIRS: (1, 5),
    ApiKey.CREATE_PARTITIONS: (0, 3),
    ApiKey.CREATE_DELEGATION_TOKEN: (1, 3),
    ApiKey.RENEW_DELEGATION_TOKEN: (1, 2),
    ApiKey.EXPIRE_DELEGATION_TOKEN: (1, 2),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: (1, 3),
    ApiKey.DELETE_GROUPS: (0, 2),
    ApiKey.ELECT_LEADERS: (0, 2),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (0, 1),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (0, 1),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (0, 0),
    ApiKey.OFFSET_DELETE: (0, 0),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (0, 1),
    ApiKey.ALTER_CLIENT_QUOTAS: (0, 1),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (0, 0),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (0, 0),
    ApiKey.DESCRIBE_QUORUM: (0, 2),
    ApiKey.UPDATE_FEATURES: (0, 2),
    ApiKey.DESCRIBE_CLUSTER: (0, 2),
    ApiKey.DESCRIBE_PRODUCERS: (0, 0),
    ApiKey.UNREGISTER_BROKER: (0, 0),
    ApiKey.DESCRIBE_TRANSACTIONS: (0, 0),
    ApiKey.LIST_TRANSACTIONS: (0, 2),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: (0, 1),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (0, 1),
    ApiKey.LIST_CONFIG_RESOURCES: (0, 1),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (0, 0),
    ApiKey.ADD_RAFT_VOTER: (0, 1),
    ApiKey.REMOVE_RAFT_VOTER: (0, 0),
}
NAMED = ApiVersionsRequest("apache-kafka-java", "4.3.1")


SERVED = served_versions(REQUESTS)


def test_the_ranges_are_kafkas() -> None:
    assert {s.api_key: (s.min_version, s.max_version) for s in SERVED} == KAFKA_4_3_1


def test_only_what_has_a_handler_is_advertised_in_the_order_of_the_api_keys() -> None:
    served = served_versions([ApiKey.HEARTBEAT, ApiKey.API_VERSIONS, ApiKey.PRODUCE])

    assert served == (
        ApiVersion(ApiKey.PRODUCE, 0, 13),
        ApiVersion(ApiKey.HEARTBEAT, 0, 4),
        ApiVersion(ApiKey.API_VERSIONS, 0, 4),
    )


def test_every_api_is_declared_in_both_directions() -> None:
    assert set(REQUESTS) == set(RESPONSES) == set(ApiKey)
    for api_key in ApiKey:
        assert REQUESTS[api_key].API_KEY is RESPONSES[api_key].API_KEY is api_key
        assert REQUESTS[api_key].VERSIONS == RESPONSES[api_key].VERSIONS
        assert REQUESTS[api_key].FLEXIBLE_SINCE == RESPONSES[api_key].FLEXIBLE_SINCE


@pytest.mark.parametrize("version", range(5))
def test_a_served_version_gets_all_apis(version: int) -> None:
    assert answer_api_versions(version, NAMED, SERVED) == ApiVersionsResponse(
        ErrorCode.NONE, SERVED
    )


@pytest.mark.parametrize("version", [5, 100, -1])
def test_an_unserved_version_gets_the_version_to_use(version: int) -> None:
    assert answer_api_versions(version, ApiVersionsRequest(), SERVED) == ApiVersionsResponse(
        ErrorCode.UNSUPPORTED_VERSION, (ApiVersion(ApiKey.API_VERSIONS, 0, 4),)
    )


@pytest.mark.parametrize("name", ["", "-a", "a-", "a b", "a\n", "é", "."])
def test_software_without_a_proper_name_is_refused_since_v3(name: str) -> None:
    for request in (ApiVersionsRequest(name, "1"), ApiVersionsRequest("a", name)):
        refused = answer_api_versions(3, request, SERVED)
        assert refused == ApiVersionsResponse(ErrorCode.INVALID_REQUEST)
        assert answer_api_versions(2, request, SERVED).error_code is ErrorCode.NONE


@pytest.mark.parametrize("name", ["a", "librdkafka", "kafka-python-3.0.1", "1.2.3-SNAPSHOT"])
def test_proper_names_are_taken(name: str) -> None:
    answer = answer_api_versions(4, ApiVersionsRequest(name, name), SERVED)

    assert answer.error_code is ErrorCode.NONE
