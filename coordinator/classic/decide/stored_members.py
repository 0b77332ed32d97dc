"""Stored member: a member as the group's record has it, with the metadata of one protocol."""

from coordinator.classic.group_view import ClassicMemberView
from coordinator.stored_records import StoredMember


def snapshot(
    member: ClassicMemberView, protocol_name: str | None, assignment: bytes
) -> StoredMember:
    return StoredMember(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=member.session_timeout_ms,
        subscription=member.metadata_for(protocol_name),
        assignment=assignment,
    )
