"""Exposition: that of a real daemon after known traffic: every name, every alias, the numbers."""

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)

from broker.metrics import client_quotas, kafka_exporter, kafka_lag_exporter
from broker.metrics.family import declared
from broker.metrics.scrape import all_families
from tests.broker.daemon import TEST_SETTINGS, Daemon
from tests.conftest import StartDaemon
from tests.console.live import (
    COMMITTED,
    FLUSHES,
    OUTSIDE,
    RECORDS,
    Samples,
    at,
    create,
    fetch,
    samples,
    total,
)

pytestmark = pytest.mark.xdist_group("console")


def test_the_numbers_are_those_of_the_traffic(shown: Samples) -> None:
    assert shown[at("group_coordinator_groups", protocol="classic", state="Stable")] == 1
    assert shown[at("group_coordinator_groups", protocol="classic", state="Empty")] == 1
    assert shown[at("group_coordinator_members")] == 1
    assert shown[at("group_coordinator_offsets")] == 3
    assert shown[at("group_coordinator_offset_commits_total")] == 3
    assert shown[at("group_coordinator_outside_offset_commits_total")] == 1
    begun = "group_coordinator_rebalances_begun_total"
    assert shown[at(begun, cause="member_joined")] == 1
    assert total(shown, begun) == 1
    assert shown[at("group_coordinator_rebalances_running")] == 0
    assert shown[at("group_coordinator_join_wait_seconds_count")] == 1
    assert shown[at("group_coordinator_rebalance_seconds_count")] == 1
    assert shown[at("rollcall_appended_records_total")] == RECORDS
    joins = [
        value
        for (name, labels), value in shown.items()
        if name == "rollcall_requests_total" and ("request", "JoinGroup") in labels
    ]
    assert sum(joins) == 2  # the first one is given its id
    errors = at("rollcall_request_errors_total", request="JoinGroup", error="MEMBER_ID_REQUIRED")
    assert shown[errors] == 1
    assert shown[at("rollcall_journal_synced")] == 1
    assert shown[at("rollcall_journal_failed")] == 0
    (flushes,) = {shown[at(name)] for name in FLUSHES}
    assert flushes >= 3
    waiting = at("rollcall_purgatory_operations", operation="Heartbeat", kind="session")
    assert shown[waiting] == 1
    deadline = at("rollcall_purgatory_next_deadline_seconds", operation="Heartbeat", kind="session")
    assert 0 < shown[deadline] <= 45
    assert shown[at("rollcall_ready")] == 1


def test_the_lag_of_a_group_is_exact(shown: Samples) -> None:
    place = {"group": "billing", "topic": "orders"}
    lag = RECORDS - COMMITTED
    assert shown[at("group_coordinator_group_members", group="billing")] == 1
    assert shown[at("group_coordinator_group_state", group="billing", state="Stable")] == 1
    assert shown[at("group_coordinator_group_generation", group="billing")] == 1
    assert shown[at("group_coordinator_group_lag_records", group="billing")] == lag
    assert shown[at("group_coordinator_group_max_lag_records", group="billing")] == lag
    assert shown[at("group_coordinator_group_max_lag_seconds", group="billing")] > 0
    assert shown[at("group_coordinator_committed_offset", **place, partition="0")] == COMMITTED
    assert shown[at("group_coordinator_lag_records", **place, partition="0")] == lag
    assert shown[at("group_coordinator_lag_records", **place, partition="1")] == 0
    assert shown[at("group_coordinator_lag_seconds", **place, partition="0")] > 0
    assert shown[at("group_coordinator_lag_seconds", **place, partition="1")] == 0
    assert total(shown, "group_coordinator_groups_by_lag_verdict") == 2
    assert shown[at("group_coordinator_group_lag_records", group=OUTSIDE)] == 0


