"""ACLs: CreateAcls, DescribeAcls, DeleteAcls, and the file of the entries."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.acl_codes import AclOperation, PatternType, PermissionType, ResourceType
from protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from protocol.names import ErrorCode, GroupId
from seams.principal import ANONYMOUS, Principal
from seams.reply_token import ReplyToken
from security.acls.authorizer import AclAuthorizer
from security.acls.entry import Acl
from storage.api import NewerFormat
from tests.topics.held_io import HeldIo
from tests.topics.plane import Plane
from topics.acl_store import AclsDamaged
from topics.events import AclsChanged, AclsLost, SaveFailed

OK, INVALID = ErrorCode.NONE, ErrorCode.INVALID_REQUEST
AMY = ReplyToken(0, "client", "/10.0.0.1", Principal("User", "amy"))
EVERYTHING = DescribeAclsRequest(1, None, 1, None, None, 1, 1)


def on_group(name: str = "g", operation: int = AclOperation.READ, **fields: object) -> AclCreation:
    creation = AclCreation(ResourceType.GROUP, name, 3, "User:amy", "*", operation, 3)
    for field, value in fields.items():
        setattr(creation, field, value)
    return creation


READ_G = Acl(
    ResourceType.GROUP,
    PatternType.LITERAL,
    "g",
    "User:amy",
    "*",
    AclOperation.READ,
    PermissionType.ALLOW,
)


@pytest.fixture
def plane() -> Plane:
    return Plane(authorizer=AclAuthorizer(frozenset({ANONYMOUS})))


def create(plane: Plane, *creations: AclCreation) -> list[tuple[ErrorCode, str | None]]:
    answer = plane.ask(CreateAclsRequest(creations), 3, CreateAclsResponse)
    return [(result.error_code, result.error_message) for result in answer.results]


def delete(plane: Plane, *filters: DeleteAclsFilter) -> list[DeleteAclsFilterResult]:
    return list(plane.ask(DeleteAclsRequest(filters), 3, DeleteAclsResponse).filter_results)


def of_groups(name: str | None = None, pattern_type: int = 1) -> DeleteAclsFilter:
    return DeleteAclsFilter(ResourceType.GROUP, name, pattern_type, None, None, 1, 1)


def listed(plane: Plane, request: DescribeAclsRequest = EVERYTHING) -> list[tuple]:
    answer = plane.ask(request, 3, DescribeAclsResponse)
    assert (answer.error_code, answer.error_message) == (OK, "")
    return [
        (resource.resource_name, acl.principal, acl.operation)
        for resource in answer.resources
        for acl in resource.acls
    ]


def may_read(plane: Plane, name: str = "g") -> bool:
    return plane.authorizer.may_read_group(AMY, GroupId(name))


def test_an_entry_is_in_effect_when_it_was_answered(plane: Plane) -> None:
    assert not may_read(plane)
    assert create(plane, on_group()) == [(OK, "")]
    assert may_read(plane)
    assert listed(plane) == [("g", "User:amy", AclOperation.READ)]
    (result,) = delete(plane, of_groups("g"))
    assert (result.error_code, result.error_message) == (OK, None)
    assert [(acl.principal, acl.error_message) for acl in result.matching_acls] == [
        ("User:amy", None)
    ]
    assert not may_read(plane)
    assert listed(plane) == []


def test_entries_survive_a_restart_and_a_kill(plane: Plane) -> None:
    create(plane, on_group(), on_group("other", AclOperation.ALL))
    plane.restart()
    assert may_read(plane)
    plane.stop()
    plane.restart()
    assert len(listed(plane)) == 2
    delete(plane, of_groups("g"))
    plane.restart()
    assert not may_read(plane)


def test_a_change_names_who_made_it(plane: Plane) -> None:
    create(plane, on_group())
    delete(plane, of_groups())
    assert plane.events_of(AclsChanged) == [
        AclsChanged((READ_G,), (), ANONYMOUS, "a-client", "/127.0.0.1"),
        AclsChanged((), (READ_G,), ANONYMOUS, "a-client", "/127.0.0.1"),
    ]


def test_an_entry_that_is_there_is_not_written_again(plane: Plane) -> None:
    assert create(plane, on_group(), on_group()) == [(OK, "")] * 2
    assert create(plane, on_group()) == [(OK, "")]
    assert plane.acls_file.saves == 1
    assert len(listed(plane)) == 1
    assert create(plane) == []
    assert delete(plane) == []
    assert plane.acls_file.saves == 1


REFUSED = {
    "Invalid empty resource name": on_group(""),
    "The only valid name for the CLUSTER resource is kafka-cluster": on_group(
        resource_type=ResourceType.CLUSTER
    ),
    "Could not parse principal from `amy` (no colon is present separating the principal type from "
    "the principal name)": on_group(principal="amy"),
    "Invalid resourceType UNKNOWN": on_group(resource_type=99),
    "Invalid patternType UNKNOWN": on_group(resource_pattern_type=99),
    "Invalid operation UNKNOWN": on_group(operation=99),
    "Invalid permissionType UNKNOWN": on_group(permission_type=99),
    "A name, a principal or a host is longer than a string may be": on_group("g" * 32_768),
}


@pytest.mark.parametrize("text", list(REFUSED))
def test_good_entries_are_created_beside_a_bad_one(plane: Plane, text: str) -> None:
    assert create(plane, REFUSED[text], on_group()) == [(INVALID, text), (OK, "")]
    assert [name for name, *_ in listed(plane)] == ["g"]


@pytest.mark.parametrize(
    "bad",
    [
        on_group(operation=1),
        on_group(permission_type=1),
        on_group(resource_type=1),
        on_group(resource_pattern_type=1),
        on_group(resource_pattern_type=2),
    ],
)
def test_a_code_of_filters_fails_the_whole_request(plane: Plane, bad: AclCreation) -> None:
    assert create(plane, bad, on_group()) == [(ErrorCode.UNKNOWN_SERVER_ERROR, None)] * 2
    assert listed(plane) == []


@pytest.mark.parametrize(
    "request_",
    [
        CreateAclsRequest([on_group(), on_group(operation=0)]),
        CreateAclsRequest([on_group(permission_type=0)]),
        DescribeAclsRequest(0, None, 1, None, None, 1, 1),
        DescribeAclsRequest(1, None, 0, None, None, 1, 1),
        DeleteAclsRequest([of_groups(), DeleteAclsFilter(1, None, 1, None, None, 0, 1)]),
        DeleteAclsRequest([DeleteAclsFilter(1, None, 1, None, None, 1, 0)]),
    ],
)
def test_the_code_for_unknown_closes_the_connection(
    plane: Plane, request_: CreateAclsRequest | DescribeAclsRequest | DeleteAclsRequest
) -> None:
    for each in (plane, Plane()):
        token = each.send(request_, 3)
        assert each.closed_connections == [token]
        assert not each.answered(token)
    assert listed(plane) == []


def test_a_filter_of_a_later_version_finds_nothing(plane: Plane) -> None:
    create(plane, on_group())
    assert listed(plane, DescribeAclsRequest(99, None, 1, None, None, 1, 1)) == []
    assert listed(plane, DescribeAclsRequest(1, None, 99, None, None, 1, 1)) == []
    results = delete(
        plane,
        DeleteAclsFilter(99, None, 1, None, None, 1, 1),
        DeleteAclsFilter(1, None, 1, None, None, 99, 1),
        of_groups("other"),
    )
    assert [(each.error_code, each.error_message) for each in results] == [
        (INVALID, "Unknown patternFilter."),
        (INVALID, "Unknown entryFilter."),
        (OK, None),
    ]
    assert may_read(plane)


def test_two_filters_may_find_the_same_entry(plane: Plane) -> None:
    create(plane, on_group(), on_group("h"))
    results = delete(plane, of_groups("g"), of_groups())
    assert [len(result.matching_acls) for result in results] == [1, 2]
    assert listed(plane) == []


def test_a_filter_by_match_finds_prefixes_and_the_wildcard(plane: Plane) -> None:
    create(plane, on_group("orders"), on_group("or", resource_pattern_type=4), on_group("*"))
    create(plane, on_group("order"))
    asked = DescribeAclsRequest(ResourceType.GROUP, "orders", PatternType.MATCH, None, None, 1, 1)
    assert [name for name, *_ in listed(plane, asked)] == ["orders", "or", "*"]


def test_entries_of_one_pattern_are_described_together(plane: Plane) -> None:
    create(plane, on_group(), on_group("h"), on_group(principal="User:bob"))
    answer = plane.ask(EVERYTHING, 1, DescribeAclsResponse)
    assert [(each.resource_name, len(each.acls)) for each in answer.resources] == [
        ("g", 2),
        ("h", 1),
    ]


def test_the_number_of_entries_is_limited(plane: Plane) -> None:
    plane.acls_max = 2
    plane.restart()
    creations = [on_group(name) for name in ("a", "b", "c")]
    full = (
        ErrorCode.POLICY_VIOLATION,
        "There may be at most 2 ACLs (rollcall.acls.max).",
    )
    assert create(plane, *creations) == [(OK, ""), (OK, ""), full]
    assert create(plane, on_group("a"), on_group("d")) == [(OK, ""), full]
    delete(plane, of_groups("a"))
    assert create(plane, on_group("d")) == [(OK, "")]


def test_a_limit_below_what_is_stored_drops_nothing(plane: Plane) -> None:
    create(plane, on_group("a"), on_group("b"))
    plane.acls_max = 1
    plane.restart()
    assert len(listed(plane)) == 2
    assert create(plane, on_group("c"))[0][0] is ErrorCode.POLICY_VIOLATION


def test_a_failed_save_changes_nothing(plane: Plane) -> None:
    full = OSError(28, "No space left on device")
    plane.acls_file.fail_next = full
    failed = (ErrorCode.KAFKA_STORAGE_ERROR, "The disk refused: No space left on device")
    assert create(plane, on_group(), on_group("")) == [
        failed,
        (INVALID, "Invalid empty resource name"),
    ]
    assert not may_read(plane)
    create(plane, on_group())
    plane.acls_file.fail_next = full
    deleted, unmatched = delete(plane, of_groups("g"), of_groups("h"))
    assert (deleted.error_code, deleted.error_message) == failed
    assert list(deleted.matching_acls) == []
    assert unmatched.error_code is OK
    assert may_read(plane)
    assert [event.what for event in plane.events_of(SaveFailed)] == ["ACLs"] * 2
    plane.restart()
    assert may_read(plane)


def test_nothing_is_in_effect_or_answered_before_it_is_saved() -> None:
    admin = HeldIo()
    plane = Plane(authorizer=AclAuthorizer(frozenset({ANONYMOUS})), admin=admin)
    token = plane.send(CreateAclsRequest([on_group()]), 3)
    assert not may_read(plane)
    assert not plane.answered(token)
    admin.run()
    assert plane.answered(token)
    assert may_read(plane)


def test_without_the_right_nothing_changes(plane: Plane) -> None:
    plane.authorizer = AclAuthorizer()
    plane.restart()
    refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert create(plane, on_group())[0][0] is refused
    assert delete(plane, of_groups())[0].error_code is refused
    assert plane.ask(EVERYTHING, 3, DescribeAclsResponse).error_code is refused
    assert plane.acls_file.content is None


def test_without_an_authorizer_there_are_no_acls() -> None:
    plane = Plane()
    disabled = ErrorCode.SECURITY_DISABLED
    assert create(plane, on_group()) == [(disabled, "No Authorizer is configured.")]
    assert delete(plane, of_groups())[0].error_code is disabled
    answer = plane.ask(EVERYTHING, 3, DescribeAclsResponse)
    assert answer.error_code is disabled
    assert answer.error_message == "No Authorizer is configured on the broker"


CREATIONS = st.builds(
    AclCreation,
    st.integers(1, 8),
    st.text(max_size=5) | st.just("kafka-cluster"),
    st.integers(1, 5),
    st.text(max_size=5).map(lambda name: f"User:{name}") | st.text(max_size=5),
    st.text(max_size=5),
    st.integers(1, 16),
    st.integers(1, 4),
)


@given(st.lists(CREATIONS, max_size=8))
def test_what_was_created_is_there_after_a_restart(creations: list[AclCreation]) -> None:
    plane = Plane(authorizer=AclAuthorizer(frozenset({ANONYMOUS})))
    for creation in creations:
        create(plane, creation)
    assert plane.acls is not None
    before = list(plane.acls.acls)
    plane.restart()
    assert list(plane.acls.acls) == before
    assert len(listed(plane)) == len(before)


def entry(**fields: object) -> dict[str, object]:
    return {
        "resource_type": "GROUP",
        "pattern_type": "LITERAL",
        "name": "g",
        "principal": "User:amy",
        "host": "*",
        "operation": "READ",
        "permission": "DENY",
        **fields,
    }


DAMAGES = {
    "half a file": b'{"format": 1, "acls": [',
    "no entries": b'{"format": 1}',
    "no list": b'{"format": 1, "acls": 3}',
    "no object": b'{"format": 1, "acls": [1]}',
    "a bad checksum": b'{"format": 1, "acls": [], "crc32": 1}',
    **{
        f"{field} {value!r}": json.dumps({"format": 1, "acls": [entry(**{field: value})]}).encode()
        for field, value in (
            ("resource_type", "ANY"),
            ("pattern_type", "MATCH"),
            ("operation", "UNKNOWN"),
            ("permission", "MAYBE"),
            ("name", ""),
            ("principal", "amy"),
            ("host", None),
        )
    },
}


@pytest.mark.parametrize("damage", list(DAMAGES))
def test_a_damaged_file_prevents_the_start_and_is_kept_by_a_repair(
    plane: Plane, damage: str
) -> None:
    plane.acls_file.content = DAMAGES[damage]
    with pytest.raises(AclsDamaged) as stopped:
        plane.restart()
    assert "--repair" in stopped.value.remedy
    plane.repair = True
    plane.restart()
    assert plane.acls is not None
    assert plane.acls.was_repaired
    assert plane.acls_file.kept == [DAMAGES[damage]]
    assert len(plane.events_of(AclsLost)) == 1
    plane.repair = False
    plane.restart()
    assert listed(plane) == []
    assert not may_read(plane)


def test_a_file_that_was_written_by_hand_is_read(plane: Plane) -> None:
    document = {"format": 1, "acls": [entry(host=""), entry(permission="ALLOW")]}
    plane.acls_file.content = json.dumps(document).encode()
    plane.restart()
    assert may_read(plane)  # the DENY is for a host that there is not


def test_a_file_of_a_newer_version_is_left_alone(plane: Plane) -> None:
    plane.acls_file.content = b'{"format": 2}'
    plane.repair = True
    with pytest.raises(NewerFormat):
        plane.restart()
