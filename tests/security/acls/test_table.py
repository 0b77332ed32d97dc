"""ACL table: the index answers as a search through all entries would."""

from hypothesis import given
from hypothesis import strategies as st

from protocol.acl_codes import AclOperation, PatternType, PermissionType, ResourceType
from security.acls.entry import WILDCARD, Acl, AclFilter, code_of
from security.acls.prefix_index import PrefixIndex
from security.acls.table import AclTable

ALLOW, DENY = PermissionType.ALLOW, PermissionType.DENY
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
READ, DESCRIBE = AclOperation.READ, AclOperation.DESCRIBE

NAMES = st.text("ab*", min_size=1, max_size=4)
OPERATIONS = st.sampled_from([READ, DESCRIBE, AclOperation.ALL])
ACLS = st.builds(
    Acl,
    st.sampled_from([TOPIC, GROUP]),
    st.sampled_from([LITERAL, PREFIXED]),
    NAMES,
    st.sampled_from(["User:amy", "User:bob", "User:*"]),
    st.sampled_from(["10.0.0.1", "*"]),
    OPERATIONS,
    st.sampled_from([ALLOW, DENY]),
)


def entry(
    name: str,
    operation: AclOperation = READ,
    *,
    pattern_type: PatternType = LITERAL,
    permission: PermissionType = ALLOW,
    principal: str = "User:amy",
    host: str = "*",
) -> Acl:
    return Acl(TOPIC, pattern_type, name, principal, host, operation, permission)


def searched(acls: list[Acl], operation: AclOperation, name: str) -> bool:
    """What User:amy at 10.0.0.1 may do to a topic, by reading every entry."""
    about = [
        acl
        for acl in acls
        if acl.resource_type is TOPIC
        and (
            name.startswith(acl.name)
            if acl.pattern_type is PREFIXED
            else acl.name == name or (acl.name == WILDCARD and not name.startswith(WILDCARD))
        )
        and acl.principal != "User:bob"
    ]
    denying = {operation, AclOperation.ALL}
    allowing = denying | ({READ} if operation is DESCRIBE else set())
    return any(acl.operation in allowing for acl in about if acl.permission is ALLOW) and not any(
        acl.operation in denying for acl in about if acl.permission is DENY
    )


@given(st.lists(ACLS), st.lists(ACLS), st.lists(st.tuples(OPERATIONS, NAMES), max_size=9))
def test_the_index_finds_what_a_search_finds(
    added: list[Acl], removed: list[Acl], asked: list[tuple[AclOperation, str]]
) -> None:
    table = AclTable()
    table.change(added, ())
    table.change((), removed)
    there = [acl for acl in dict.fromkeys(added) if acl not in removed]
    assert list(table) == there
    assert len(table) == len(there)
    for operation, name in asked:
        assert table.allows("User:amy", "10.0.0.1", operation, TOPIC, name) == searched(
            there, operation, name
        )


@given(st.lists(ACLS))
def test_an_emptied_table_keeps_nothing(acls: list[Acl]) -> None:
    table = AclTable(allows_without_acl=True)
    table.change(acls, ())
    table.change((), acls)
    # With an index that was left over, the default would not count any more.
    for name in ("a", "ab", "b*", "*"):
        assert table.allows("User:amy", "10.0.0.1", READ, TOPIC, name)
        assert table.allows_any("User:amy", "10.0.0.1", READ, TOPIC)
    assert vars(table)["_by_subject"] == {}


@given(st.sets(st.text("abc", min_size=1, max_size=5)), st.text("abc", max_size=6))
def test_prefixes_are_found(prefixes: set[str], name: str) -> None:
    index = PrefixIndex()
    for prefix in prefixes:
        index.add(prefix)
        index.add(prefix)
    longest_first = sorted(filter(name.startswith, prefixes), key=len, reverse=True)
    assert list(index.prefixes_of(name)) == longest_first
    for prefix in longest_first:
        index.remove(prefix)
        index.remove(prefix)
    assert list(index.prefixes_of(name)) == []
    assert len(index) == len(prefixes) - len(longest_first)


def test_deny_describe_does_not_forbid_to_read() -> None:
    table = AclTable()
    table.change([entry("a"), entry("a", DESCRIBE, permission=DENY)], ())
    assert table.allows("User:amy", "h", READ, TOPIC, "a")
    assert not table.allows("User:amy", "h", DESCRIBE, TOPIC, "a")


def test_deny_read_leaves_the_describe_that_write_implies() -> None:
    table = AclTable()
    table.change([entry("a", AclOperation.WRITE), entry("a", permission=DENY)], ())
    assert table.allows("User:amy", "h", DESCRIBE, TOPIC, "a")


def test_the_default_is_for_resources_without_any_entry() -> None:
    table = AclTable(allows_without_acl=True)
    table.change([entry("a", principal="User:bob")], ())
    assert not table.allows("User:amy", "h", READ, TOPIC, "a")
    assert table.allows("User:amy", "h", READ, TOPIC, "b")
    assert table.allows("User:amy", "h", READ, GROUP, "a")


def test_no_operation_implies_all() -> None:
    table = AclTable()
    table.change([entry("a")], ())
    assert not table.allows("User:amy", "h", AclOperation.ALL, TOPIC, "a")
    table.change([entry("a", AclOperation.ALL)], ())
    assert table.allows("User:amy", "h", AclOperation.ALL, TOPIC, "a")


def test_a_prefixed_asterisk_is_a_name() -> None:
    table = AclTable()
    table.change([entry("*", pattern_type=PREFIXED)], ())
    assert not table.allows("User:amy", "h", READ, TOPIC, "a")
    assert table.allows("User:amy", "h", READ, TOPIC, "*a")


def test_names_before_the_asterisk_are_found() -> None:
    # Kafka's search for these does not end, or fails.
    table = AclTable()
    table.change([entry("!ab"), entry("!a", pattern_type=PREFIXED), entry("*")], ())
    assert table.allows("User:amy", "h", READ, TOPIC, "!ac")
    assert table.allows("User:amy", "h", READ, TOPIC, "!b")


def test_of_any_resource_a_dominating_deny_counts() -> None:
    table = AclTable()
    table.change([entry("orders"), entry("orders", permission=DENY)], ())
    assert not table.allows_any("User:amy", "h", READ, TOPIC)
    table.change([entry("pay", pattern_type=PREFIXED)], ())
    assert table.allows_any("User:amy", "h", READ, TOPIC)
    table.change([entry("p", pattern_type=PREFIXED, permission=DENY, principal="User:*")], ())
    assert not table.allows_any("User:amy", "h", READ, TOPIC)


def test_a_filter_by_match_finds_what_applies_to_a_resource() -> None:
    acls = [entry("ab"), entry("a", pattern_type=PREFIXED), entry("*"), entry("abc")]
    matching = AclFilter(TOPIC, PatternType.MATCH, "ab")
    assert [acl for acl in acls if matching.matches(acl)] == acls[:3]
    assert [acl for acl in acls if AclFilter(TOPIC, PatternType.ANY, "ab").matches(acl)] == acls[:1]
    assert all(AclFilter(pattern_type=PatternType.MATCH).matches(acl) for acl in acls)


def test_a_code_of_a_later_version_is_unknown() -> None:
    assert code_of(AclOperation, 3) is READ
    assert code_of(AclOperation, 99) is AclOperation.UNKNOWN
    assert code_of(PatternType, -1) is PatternType.UNKNOWN
