"""Authorizer: may the client behind a request do this?

Asked where Kafka asks. There is one answer so far: yes.
"""

from collections.abc import Iterable
from typing import Final, Protocol

from protocol.names import GroupId, TopicName
from seams.reply_token import ReplyToken


class Authorizer(Protocol):
    def may_read_group(self, token: ReplyToken, group_id: GroupId, /) -> bool:
        """READ on the group: GROUP_AUTHORIZATION_FAILED if not."""

    def describable_topics(
        self, token: ReplyToken, topics: Iterable[TopicName], /
    ) -> frozenset[TopicName]:
        """Those of the topics on which the client has DESCRIBE."""


class _AllowAll:
    def may_read_group(self, _token: ReplyToken, _group_id: GroupId, /) -> bool:
        return True

    def describable_topics(
        self, _token: ReplyToken, topics: Iterable[TopicName], /
    ) -> frozenset[TopicName]:
        return frozenset(topics)


ALLOW_ALL: Final[Authorizer] = _AllowAll()
