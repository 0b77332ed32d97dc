"""State transitions: the moves a classic group may make; asserts and docs use this table.

Kafka's counterpart: `ClassicGroupState.validPreviousStates`.
"""

from typing import Final

from protocol.names import GroupState

LEGAL_MOVES: Final[dict[GroupState, frozenset[GroupState]]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE, GroupState.DEAD}),
    GroupState.PREPARING_REBALANCE: frozenset(
        {GroupState.EMPTY, GroupState.COMPLETING_REBALANCE, GroupState.DEAD}
    ),
    GroupState.COMPLETING_REBALANCE: frozenset(
        {GroupState.STABLE, GroupState.PREPARING_REBALANCE, GroupState.DEAD}
    ),
    GroupState.STABLE: frozenset({GroupState.PREPARING_REBALANCE, GroupState.DEAD}),
    GroupState.DEAD: frozenset(),
}
"""From each state, the states that may follow."""

CAN_REBALANCE: Final = frozenset(
    {GroupState.STABLE, GroupState.COMPLETING_REBALANCE, GroupState.EMPTY}
)
"""The states in which a rebalance may begin: all from which PreparingRebalance may follow."""


def check_move(before: GroupState, after: GroupState) -> None:
    if after not in LEGAL_MOVES[before]:
        raise AssertionError(f"a group may not move from {before} to {after}")
