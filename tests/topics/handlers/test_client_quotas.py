"""Client quotas: what differs from Kafka, the file, and what handlers do beyond a quota.

What is the same is compared with a Kafka in tests/compare/scenarios/client_quotas.py.
"""

import random
from collections.abc import Mapping

import pytest

from protocol.codec import encode_response
from protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    QuotaAlteration,
    QuotaEntity,
    QuotaOperation,
)
from protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from protocol.names import ZERO_TOPIC_ID, ApiKey, ErrorCode, TopicName
from security.quotas.limits import ENTITY_NAME_MAX, QuotaTable
from storage.atomic_file import StoredFile
from tests.simulator.disk import PowerCut, SimulatedDisk
from tests.topics.plane import Plane
from topics.admin_queue import run_now
from topics.client_quota_store import ClientQuotasDamaged, ClientQuotaStore
from topics.events import ClientQuotasChanged, ClientQuotasLost, SaveFailed
from topics.fetch_answer_size import fetch_answer_size
from topics.fetch_session import FetchContext, FetchSession

AMY: Mapping[str, str | None] = {"user": "amy"}
FETCH_VERSION = 12
RATE = {"producer_byte_rate": 1_000.0}


def alter(
    plane: Plane,
    entity: Mapping[str, str | None],
    quotas: Mapping[str, float | None],
    *,
    validate_only: bool = False,
) -> ErrorCode:
    operations = [
        QuotaOperation(key, bound or 0.0, remove=bound is None) for key, bound in quotas.items()
    ]
    parts = [QuotaEntity(kind, name) for kind, name in entity.items()]
    request = AlterClientQuotasRequest([QuotaAlteration(parts, operations)], validate_only)
    (result,) = plane.ask(request, 1, AlterClientQuotasResponse).entries
    return result.error_code


def described(plane: Plane) -> list[tuple[dict[str, str | None], dict[str, float]]]:
    answer = plane.ask(DescribeClientQuotasRequest(), 1, DescribeClientQuotasResponse)
    return [
        (
            {part.entity_type: part.entity_name for part in entry.entity},
            {value.key: value.value for value in entry.values},
        )
        for entry in answer.entries or ()
    ]


# The table


def test_a_quota_is_there_after_a_restart(plane: Plane) -> None:
    assert alter(plane, AMY, RATE) is ErrorCode.NONE
    assert alter(plane, {"client-id": None, "user": None}, RATE) is ErrorCode.NONE
    plane.restart()

    assert described(plane) == [(dict(AMY), RATE), ({"client-id": None, "user": None}, RATE)]


def test_a_change_is_reported_and_in_effect_when_it_is_answered(plane: Plane) -> None:
    tables: list[QuotaTable] = []
    plane.client_quotas.subscribe(tables.append)
    alter(plane, AMY, RATE)
    alter(plane, AMY, {"producer_byte_rate": None})

    assert tables == [{}, {(("user", "amy"),): RATE}, {}]
    assert plane.events_of(ClientQuotasChanged) == [
        ClientQuotasChanged((("user", "amy"),), RATE),
        ClientQuotasChanged((("user", "amy"),), {}),
    ]


def test_what_is_only_validated_is_not_stored(plane: Plane) -> None:
    assert alter(plane, AMY, RATE, validate_only=True) is ErrorCode.NONE
    assert alter(plane, AMY, {"bogus": 1.0}, validate_only=True) is ErrorCode.INVALID_REQUEST

    assert described(plane) == []
    assert plane.client_quotas_file.saves == 0


def test_the_number_of_entities_is_limited(plane: Plane) -> None:
    for name in ("a", "b", "c"):
        assert alter(plane, {"user": name}, RATE) is ErrorCode.NONE

    assert alter(plane, {"user": "d"}, RATE) is ErrorCode.INVALID_REQUEST
    assert alter(plane, {"user": "c"}, {"request_percentage": 1.0}) is ErrorCode.NONE
    assert len(described(plane)) == plane.quotas_max


def test_the_length_of_a_name_is_limited(plane: Plane) -> None:
    assert alter(plane, {"user": "a" * ENTITY_NAME_MAX}, RATE) is ErrorCode.NONE
    assert alter(plane, {"user": "a" * (ENTITY_NAME_MAX + 1)}, RATE) is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("key", "bound"),
    [
        ("request_percentage", float("nan")),
        ("producer_byte_rate", float("inf")),
        ("producer_byte_rate", 0.0),
        ("producer_byte_rate", 1.5),
    ],
)
def test_a_value_is_refused(plane: Plane, key: str, bound: float) -> None:
    assert alter(plane, AMY, {key: bound}) is ErrorCode.INVALID_REQUEST
    assert described(plane) == []