def test_what_kafka_exporter_shows_is_shown(shown: Samples) -> None:
    """Its names and labels, as its source has them."""
    of_topic, place = {"topic": "orders"}, {"topic": "orders", "partition": "0"}
    group, lag = {"consumergroup": "billing"}, RECORDS - COMMITTED
    assert shown[at("kafka_brokers")] == 1
    assert sum(1 for name, _ in shown if name == "kafka_broker_info") == 1
    assert shown[at("kafka_topic_partitions", **of_topic)] == 2
    assert shown[at("kafka_topic_partitions", topic="__consumer_offsets")] == 50
    for name, value in {
        "kafka_topic_partition_current_offset": RECORDS,
        "kafka_topic_partition_oldest_offset": 0,
        "kafka_topic_partition_in_sync_replica": 1,
        "kafka_topic_partition_leader": 1,
        "kafka_topic_partition_leader_is_preferred": 1,
        "kafka_topic_partition_replicas": 1,
        "kafka_topic_partition_under_replicated_partition": 0,
    }.items():
        assert shown[at(name, **place)] == value
    assert shown[at("kafka_consumergroup_members", **group)] == 1
    assert shown[at("kafka_consumergroup_current_offset", **group, **place)] == COMMITTED
    assert shown[at("kafka_consumergroup_current_offset_sum", **group, **of_topic)] == COMMITTED
    assert shown[at("kafka_consumergroup_lag", **group, **place)] == lag
    assert shown[at("kafka_consumergroup_lag_sum", **group, **of_topic)] == lag
    assert shown[at("kafka_consumergroup_members", consumergroup=OUTSIDE)] == 0


def test_what_kafka_lag_exporter_shows_is_shown(shown: Samples) -> None:
    """Its names and labels, as its documentation has them."""
    (cluster,) = {
        dict(labels)["cluster_name"]
        for name, labels in shown
        if name == "kafka_consumergroup_poll_time_ms"
    }
    lag = RECORDS - COMMITTED
    group = {"cluster_name": cluster, "group": "billing"}
    place = {"topic": "orders", "partition": "0"}
    assert len(cluster) > 10
    assert shown[at("kafka_partition_latest_offset", cluster_name=cluster, **place)] == RECORDS
    assert shown[at("kafka_partition_earliest_offset", cluster_name=cluster, **place)] == 0
    assert shown[at("kafka_consumergroup_group_max_lag", **group)] == lag
    assert shown[at("kafka_consumergroup_group_sum_lag", **group)] == lag
    assert shown[at("kafka_consumergroup_group_topic_sum_lag", **group, topic="orders")] == lag
    assert shown[at("kafka_consumergroup_group_max_lag_seconds", **group)] > 0
    owned = {
        name: (dict(labels), value)
        for (name, labels), value in shown.items()
        if labels >= frozenset({**group, **place}.items())
    }
    assert owned.keys() == {
        "kafka_consumergroup_group_offset",
        "kafka_consumergroup_group_lag",
        "kafka_consumergroup_group_lag_seconds",
    }
    for labels, _ in owned.values():
        assert labels.keys() == {*group, *place, "member_host", "consumer_id", "client_id"}
        assert labels["client_id"] == "clerk"
        assert labels["consumer_id"].startswith("clerk-")
        assert labels["member_host"] == "/127.0.0.1"
    assert owned["kafka_consumergroup_group_offset"][1] == COMMITTED
    assert owned["kafka_consumergroup_group_lag"][1] == lag
    assert owned["kafka_consumergroup_group_lag_seconds"][1] > 0


# What this traffic has no sample of, and where it is shown instead.
WITHOUT_SAMPLES = {
    "group_coordinator_group_troubles",  # likewise: tests/broker/metrics/test_verdicts.py
    "group_coordinator_lag_verdict",  # all is well: tests/broker/metrics/test_labelled.py
    # There is no TLS: tests/broker/test_secured_listeners.py
    "rollcall_certificate_expiry_timestamp_seconds",
    # There are no quotas: tests/broker/test_client_quotas.py
    *(family.name for family in declared(vars(client_quotas)) if family.labels),
}


def test_every_family_is_there_with_its_labels_and_no_other(shown: Samples) -> None:
    declared_labels = {family.name: set(family.labels) for family in all_families()}
    seen: dict[str, set[str]] = {}
    for name, labels in shown:
        base = name
        for ending in ("_bucket", "_count", "_sum"):
            if name not in declared_labels:
                base = name.removesuffix(ending) if name.endswith(ending) else base
        assert base in declared_labels, f"{name} is not declared"
        seen[base] = {key for key, _ in labels} - {"le"}
        assert seen[base] == declared_labels[base], base
    assert declared_labels.keys() - seen.keys() <= WITHOUT_SAMPLES


