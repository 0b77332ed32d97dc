"""On purpose: the fuzz of consumer groups leaves out these steps, and none that are like them."""

import pytest

from protocol.messages.consumer_group_describe import (
    DescribedConsumerGroup,
    DescribedConsumerMember,
)
from protocol.names import ErrorCode, GroupInstanceId, GroupState, MemberId
from tests.compare.on_purpose import Fields, is_left_out

JOIN: Fields = {"epoch": 0, "topics": ["t0"]}


def described(
    *, state: GroupState = GroupState.STABLE, is_due: bool = False, is_there: bool = True
) -> DescribedConsumerGroup:
    """A group of the members a, and b with the instance id ib."""
    return DescribedConsumerGroup(
        error_code=ErrorCode.NONE if is_there else ErrorCode.GROUP_ID_NOT_FOUND,
        group_state=state,
        group_epoch=4 if is_due else 3,
        assignment_epoch=3,
        members=[
            DescribedConsumerMember(MemberId("a")),
            DescribedConsumerMember(MemberId("b"), GroupInstanceId("ib")),
        ],
    )


EMPTY = described(state=GroupState.EMPTY)
DUE = described(is_due=True)


@pytest.mark.parametrize(
    ("op", "fields", "member_id", "group"),
    [
        ("join", {}, "z", EMPTY),
        ("join", {"protocols": [("range", [], [])]}, "z", DUE),
        ("beat", JOIN | {"instance": "other"}, "b", described()),
        ("beat", JOIN | {"instance": "other"}, "a", described()),
        ("beat", JOIN | {"topics": []}, "z", DUE),
        ("beat", JOIN | {"topics": None, "regex": "t.*"}, "z", DUE),
        ("beat", {"epoch": 3, "regex": "t.*"}, "a", DUE),
    ],
)
def test_what_differs_on_purpose_is_left_out(
    op: str, fields: Fields, member_id: str, group: DescribedConsumerGroup
) -> None:
    assert is_left_out(op, fields, MemberId(member_id), group)


@pytest.mark.parametrize(
    ("op", "fields", "member_id", "group"),
    [
        ("join", {}, "", EMPTY),
        ("join", {"protocols": [("range", ["t0"], [])]}, "z", DUE),
        ("join", {"protocols": [("range", [], [])]}, "a", DUE),
        ("join", {"protocols": [("range", [], [])], "instance_id": "ib"}, "", DUE),
        ("join", {"protocols": [("range", [], [])]}, "z", described()),
        ("join", {"protocols": []}, "z", described(state=GroupState.EMPTY, is_there=False)),
        ("beat", JOIN | {"instance": "ib"}, "b", DUE),
        ("beat", JOIN | {"instance": "ib"}, "z", DUE),
        ("beat", JOIN | {"instance": "other"}, "z", DUE),
        ("beat", JOIN, "z", DUE),
        ("beat", JOIN | {"topics": []}, "a", DUE),
        ("beat", JOIN | {"topics": []}, "z", described()),
        ("beat", {"epoch": 3}, "a", DUE),
        ("leave", {}, "z", EMPTY),
    ],
)
def test_what_is_like_it_is_compared(
    op: str, fields: Fields, member_id: str, group: DescribedConsumerGroup
) -> None:
    assert not is_left_out(op, fields, MemberId(member_id), group)
