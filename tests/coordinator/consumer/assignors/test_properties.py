"""Built-in assignors: what holds for every group, whatever its members and topics."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from random import Random
from types import MappingProxyType
from uuid import UUID

import pytest
from msgspec.structs import replace

from coordinator.consumer.assignors.assignor import (
    Assignment,
    Assignor,
    AssignorFailed,
    AssignorInput,
    AssignorMember,
    AssignorTopic,
)
from coordinator.consumer.assignors.range_assignor import RangeAssignor
from coordinator.consumer.assignors.uniform import UniformAssignor
from protocol.names import MemberId, TopicId
from tests.coordinator.consumer.assignors.kafka_assignors import without_empty
from tests.coordinator.consumer.assignors.rolling_group import RollingGroup
from tests.waits import shares_interpreter

UNIFORM, RANGE = UniformAssignor(), RangeAssignor()
GROUPS = 40
STEPS = 8

Target = Mapping[MemberId, Assignment]
both = pytest.mark.parametrize("assignor", [UNIFORM, RANGE], ids=["uniform", "range"])


def steps(assignor: Assignor, seed: str) -> Iterator[tuple[AssignorInput, Target]]:
    for number in range(GROUPS):
        group = RollingGroup(f"{seed} {number}")
        for _ in range(STEPS):
            given = group.next()
            target = assignor.assign(given)
            yield given, target
            group.assigned(target)


def sizes(given: AssignorInput, target: Target) -> dict[MemberId, int]:
    return {
        member_id: sum(map(len, target.get(member_id, {}).values())) for member_id in given.members
    }


def kept_of(member: AssignorMember) -> Assignment:
    return {
        topic_id: held
        for topic_id, held in member.assigned.items()
        if topic_id in member.subscribed_topic_ids
    }


def with_target(given: AssignorInput, target: Target) -> AssignorInput:
    return replace(
        given,
        members={
            member_id: replace(member, assigned=target.get(member_id, {}))
            for member_id, member in given.members.items()
        },
    )


@both
def test_each_partition_has_one_owner_who_subscribes(assignor: Assignor) -> None:
    partitions = 0
    for given, target in steps(assignor, "owners"):
        owned = [
            (topic_id, partition)
            for member_id, assigned in target.items()
            for topic_id, held in assigned.items()
            for partition in held
            if topic_id in given.members[member_id].subscribed_topic_ids
        ]
        subscribed = {
            topic_id
            for member in given.members.values()
            for topic_id in member.subscribed_topic_ids
        }
        assert sorted(owned) == sorted(
            (topic_id, partition)
            for topic_id in subscribed
            for partition in range(given.topics[topic_id].partitions)
        )
        assert len(owned) == sum(sizes(given, target).values())
        assert all(held for assigned in target.values() for held in assigned.values())
        partitions += len(owned)
    assert partitions > 10_000


def test_uniform_balances_members_with_equal_subscriptions() -> None:
    seen = 0
    for given, target in steps(UNIFORM, "equal"):
        if given.is_homogeneous:
            assert max(sizes(given, target).values()) - min(sizes(given, target).values()) <= 1
            seen += 1
    assert seen > 50


def test_uniform_leaves_no_move_that_brings_two_members_closer() -> None:
    seen = 0
    for given, target in steps(UNIFORM, "closer"):
        if given.is_homogeneous:
            continue
        size = sizes(given, target)
        for topic_id in given.topics:
            subscribers = [
                member_id
                for member_id, member in given.members.items()
                if topic_id in member.subscribed_topic_ids
            ]
            owners = [id_ for id_ in subscribers if topic_id in target.get(id_, {})]
            if owners:
                assert max(size[id_] for id_ in owners) - min(size[id_] for id_ in subscribers) <= 1
                seen += len(subscribers) > 1
    assert seen > 200


def test_uniform_keeps_as_much_as_balance_allows_with_equal_subscriptions() -> None:
    moved = 0
    for given, target in steps(UNIFORM, "keeps"):
        if not given.is_homogeneous or not target:
            continue
        least, extras = divmod(sum(sizes(given, target).values()), len(given.members))
        before = {
            id_: sum(map(len, kept_of(member).values())) for id_, member in given.members.items()
        }
        kept = sum(
            len(target[id_].get(topic_id, frozenset()) & held)
            for id_, member in given.members.items()
            for topic_id, held in kept_of(member).items()
        )
        larger = sum(size > least for size in before.values())
        assert kept == sum(min(size, least) for size in before.values()) + min(larger, extras)
        moved += sum(before.values()) - kept
    assert moved > 100


def test_uniform_moves_nothing_when_nothing_changed() -> None:
    for given, target in steps(UNIFORM, "unchanged"):
        assigned = with_target(given, target)
        again = UNIFORM.assign(assigned)
        assert again == target
        assert all(again[id_] is assigned.members[id_].assigned for id_ in again)


def test_uniform_takes_nothing_from_the_others_when_a_member_leaves() -> None:
    seen = 0
    for given, target in steps(UNIFORM, "left"):
        if not given.is_homogeneous or len(given.members) < 2:
            continue
        gone = max(given.members)
        assigned = with_target(given, target)
        members = {id_: member for id_, member in assigned.members.items() if id_ != gone}
        after = UNIFORM.assign(replace(assigned, members=members))
        for member_id in members:
            for topic_id, held in target.get(member_id, {}).items():
                assert after[member_id][topic_id] >= held
                seen += 1
    assert seen > 100


def test_uniform_moves_only_to_the_new_one_when_a_member_joins_one_bucket() -> None:
    """Two sets of members without a common topic, so the subscriptions differ."""
    topics = {UUID(int=number): AssignorTopic(12, None) for number in range(1, 7)}
    left, right = frozenset([*topics][:3]), frozenset([*topics][3:])
    members = {
        MemberId(f"member {number}"): AssignorMember(None, None, left if number % 2 else right, {})
        for number in range(8)
    }
    given = AssignorInput(members, topics, is_homogeneous=False)
    target = UNIFORM.assign(given)
    assigned = with_target(given, target)
    new = MemberId("new")
    joined = replace(
        assigned, members={**assigned.members, new: AssignorMember(None, None, left, {})}
    )
    after = UNIFORM.assign(joined)
    assert sorted(sizes(joined, after).values()) == [7, 7, 7, 7, 8, 9, 9, 9, 9]
    for member_id, member in members.items():
        kept = after[member_id]
        assert all(kept[topic_id] <= target[member_id][topic_id] for topic_id in kept)
        if member.subscribed_topic_ids == right:
            assert after[member_id] is assigned.members[member_id].assigned


@both
def test_the_order_of_the_input_plays_no_part(assignor: Assignor) -> None:
    random = Random("order")
    for given, target in steps(assignor, "order"):
        assert without_empty(assignor.assign(_shuffled(given, random))) == without_empty(target)


def _shuffled(given: AssignorInput, random: Random) -> AssignorInput:
    """Equal, in another order, with other objects, and with mappings that are no dicts."""

    def shuffled(mapping: Mapping) -> Mapping:
        items = [*mapping.items()]
        random.shuffle(items)
        return MappingProxyType(dict(items))

    def other(topic_id: TopicId) -> TopicId:
        return UUID(int=topic_id.int)

    return replace(
        given,
        members=shuffled(
            {
                member_id: replace(
                    member,
                    subscribed_topic_ids=frozenset(map(other, member.subscribed_topic_ids)),
                    assigned=shuffled(
                        {
                            other(topic_id): frozenset(sorted(held, reverse=True))
                            for topic_id, held in member.assigned.items()
                        }
                    ),
                )
                for member_id, member in given.members.items()
            }
        ),
        topics=shuffled({other(topic_id): topic for topic_id, topic in given.topics.items()}),
    )


@both
def test_the_input_is_not_changed(assignor: Assignor) -> None:
    for given, _ in steps(assignor, "input"):
        before = _copied(given)
        assignor.assign(given)
        assert given == before
        assert [*given.members] == [*before.members]


def _copied(given: AssignorInput) -> AssignorInput:
    return replace(
        given,
        members={
            member_id: replace(member, assigned=dict(member.assigned))
            for member_id, member in given.members.items()
        },
        topics=dict(given.topics),
    )


@both
def test_racks_play_no_part(assignor: Assignor) -> None:
    for given, target in steps(assignor, "racks"):
        without_racks = replace(
            given,
            members={
                member_id: replace(member, rack_id=None)
                for member_id, member in given.members.items()
            },
            topics={id_: replace(topic, racks=None) for id_, topic in given.topics.items()},
        )
        assert assignor.assign(without_racks) == target


def test_ranges_are_consecutive_and_in_the_order_of_the_members() -> None:
    for given, target in steps(RANGE, "ranges"):
        ranked = sorted(
            given.members,
            key=lambda id_: (
                given.members[id_].instance_id is None,
                (given.members[id_].instance_id or "").encode("utf-16-be"),
                id_.encode("utf-16-be"),
            ),
        )
        for topic_id in given.topics:
            held = [sorted(target[member_id].get(topic_id, ())) for member_id in ranked]
            numbers = [partition for of_member in held for partition in of_member]
            assert numbers == [*range(len(numbers))]
            subscribed = [
                len(of_member)
                for member_id, of_member in zip(ranked, held, strict=True)
                if topic_id in given.members[member_id].subscribed_topic_ids
            ]
            assert all(0 <= more - fewer <= 1 for more, fewer in pairwise(subscribed))
            assert not subscribed or subscribed[0] - subscribed[-1] <= 1


def test_range_gives_the_same_numbers_of_topics_with_equally_many_partitions() -> None:
    topics = [UUID(int=number) for number in range(1, 4)]
    member = AssignorMember(None, None, frozenset(topics), {})
    given = AssignorInput(
        {MemberId(name): member for name in ("a", "b", "c")},
        {topic_id: AssignorTopic(7, None) for topic_id in topics},
        is_homogeneous=True,
    )
    for assigned in RANGE.assign(given).values():
        assert len({*assigned.values()}) == 1


def test_a_static_member_keeps_its_range_under_another_member_id() -> None:
    topic_id = UUID(int=1)
    topics = {topic_id: AssignorTopic(4, None)}

    def group(first: str, second: str) -> AssignorInput:
        members = {
            MemberId(first): AssignorMember(None, "one", frozenset(topics), {}),
            MemberId(second): AssignorMember(None, "two", frozenset(topics), {}),
        }
        return AssignorInput(members, topics, is_homogeneous=True)

    assert RANGE.assign(group("x", "y")) == {
        "x": {topic_id: frozenset({0, 1})},
        "y": {topic_id: frozenset({2, 3})},
    }
    assert RANGE.assign(group("z", "y"))["z"] == {topic_id: frozenset({0, 1})}


@both
@pytest.mark.parametrize("is_homogeneous", [True, False])
def test_an_empty_group_is_assigned_nothing(assignor: Assignor, is_homogeneous: bool) -> None:
    assert assignor.assign(AssignorInput({}, {}, is_homogeneous)) == {}


@both
@pytest.mark.parametrize("is_homogeneous", [True, False])
def test_a_subscribed_topic_without_metadata_is_a_failure(
    assignor: Assignor, is_homogeneous: bool
) -> None:
    member = AssignorMember(None, None, frozenset({UUID(int=7)}), {})
    given = AssignorInput({MemberId("anna"): member}, {}, is_homogeneous)
    with pytest.raises(AssignorFailed, match="00000007, which does not exist"):
        assignor.assign(given)


@pytest.mark.parametrize("is_homogeneous", [True, False])
@pytest.mark.parametrize(
    "held", [[frozenset({0, 1}), frozenset({1})], [frozenset({0}), frozenset({2, 9})]]
)
def test_uniform_refuses_a_target_assignment_that_cannot_be(
    is_homogeneous: bool, held: list
) -> None:
    topic_id = UUID(int=7)
    given = AssignorInput(
        {
            MemberId(f"member {place}"): AssignorMember(
                None, None, frozenset({topic_id}), {topic_id: partitions}
            )
            for place, partitions in enumerate(held)
        },
        {topic_id: AssignorTopic(4, None)},
        is_homogeneous,
    )
    with pytest.raises(AssignorFailed, match="twice, or one that does not exist"):
        UNIFORM.assign(given)


def test_other_threads_run_while_a_large_group_is_assigned() -> None:
    topic_id, members = UUID(int=7), 20_000
    member = AssignorMember(None, None, frozenset({topic_id}), {})
    given = AssignorInput(
        {MemberId(f"member {number}"): member for number in range(members)},
        {topic_id: AssignorTopic(members, None)},
        is_homogeneous=True,
    )
    assert shares_interpreter(lambda: RANGE.assign(given), 0.35)
