"""Load and unload of consumer groups: timers after a load.

No request of a consumer group is parked, so nothing has to be refused when a partition is closed.
Kafka's counterpart: `GroupMetadataManager.onLoaded`.
"""

from coordinator.consumer.delayed import ConsumerOp, ConsumerSessionTimeout, RebalanceTimeout
from coordinator.consumer.group import ConsumerGroup
from coordinator.consumer.member import ConsumerMemberState
from seams.now import Now


def start_consumer_after_load(
    group: ConsumerGroup, now: Now, session_timeout_ms: int
) -> list[ConsumerOp]:
    """A full session for each member, and a full rebalance timeout for those who revoke.

    As in Kafka the session is the group's for members of the classic protocol too, until their
    next heartbeat.
    """
    ops: list[ConsumerOp] = []
    for member_id, member in group.members.items():
        member.session_deadline_ms = now.mono_ms + session_timeout_ms
        ops.append(ConsumerSessionTimeout(group.group_id, member_id, member.session_deadline_ms))
        if member.current.state is ConsumerMemberState.UNREVOKED_PARTITIONS:
            deadline_ms = now.mono_ms + member.metadata.rebalance_timeout_ms
            member.rebalance_deadline_ms = deadline_ms
            epoch = member.current.member_epoch
            ops.append(RebalanceTimeout(group.group_id, member_id, epoch, deadline_ms))
    return ops
