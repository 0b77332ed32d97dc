"""ListGroups: which groups are here, in these states and of these types?

Answers for one shard's groups; the facade puts the shards together. Changes nothing.
Kafka's counterpart: `GroupMetadataManager.listGroups`, `Group.GroupType.parse`.
"""

from collections.abc import Iterable, Sequence

from coordinator.group_view import GroupView
from protocol.java_text import trim
from protocol.messages.list_groups import ListedGroup


def list_groups(
    groups: Iterable[GroupView], states_filter: Sequence[str], types_filter: Sequence[str]
) -> list[ListedGroup]:
    """The groups that pass both filters; an empty filter lets everything pass.

    Both ignore case, and spaces around a state's name. A name that means nothing matches nothing.
    """
    states = {trim(state).lower() for state in states_filter}
    types = {group_type.lower() for group_type in types_filter}
    return [
        ListedGroup(
            group.group_id, group.protocol_type or "", group.state.value, group.group_type.value
        )
        for group in groups
        if (not states or group.state.value.lower() in states)
        and (not types or group.group_type.value in types)
    ]