def test_openmetrics_is_given_to_whoever_prefers_it(busy: Daemon) -> None:
    text, headers = fetch(busy, "application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
    assert headers["content-type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    families = {family.name: family for family in parse_openmetrics(text)}
    assert families["rollcall_requests"].type == "counter"
    assert families["rollcall_build"].type == "info"
    assert families["group_coordinator_rebalance_seconds"].unit == "seconds"
    groups = {
        sample.labels["group"] for sample in families["group_coordinator_group_state"].samples
    }
    assert groups == {"billing", OUTSIDE}


@pytest.mark.usefixtures("shown")  # by now there is nothing more to come
def test_a_compressed_answer_says_the_same_names(busy: Daemon) -> None:
    packed, headers = fetch(busy, encoding="gzip")
    assert headers["content-encoding"] == "gzip"
    assert headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    plain, headers = fetch(busy)
    assert "content-encoding" not in headers
    # But for a verdict that came between the two: nobody commits any more.
    names = [{name for name, _ in samples(text)} for text in (packed, plain)]
    assert names[0] ^ names[1] <= WITHOUT_SAMPLES
    assert len(names[0]) > 100


def test_no_sample_is_written_twice(busy: Daemon) -> None:
    lines = [line for line in fetch(busy)[0].splitlines() if line and not line.startswith("#")]
    names = [line.rpartition(" ")[0] for line in lines]
    assert len(names) == len(set(names))
    # And the samples of a family stand together, below its header.
    heads = [line.split()[2] for line in fetch(busy)[0].splitlines() if line.startswith("# TYPE")]
    assert len(heads) == len(set(heads))


def test_aliases_are_a_choice_and_the_cluster_has_the_name_that_it_is_given(
    start_daemon: StartDaemon,
) -> None:
    ours = {family.name for family in declared(vars(kafka_lag_exporter))}
    exporters = {family.name for family in declared(vars(kafka_exporter))}
    daemon = start_daemon(
        {
            "rollcall.metrics.aliases": "kafka-lag-exporter",
            "rollcall.metrics.cluster.name": 'blue "2"',
        }
    )
    names = samples(fetch(daemon)[0])
    assert at("kafka_consumergroup_poll_time_ms", cluster_name='blue "2"') in names
    assert not exporters & {name for name, _ in names}

    none = start_daemon({"rollcall.metrics.aliases": ""}, name="none")
    assert not (ours | exporters) & {name for name, _ in samples(fetch(none)[0])}


def test_limits_are_kept_and_reported(start_daemon: StartDaemon) -> None:
    daemon = start_daemon(
        {
            **TEST_SETTINGS,
            "rollcall.metrics.groups.max": "2",
            "rollcall.metrics.partitions.max": "3",
        }
    )
    servers = {"bootstrap.servers": daemon.bootstrap}
    create(daemon, "t", 5)
    producer = Producer(servers)
    for number in range(5):
        producer.produce("t", value="x", partition=number)
    assert producer.flush(60) == 0
    for number in range(5):
        consumer = Consumer({**servers, "group.id": f"g{number}"})
        # The later the group, the further it is behind: 0 to 4 records.
        offsets = [TopicPartition("t", place, int(place >= number)) for place in range(5)]
        consumer.commit(offsets=offsets, asynchronous=False)
        consumer.close()

    shown = samples(fetch(daemon)[0])
    groups = {dict(labels)["group"] for name, labels in shown if name.endswith("_group_state")}
    assert groups == {"g3", "g4"}
    rows = [dict(labels) for name, labels in shown if name == "group_coordinator_lag_records"]
    assert len(rows) == 3
    assert {row["group"] for row in rows} == {"g4"}
    assert shown[at("rollcall_metrics_groups_left_out")] == 3
    assert shown[at("rollcall_metrics_left_out_lag_records")] == 0 + 1 + 2
    assert shown[at("rollcall_metrics_partitions_left_out")] == 25 - 3
    of_topics = [labels for name, labels in shown if name == "rollcall_partition_end_offset"]
    assert len(of_topics) == 3
    total = shown[at("rollcall_topic_partitions")]
    assert shown[at("rollcall_metrics_topic_partitions_left_out")] == total - 3
