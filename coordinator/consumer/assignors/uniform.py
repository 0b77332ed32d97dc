"""Uniform assignor: all members get equally many partitions, and keep what they have.

Balance comes before stickiness. Racks play no part, as in Kafka 4.3.1.
Kafka's counterpart: `UniformAssignor`.
"""

from collections.abc import Mapping

from coordinator.consumer.assignors.assignor import Assignment, AssignorInput
from coordinator.consumer.assignors.uniform_heterogeneous import assign_heterogeneous
from coordinator.consumer.assignors.uniform_homogeneous import assign_homogeneous
from protocol.names import MemberId


class UniformAssignor:
    """`uniform`."""

    @property
    def name(self) -> str:
        return "uniform"

    def assign(self, given: AssignorInput) -> Mapping[MemberId, Assignment]:
        if not given.members:
            return {}
        if given.is_homogeneous:
            return assign_homogeneous(given)
        return assign_heterogeneous(given)
