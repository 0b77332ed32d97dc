"""ListGroups: which groups pass the filters."""

import pytest

from coordinator.classic.group import ClassicGroup
from coordinator.list_groups import list_groups
from protocol.messages.list_groups import ListedGroup
from protocol.names import GroupId, GroupState
from tests.coordinator.offset_givens import given_group


def named(group_id: str, group: ClassicGroup) -> ClassicGroup:
    group.group_id = GroupId(group_id)
    return group


GROUPS = [
    named("simple", given_group(GroupState.EMPTY, None)),
    named("empty", given_group(GroupState.EMPTY)),
    named("preparing", given_group(GroupState.PREPARING_REBALANCE)),
    named("completing", given_group(GroupState.COMPLETING_REBALANCE)),
    named("connect", given_group(GroupState.STABLE, "connect")),
]
EVERYTHING = ["simple", "empty", "preparing", "completing", "connect"]


@pytest.mark.parametrize(
    ("states", "types", "expected"),
    [
        ([], [], EVERYTHING),
        (["Stable"], [], ["connect"]),
        (["stable"], [], ["connect"]),
        (["STABLE", "empty"], [], ["simple", "empty", "connect"]),
        ([" PreparingRebalance "], [], ["preparing"]),
        (["completingrebalance"], [], ["completing"]),
        (["Dead"], [], []),
        (["Assigning"], [], []),
        (["no such state"], [], []),
        ([""], [], []),
        ([], ["classic"], EVERYTHING),
        ([], ["Classic"], EVERYTHING),
        ([], ["consumer"], []),
        ([], ["consumer", "CLASSIC"], EVERYTHING),
        ([], [" classic"], []),
        ([], ["no such type"], []),
        (["stable"], ["consumer"], []),
        (["stable"], ["classic"], ["connect"]),
    ],
)
def test_filters_ignore_case_and_what_they_do_not_know_matches_nothing(
    states: list[str], types: list[str], expected: list[str]
) -> None:
    assert [group.group_id for group in list_groups(GROUPS, states, types)] == expected


def test_a_group_is_listed_with_its_protocol_type_and_its_state() -> None:
    listed = {group.group_id: group for group in list_groups(GROUPS, [], [])}

    assert listed[GroupId("simple")] == ListedGroup(GroupId("simple"), "", "Empty", "classic")
    assert listed[GroupId("connect")] == ListedGroup(
        GroupId("connect"), "connect", "Stable", "classic"
    )
    assert listed[GroupId("preparing")].group_state == "PreparingRebalance"