def test_the_name_of_a_host_is_refused_because_that_would_ask_dns(plane: Plane) -> None:
    rate = {"connection_creation_rate": 1.0}
    assert alter(plane, {"ip": "localhost"}, rate) is ErrorCode.INVALID_REQUEST
    assert alter(plane, {"ip": "0:0:0:0:0:0:0:1"}, rate) is ErrorCode.NONE


def test_a_failed_disk_changes_nothing(plane: Plane) -> None:
    plane.client_quotas_file.fail_next = OSError(28, "No space left on device")

    assert alter(plane, AMY, RATE) is ErrorCode.KAFKA_STORAGE_ERROR

    assert described(plane) == []
    assert plane.events_of(SaveFailed)


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"[]",
        b'{"format":1,"client_quotas":{}}',
        b'{"format":1,"client_quotas":[{"entity":{"x":"y"},"quotas":{}}]}',
        b'{"format":1,"client_quotas":[{"entity":{"user":"y"},"quotas":{"a":0}}]}',
    ],
)
def test_a_damaged_file_stops_the_start_and_a_repair_keeps_it(plane: Plane, content: bytes) -> None:
    plane.client_quotas_file.content = content
    with pytest.raises(ClientQuotasDamaged):
        plane.restart()
    plane.repair = True
    plane.restart()

    assert plane.client_quotas_file.kept == [content]
    assert plane.events_of(ClientQuotasLost)
    assert plane.client_quotas.was_repaired
    plane.repair = False
    plane.restart()
    assert described(plane) == []


BEFORE: QuotaTable = {(("user", "amy"),): {"producer_byte_rate": 1.0}}
AFTER: QuotaTable = {(("user", "amy"),): {"producer_byte_rate": 2.0}, (("ip", None),): {}}


@pytest.mark.parametrize("loses_power", [False, True], ids=["kill", "power"])
def test_a_change_is_made_or_not_made(*, loses_power: bool) -> None:
    def store_on(disk: SimulatedDisk) -> ClientQuotaStore:
        file = StoredFile(disk, "/data/rollcall-client-quotas.json")
        return ClientQuotaStore(file, 10, lambda _: None)

    steps, is_answered = 0, False
    while not is_answered:
        disk = SimulatedDisk()
        disk.make_dir("/data")
        disk.sync_dir("/")
        store = store_on(disk)
        run_now(store.change(BEFORE))
        disk.cut_power_at = disk.operations + steps
        try:
            run_now(store.change(AFTER))
            is_answered = True
        except PowerCut:
            pass
        left = disk.after_crash(random.Random(steps)) if loses_power else disk.after_kill()
        found = store_on(left).table
        assert found == AFTER if is_answered else found in (BEFORE, AFTER)
        steps += 1
    assert steps > 3


# Handlers beyond a quota


def create(plane: Plane, version: int, *, validate_only: bool = False) -> list[ErrorCode]:
    topics = [CreatableTopic(TopicName(name), 2, 1) for name in ("x", "y")]
    request = CreateTopicsRequest(topics, validate_only=validate_only)
    answer = plane.ask(request, version, CreateTopicsResponse)
    return [topic.error_code for topic in answer.topics]


OVER = ErrorCode.THROTTLING_QUOTA_EXCEEDED


@pytest.mark.parametrize(("version", "second"), [(6, OVER), (5, ErrorCode.NONE)])
def test_topics_beyond_the_quota_are_not_created(
    plane: Plane, version: int, second: ErrorCode
) -> None:
    plane.throttle.mutations_left = 1

    assert create(plane, version) == [ErrorCode.NONE, second]
    assert (plane.data.registry.by_name(TopicName("y")) is None) == (second is OVER)


def test_topics_that_are_only_validated_count_too(plane: Plane) -> None:
    create(plane, 7, validate_only=True)
    assert plane.throttle.mutations == [(2, True), (2, True)]


def test_a_topic_that_is_refused_does_not_count(plane: Plane) -> None:
    plane.given("x")
    plane.throttle.mutations.clear()
    create(plane, 7)
    assert plane.throttle.mutations == [(2, True)]


@pytest.mark.parametrize(("version", "second"), [(5, OVER), (4, ErrorCode.NONE)])
def test_topics_beyond_the_quota_are_not_deleted(
    plane: Plane, version: int, second: ErrorCode
) -> None:
    plane.given("x", 3)
    plane.given("y", 3)
    plane.throttle.mutations.clear()
    plane.throttle.mutations_left = 1

    request = DeleteTopicsRequest(topic_names=[TopicName("x"), TopicName("y")])
    answer = plane.ask(request, version, DeleteTopicsResponse)

    errors = {topic.name: topic.error_code for topic in answer.responses}
    assert errors == {"x": ErrorCode.NONE, "y": second}
    assert plane.throttle.mutations == [(3, version >= 5)] * 2


