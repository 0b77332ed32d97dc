"""Authorizer: may the client behind a request do this?

Asked where Kafka asks. `Authorizer` itself allows everything: a broker without
`authorizer.class.name` has it. `security/acls` has the one that decides by ACLs.
Kafka's counterparts: `Authorizer`, `AuthHelper`.
"""

from collections.abc import Iterable
from typing import Final

from protocol.acl_codes import AclOperation, ResourceType
from protocol.names import GroupId, TopicName, TransactionalId
from seams.reply_token import ReplyToken

CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the only resource of type CLUSTER."""


_SUPPORTED: Final = {
    ResourceType.TOPIC: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DESCRIBE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        AclOperation.READ,
        AclOperation.DESCRIBE,
        AclOperation.DELETE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        AclOperation.CREATE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
    ),
}


class Authorizer:
    """Allows everything. A subclass overrides `allows` and `allows_any_resource`."""

    is_enabled = False
    """Whether there are ACLs: handlers skip what only a refusal would need."""

    def allows(
        self,
        _token: ReplyToken,
        _operation: AclOperation,
        _resource_type: ResourceType,
        _name: str,
        /,
        *,
        logs_refusal: bool = True,  # noqa: ARG002 - for subclasses
    ) -> bool:
        """Whether the client may do it to this resource.

        `logs_refusal` is False where a refusal hides something instead of failing a request.
        """
        return True

    def allows_any_resource(
        self, _token: ReplyToken, _operation: AclOperation, _resource_type: ResourceType, /
    ) -> bool:
        """Whether there is a resource of this type that the client may do it to."""
        return True

    def allowed_names(
        self,
        token: ReplyToken,
        operation: AclOperation,
        resource_type: ResourceType,
        names: Iterable[str],
        /,
        *,
        logs_refusals: bool = True,
    ) -> frozenset[str]:
        """Those of the resources that the client may do it to (`partitionSeqByAuthorized`)."""
        if not self.is_enabled:
            return frozenset(names)
        return frozenset(
            name
            for name in dict.fromkeys(names)
            if self.allows(token, operation, resource_type, name, logs_refusal=logs_refusals)
        )

    def allows_on_cluster(self, token: ReplyToken, operation: AclOperation, /) -> bool:
        """CLUSTER_AUTHORIZATION_FAILED if not."""
        return self.allows(token, operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def authorized_operations(
        self, token: ReplyToken, resource_type: ResourceType, name: str, /
    ) -> int:
        """The bit field of answers: what the client may do to it. Kafka's `AuthHelper`."""
        return sum(
            1 << operation
            for operation in _SUPPORTED[resource_type]
            if self.allows(token, operation, resource_type, name, logs_refusal=False)
        )

    # The questions that the coordinators ask.

    def may_read_group(self, token: ReplyToken, group_id: GroupId, /) -> bool:
        """READ on the group: GROUP_AUTHORIZATION_FAILED if not."""
        return self.allows(token, AclOperation.READ, ResourceType.GROUP, group_id)

    def may_describe_group(self, token: ReplyToken, group_id: GroupId, /) -> bool:
        """DESCRIBE on the group: GROUP_AUTHORIZATION_FAILED if not."""
        return self.allows(token, AclOperation.DESCRIBE, ResourceType.GROUP, group_id)

    def may_delete_group(self, token: ReplyToken, group_id: GroupId, /) -> bool:
        """DELETE on the group: GROUP_AUTHORIZATION_FAILED if not."""
        return self.allows(token, AclOperation.DELETE, ResourceType.GROUP, group_id)

    def listable_groups(self, token: ReplyToken, groups: Iterable[str], /) -> frozenset[str]:
        """Those that ListGroups shows: all to a client with DESCRIBE on the cluster."""
        named, operation = frozenset(groups), AclOperation.DESCRIBE
        if self.allows(token, operation, ResourceType.CLUSTER, CLUSTER_NAME, logs_refusal=False):
            return named
        return self.allowed_names(token, operation, ResourceType.GROUP, named, logs_refusals=False)

    def unreadable_topics(
        self, token: ReplyToken, topics: Iterable[TopicName], /
    ) -> frozenset[TopicName]:
        """Those of the topics on which the client has no READ."""
        if not self.is_enabled:
            return frozenset()
        named = frozenset(topics)
        return named - self.allowed_names(token, AclOperation.READ, ResourceType.TOPIC, named)

    def undescribable_topics(
        self, token: ReplyToken, topics: Iterable[TopicName], /
    ) -> frozenset[TopicName]:
        """Those of the topics on which the client has no DESCRIBE."""
        if not self.is_enabled:
            return frozenset()
        named = frozenset(topics)
        return named - self.allowed_names(token, AclOperation.DESCRIBE, ResourceType.TOPIC, named)

    def describable_topics(
        self, token: ReplyToken, topics: Iterable[TopicName], /, *, logs_refusals: bool = True
    ) -> frozenset[TopicName]:
        """Those of the topics on which the client has DESCRIBE."""
        names = self.allowed_names(
            token, AclOperation.DESCRIBE, ResourceType.TOPIC, topics, logs_refusals=logs_refusals
        )
        return frozenset(map(TopicName, names))

    def writable_topics(
        self, token: ReplyToken, topics: Iterable[TopicName], /
    ) -> frozenset[TopicName]:
        """Those of the topics on which the client has WRITE."""
        names = self.allowed_names(token, AclOperation.WRITE, ResourceType.TOPIC, topics)
        return frozenset(map(TopicName, names))

    def may_write_transactional_id(
        self, token: ReplyToken, transactional_id: TransactionalId, /
    ) -> bool:
        """WRITE on the id: TRANSACTIONAL_ID_AUTHORIZATION_FAILED if not."""
        kind = ResourceType.TRANSACTIONAL_ID
        return self.allows(token, AclOperation.WRITE, kind, transactional_id)

    def may_describe_transactional_id(
        self, token: ReplyToken, transactional_id: TransactionalId, /
    ) -> bool:
        """DESCRIBE on the id: TRANSACTIONAL_ID_AUTHORIZATION_FAILED if not; lists leave it out."""
        kind = ResourceType.TRANSACTIONAL_ID
        return self.allows(token, AclOperation.DESCRIBE, kind, transactional_id)

    def may_write_idempotently(self, token: ReplyToken, /) -> bool:
        """IDEMPOTENT_WRITE on the cluster, or WRITE on any topic: CLUSTER_AUTHORIZATION_FAILED."""
        if not self.is_enabled:
            return True
        operation = AclOperation.IDEMPOTENT_WRITE
        cluster = ResourceType.CLUSTER
        return self.allows(
            token, operation, cluster, CLUSTER_NAME, logs_refusal=False
        ) or self.allows_any_resource(token, AclOperation.WRITE, ResourceType.TOPIC)

    def may_act_as_broker(self, token: ReplyToken, /) -> bool:
        """CLUSTER_ACTION: CLUSTER_AUTHORIZATION_FAILED if not."""
        return self.allows_on_cluster(token, AclOperation.CLUSTER_ACTION)


ALLOW_ALL: Final = Authorizer()
