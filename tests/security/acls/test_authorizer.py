"""ACL authorizer: super users, decisions that are kept, and refusals that are reported."""

import pytest

from protocol.acl_codes import AclOperation, PatternType, PermissionType, ResourceType
from protocol.names import GroupId, TopicName
from seams.principal import ANONYMOUS, Principal
from seams.reply_token import ReplyToken
from security.acls import authorizer as module
from security.acls.authorizer import NAME_LENGTH_KEPT_MAX, AclAuthorizer, parse_super_users
from security.acls.entry import Acl

READ = AclOperation.READ
GROUP, TOPIC = ResourceType.GROUP, ResourceType.TOPIC
AMY = ReplyToken(0, "client", "/10.0.0.1", Principal("User", "amy"))
BOB = ReplyToken(0, "client", "/10.0.0.1", Principal("User", "bob"))


def on_group(name: str, host: str = "*", principal: str = "User:amy") -> Acl:
    allow = PermissionType.ALLOW
    return Acl(GROUP, PatternType.LITERAL, name, principal, host, READ, allow)


def test_a_change_is_in_effect_for_a_kept_decision() -> None:
    authorizer = AclAuthorizer()
    assert authorizer.is_enabled
    assert not authorizer.may_read_group(AMY, GroupId("g"))
    authorizer.change([on_group("g")], ())
    assert authorizer.may_read_group(AMY, GroupId("g"))
    assert authorizer.kept == 1
    authorizer.change((), [on_group("g")])
    assert not authorizer.may_read_group(AMY, GroupId("g"))


def test_the_host_is_the_address_without_the_slash() -> None:
    authorizer = AclAuthorizer()
    authorizer.change([on_group("g", host="10.0.0.1")], ())
    assert authorizer.may_read_group(AMY, GroupId("g"))
    elsewhere = ReplyToken(0, "client", "/10.0.0.2", AMY.principal)
    assert not authorizer.may_read_group(elsewhere, GroupId("g"))


def test_super_users_may_do_everything() -> None:
    authorizer = AclAuthorizer(parse_super_users("User:bob;User:ops"))
    authorizer.change([on_group("g")], ())
    assert authorizer.may_read_group(BOB, GroupId("g"))
    assert authorizer.allows_any_resource(BOB, AclOperation.WRITE, TOPIC)
    assert not authorizer.allows_any_resource(AMY, AclOperation.WRITE, TOPIC)


def test_the_keys_text() -> None:
    names = parse_super_users(" User:amy ;;User:CN=x,O=y:z;")
    assert names == {Principal("User", "amy"), Principal("User", "CN=x,O=y:z")}
    assert parse_super_users("") == frozenset()
    with pytest.raises(ValueError, match="principalType:principalName"):
        parse_super_users("User:amy;bob")


def test_every_refusal_is_reported_unless_it_only_hides() -> None:
    refused: list[tuple] = []
    authorizer = AclAuthorizer(on_refusal=lambda *refusal: refused.append(refusal))
    authorizer.change([on_group("g")], ())
    for _ in range(2):  # a kept one too
        assert not authorizer.may_read_group(BOB, GroupId("g"))
        assert not authorizer.allows(BOB, READ, TOPIC, "t", logs_refusal=False)
    assert authorizer.may_read_group(AMY, GroupId("g"))
    assert refused == [(BOB, READ, GROUP, "g")] * 2


def test_the_kept_decisions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DECISIONS_MAX", 3)
    authorizer = AclAuthorizer()
    for number in range(10):
        authorizer.allows(AMY, READ, TOPIC, f"t{number}")
        assert 1 <= authorizer.kept <= 3
    authorizer.allows_any_resource(AMY, READ, TOPIC)
    assert authorizer.kept <= 3


def test_decisions_about_long_names_are_not_kept() -> None:
    authorizer = AclAuthorizer()
    authorizer.allows(AMY, READ, GROUP, "g" * (NAME_LENGTH_KEPT_MAX + 1))
    assert authorizer.kept == 0
    authorizer.allows(AMY, READ, GROUP, "g" * NAME_LENGTH_KEPT_MAX)
    assert authorizer.kept == 1


def test_filtered_names_and_operations() -> None:
    authorizer = AclAuthorizer()
    allow = PermissionType.ALLOW
    prefixed = PatternType.PREFIXED
    authorizer.change([Acl(TOPIC, prefixed, "or", "User:*", "*", AclOperation.ALL, allow)], ())
    token = ReplyToken(0, "client", "/10.0.0.1", ANONYMOUS)
    topics = [TopicName(name) for name in ("orders", "payments")]
    assert authorizer.describable_topics(token, topics) == {"orders"}
    everything = authorizer.authorized_operations(token, TOPIC, "orders")
    assert everything == sum(1 << code for code in (3, 4, 5, 6, 7, 8, 10, 11))
    assert authorizer.authorized_operations(token, TOPIC, "payments") == 0