@pytest.mark.parametrize(("version", "second"), [(3, OVER), (2, ErrorCode.NONE)])
def test_partitions_beyond_the_quota_are_not_added(
    plane: Plane, version: int, second: ErrorCode
) -> None:
    plane.given("x", 1)
    plane.given("y", 1)
    plane.throttle.mutations.clear()
    plane.throttle.mutations_left = 1

    topics = [CreatePartitionsTopic(TopicName(name), 4, None) for name in ("x", "y")]
    answer = plane.ask(CreatePartitionsRequest(topics), version, CreatePartitionsResponse)

    assert [result.error_code for result in answer.results] == [ErrorCode.NONE, second]
    assert plane.throttle.mutations == [(3, version >= 3)] * 2


def test_topics_beyond_the_quota_are_not_created_automatically(plane: Plane) -> None:
    plane.throttle.mutations_left = 0
    request = MetadataRequest([MetadataRequestTopic(name=TopicName("x"))])

    answer = plane.ask(request, 8, MetadataResponse)

    assert [topic.error_code for topic in answer.topics] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    plane.throttle.mutations_left = 1
    plane.ask(request, 8, MetadataResponse)
    assert plane.data.registry.by_name(TopicName("x")) is not None


def fetch(plane: Plane, session_id: int, epoch: int, fetch_offset: int = 0) -> FetchResponse:
    partition = FetchPartition(0, fetch_offset=fetch_offset, partition_max_bytes=1 << 20)
    asked = [FetchTopic(TopicName("x"), partitions=[partition])]
    request = FetchRequest(
        max_wait_ms=0, min_bytes=1, session_id=session_id, session_epoch=epoch, topics=asked
    )
    return plane.ask(request, FETCH_VERSION, FetchResponse)


def records_in(answer: FetchResponse) -> int:
    return sum(len(p.records or b"") for topic in answer.responses for p in topic.partitions)


def test_a_fetch_beyond_its_quota_is_empty_and_its_session_stays_as_it_was(plane: Plane) -> None:
    plane.given("x")
    first = fetch(plane, 0, 0)
    plane.given_records("x", 2)

    plane.throttle.is_over_fetch_quota = True
    throttled = fetch(plane, first.session_id, 1)
    plane.throttle.is_over_fetch_quota = False
    after = fetch(plane, first.session_id, 2)

    assert (throttled.error_code, throttled.session_id) == (ErrorCode.NONE, first.session_id)
    assert list(throttled.responses) == []
    assert records_in(after) > 0
    assert plane.throttle.fetched[-1] > records_in(after)


def test_the_bytes_of_a_fetch_are_those_of_its_answer(plane: Plane) -> None:
    """As Kafka counts them: the length prefix and the body, and of a session only what changed."""
    plane.given("x")
    plane.given_records("x", 300)
    first = fetch(plane, 0, 0)
    frame = encode_response(ApiKey.FETCH, FETCH_VERSION, 0, first)
    assert plane.throttle.fetched == [len(frame) - 5]

    end = first.responses[0].partitions[0].high_watermark
    idle = fetch(plane, first.session_id, 1, end)
    assert list(idle.responses) == []
    frame = encode_response(ApiKey.FETCH, FETCH_VERSION, 0, idle)
    assert plane.throttle.fetched[1:] == [len(frame) - 5] == [16]

    session = FetchSession(1, uses_topic_ids=False, created_ms=0)
    overtaken = FetchContext(
        FetchRequest(), (), uses_topic_ids=False, accepted_ms=0, session=session
    )
    assert plane.data.fetch_sessions.changes(overtaken, ["a read"]) == ()


@pytest.mark.parametrize("version", FetchResponse.VERSIONS)
@pytest.mark.parametrize("size", [None, 0, 1, 126, 127, 128, 16_383, 3_000_000])
def test_the_size_of_an_answer_is_known_without_encoding_its_records(
    version: int, size: int | None
) -> None:
    records = None if size is None else bytes(size)
    data = PartitionData(1, records=records, aborted_transactions=[AbortedTransaction()])
    topics = [
        FetchableTopicResponse(TopicName("x"), ZERO_TOPIC_ID, [data, PartitionData(2, records=b"")])
    ]
    frame = encode_response(ApiKey.FETCH, version, 7, FetchResponse(responses=topics))

    header = 5 if version >= 12 else 4
    assert fetch_answer_size(topics, version) == len(frame) - header


def test_a_throttled_fetch_opens_no_session(plane: Plane) -> None:
    plane.given("x")
    plane.throttle.is_over_fetch_quota = True

    assert fetch(plane, 0, 0).session_id == 0
    assert len(plane.data.fetch_sessions) == 0


def test_a_fetch_reads_no_more_than_an_idle_client_may_have(plane: Plane) -> None:
    plane.given("x")
    for _ in range(5):
        plane.given_records("x", 10)
    everything = records_in(fetch(plane, 0, -1))
    plane.throttle.fetch_max = everything // 2

    assert 0 < records_in(fetch(plane, 0, -1)) <= everything // 2
