"""Measures of quotas: how many are kept, and for how long. And connections by address."""

import sys

from security.quotas.client_quotas import (
    MEASURE_IDLE_MS,
    ClientQuota,
    ConnectionRates,
    MutationQuota,
)
from security.quotas.limits import (
    ABSENT,
    DEFAULT_ENTITY,
    ENTITY_NAME_MAX,
    UNLIMITED,
    QuotaKey,
    client_limits,
    ip_limits,
    limits_of_key,
)
from security.quotas.rate import QuotaWindow

NOW_MS = 1_000_000


def quota(measures_max: int = 3) -> ClientQuota:
    made = ClientQuota(QuotaWindow(), measures_max)
    made.use(client_limits({(ABSENT, DEFAULT_ENTITY): 10.0}))
    return made


def counted(made: ClientQuota) -> list[str]:
    return [client_id for (_, client_id), _ in made.measures.newest_first()][::-1]


def test_the_least_recently_used_measure_is_forgotten_beyond_the_limit() -> None:
    made = quota(measures_max=3)
    for client_id in ("a", "b", "c"):
        made.record("amy", client_id, 1.0, NOW_MS)
    made.record("amy", "a", 1.0, NOW_MS)

    made.record("amy", "d", 1.0, NOW_MS)

    assert counted(made) == ["c", "a", "d"]


def test_a_measure_that_was_idle_for_an_hour_is_forgotten() -> None:
    made = quota()
    made.record("amy", "a", 1.0, NOW_MS)
    made.record("amy", "b", 1.0, NOW_MS + 1)

    made.measures.expire(NOW_MS + MEASURE_IDLE_MS - 1)
    assert counted(made) == ["a", "b"]
    made.measures.expire(NOW_MS + MEASURE_IDLE_MS)
    assert counted(made) == ["b"]


def test_a_window_of_one_sample_leaves_others_unlimited() -> None:
    made = ClientQuota(QuotaWindow(samples=1), 3)
    made.use(client_limits({(ABSENT, "a"): 10.0}))
    assert made.max_in_window("amy", "a", NOW_MS) == 0.0
    assert made.max_in_window("amy", "b", NOW_MS) == UNLIMITED


def test_a_long_client_id_is_kept_in_part() -> None:
    made = quota()
    made.record("amy", "a" * 32_767, 5.0, NOW_MS)
    made.record("amy", "a" * ENTITY_NAME_MAX, 5.0, NOW_MS)
    assert counted(made) == ["a" * ENTITY_NAME_MAX]


def test_without_a_quota_nothing_is_counted() -> None:
    made = quota()
    made.use(client_limits({}))

    assert made.record("amy", "a", 1e9, NOW_MS) == 0
    assert made.max_in_window("amy", "a", NOW_MS) == UNLIMITED
    assert len(made.measures) == 0


def test_a_quota_that_is_changed_holds_for_what_was_counted_before() -> None:
    made = quota()
    assert made.record("amy", "a", 100.0, NOW_MS) == 0

    made.use(client_limits({(ABSENT, "a"): 5.0}))

    assert made.record("amy", "a", 0.0, NOW_MS) == 10_000


def test_a_tiny_quota_throttles_for_as_long_as_an_answer_can_say() -> None:
    tiny = client_limits({(ABSENT, "a"): sys.float_info.min / 2})
    rate, mutations = quota(), MutationQuota(QuotaWindow(), 3)
    rate.use(tiny)
    mutations.use(tiny)

    assert rate.record("amy", "a", 100.0, NOW_MS) == 2**31 - 1
    assert mutations.record("amy", "a", 100.0, NOW_MS, is_strict=True) == (True, 0)
    assert mutations.record("amy", "a", 100.0, NOW_MS, is_strict=True) == (False, 2**31 - 1)


def test_the_quotas_of_one_kind_are_taken_from_the_table() -> None:
    table = {
        (("user", "amy"),): {"producer_byte_rate": 1.0, "request_percentage": 2.0},
        (("client-id", None), ("user", None)): {"producer_byte_rate": 3.0},
        (("ip", None),): {"connection_creation_rate": 4.0},
        (("ip", "10.0.0.1"),): {"connection_creation_rate": 5.0},
    }

    assert limits_of_key(table, QuotaKey.PRODUCE).by_entity == {
        ("amy", ABSENT): 1.0,
        (DEFAULT_ENTITY, DEFAULT_ENTITY): 3.0,
    }
    assert limits_of_key(table, QuotaKey.FETCH).is_empty
    assert ip_limits(table).limit("10.0.0.1") == 5.0
    assert ip_limits(table).limit("10.0.0.2") == 4.0


def test_connections_of_one_address_are_refused_beyond_their_rate_and_not_counted_then() -> None:
    rates = ConnectionRates(QuotaWindow(), measures_max=10)
    rates.use(ip_limits({(("ip", "10.0.0.1"),): {"connection_creation_rate": 1.0}}))

    throttles = [rates.record("10.0.0.1", NOW_MS) for _ in range(12)]

    assert throttles[:10] == [0] * 10  # the windows of ten seconds
    assert throttles[10:] == [1_000, 1_000]
    assert rates.record("10.0.0.2", NOW_MS) == 0
    assert rates.record("10.0.0.1", NOW_MS + 11_000) == 0
