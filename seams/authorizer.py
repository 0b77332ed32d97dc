"""Authorizer: may the client behind a request do this?

Asked where Kafka asks. There is one answer so far: yes.
"""

from collections.abc import Iterable
from typing import Final, Protocol

from protocol.names import GroupId, TopicName, TransactionalId
from seams.reply_token import ReplyToken


class Authorizer(Protocol):
    def may_read_group(self, token: ReplyToken, group_id: GroupId, /) -> bool:
        """READ on the group: GROUP_AUTHORIZATION_FAILED if not."""

    def describable_topics(
        self, token: ReplyToken, topics: Iterable[TopicName], /
    ) -> frozenset[TopicName]:
        """Those of the topics on which the client has DESCRIBE."""

    def writable_topics(
        self, token: ReplyToken, topics: Iterable[TopicName], /
    ) -> frozenset[TopicName]:
        """Those of the topics on which the client has WRITE."""

    def may_write_transactional_id(
        self, token: ReplyToken, transactional_id: TransactionalId, /
    ) -> bool:
        """WRITE on the id: TRANSACTIONAL_ID_AUTHORIZATION_FAILED if not."""

    def may_describe_transactional_id(
        self, token: ReplyToken, transactional_id: TransactionalId, /
    ) -> bool:
        """DESCRIBE on the id: TRANSACTIONAL_ID_AUTHORIZATION_FAILED if not; lists leave it out."""

    def may_write_idempotently(self, token: ReplyToken, /) -> bool:
        """IDEMPOTENT_WRITE on the cluster, or WRITE on any topic: CLUSTER_AUTHORIZATION_FAILED."""

    def may_act_as_broker(self, token: ReplyToken, /) -> bool:
        """CLUSTER_ACTION: CLUSTER_AUTHORIZATION_FAILED if not."""


class _AllowAll:
    def may_read_group(self, _token: ReplyToken, _group_id: GroupId, /) -> bool:
        return True

    def describable_topics(
        self, _token: ReplyToken, topics: Iterable[TopicName], /
    ) -> frozenset[TopicName]:
        return frozenset(topics)

    def writable_topics(
        self, _token: ReplyToken, topics: Iterable[TopicName], /
    ) -> frozenset[TopicName]:
        return frozenset(topics)

    def may_write_transactional_id(
        self, _token: ReplyToken, _transactional_id: TransactionalId, /
    ) -> bool:
        return True

    def may_describe_transactional_id(
        self, _token: ReplyToken, _transactional_id: TransactionalId, /
    ) -> bool:
        return True

    def may_write_idempotently(self, _token: ReplyToken, /) -> bool:
        return True

    def may_act_as_broker(self, _token: ReplyToken, /) -> bool:
        return True


ALLOW_ALL: Final[Authorizer] = _AllowAll()
