"""Audit folding: what repeats is a count, and no client fills the log or the memory."""

from broker.audit import folding
from broker.audit.entry import AuditEntry, AuditKind
from broker.audit.folding import AUDIT_INTERVAL_MS, AuditFolding


def refusal(resource: str = "Topic:LITERAL:t", host: str = "1.2.3.4") -> AuditEntry:
    return AuditEntry(AuditKind.REFUSED, "User:eve", host, operation="READ", resource=resource)


def test_a_repetition_is_one_entry_and_then_a_count_each_interval() -> None:
    fold = AuditFolding(AuditKind.REFUSED)
    assert fold.take(refusal(), 0) == refusal()
    assert [fold.take(refusal(), at) for at in (1, 2, 3)] == [None] * 3
    assert fold.next_deadline_ms == AUDIT_INTERVAL_MS
    assert fold.tick(AUDIT_INTERVAL_MS - 1) == []
    assert [entry.times for entry in fold.tick(AUDIT_INTERVAL_MS)] == [3]
    assert fold.take(refusal(), AUDIT_INTERVAL_MS + 1) is None
    assert [entry.times for entry in fold.tick(2 * AUDIT_INTERVAL_MS)] == [1]
    assert fold.tick(3 * AUDIT_INTERVAL_MS) == []
    assert fold.take(refusal(), 3 * AUDIT_INTERVAL_MS) == refusal()


def test_nothing_is_kept_of_what_is_over() -> None:
    fold = AuditFolding(AuditKind.REFUSED)
    for number in range(30):
        fold.take(refusal(str(number)), 0)
    fold.tick(AUDIT_INTERVAL_MS)
    assert (fold.sizes.entries, fold.sizes.clients) == (0, 0)
    assert fold.next_deadline_ms is None


def test_a_million_refusals_of_one_client_are_a_handful_of_entries() -> None:
    fold = AuditFolding(AuditKind.REFUSED)
    written = []
    for number in range(1_000_000):
        at_ms = number // 50  # in 20 seconds
        if number % 50_000 == 0:
            written += fold.tick(at_ms)
        entry = fold.take(refusal(), at_ms)
        written += [entry] if entry else []
    written += fold.finish()
    assert len(written) <= 4
    assert sum(entry.times for entry in written) == 1_000_000


def test_a_client_that_names_many_resources_gets_a_summary() -> None:
    fold = AuditFolding(AuditKind.REFUSED)
    most = folding.NAMED_PER_CLIENT_MAX[AuditKind.REFUSED]
    taken = [fold.take(refusal(str(number)), 0) for number in range(10_000)]
    assert len([entry for entry in taken if entry]) == most
    assert fold.take(refusal(host="5.6.7.8"), 0) is not None  # another client has its own room
    (summary,) = fold.tick(AUDIT_INTERVAL_MS)
    assert (summary.principal, summary.unnamed) == ("User:eve", 10_000 - most)


def test_many_clients_have_a_limit_together() -> None:
    fold = AuditFolding(AuditKind.REFUSED)
    taken = 0
    for number in range(20_000):
        taken += fold.take(refusal(str(number % 7), host=str(number // 7)), 0) is not None
    assert taken <= folding.AUDIT_ENTRIES_MAX
    assert fold.sizes.entries <= folding.AUDIT_ENTRIES_MAX
    assert fold.sizes.clients <= folding.AUDIT_CLIENTS_MAX + 1
    summaries = fold.tick(AUDIT_INTERVAL_MS)
    assert sum(entry.unnamed for entry in summaries) == 20_000 - taken


def test_one_that_fails_to_authenticate_is_known_by_its_host_alone() -> None:
    fold = AuditFolding(AuditKind.AUTHENTICATION_FAILED)
    entries = [
        AuditEntry(AuditKind.AUTHENTICATION_FAILED, f"User:{number}", "1.2.3.4")
        for number in range(1_000)
    ]
    taken = [fold.take(entry, 0) for entry in entries]
    most = folding.NAMED_PER_CLIENT_MAX[AuditKind.AUTHENTICATION_FAILED]
    assert len([entry for entry in taken if entry]) == most
