"""The moves between states: the table is Kafka's, and nothing moves without it."""

import itertools

import pytest

from coordinator.classic.transitions import CAN_REBALANCE, LEGAL_MOVES, check_move
from protocol.names import GroupState

S = GroupState
KAFKA_VALID_PREVIOUS_STATES = {
    S.EMPTY: {S.PREPARING_REBALANCE},
    S.PREPARING_REBALANCE: {S.STABLE, S.COMPLETING_REBALANCE, S.EMPTY},
    S.COMPLETING_REBALANCE: {S.PREPARING_REBALANCE},
    S.STABLE: {S.COMPLETING_REBALANCE},
    S.DEAD: {S.STABLE, S.PREPARING_REBALANCE, S.COMPLETING_REBALANCE, S.EMPTY},
}


@pytest.mark.parametrize(("before", "after"), list(itertools.product(LEGAL_MOVES, repeat=2)))
def test_a_group_may_move_as_in_kafka_and_not_otherwise(
    before: GroupState, after: GroupState
) -> None:
    allowed = before in KAFKA_VALID_PREVIOUS_STATES[after]
    assert (after in LEGAL_MOVES[before]) is allowed
    if allowed:
        check_move(before, after)
    else:
        with pytest.raises(AssertionError, match="may not move"):
            check_move(before, after)


def test_a_rebalance_begins_wherever_one_may_follow() -> None:
    assert {s for s in LEGAL_MOVES if S.PREPARING_REBALANCE in LEGAL_MOVES[s]} == CAN_REBALANCE
