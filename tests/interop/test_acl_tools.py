"""Kafka's tool for ACLs: kafka-acls of 4.3.1 adds, lists and removes entries of the daemon."""

import os
import re
import shlex
from pathlib import Path

import pytest

from tests.interop.kafka_tools import ACLS, TOPICS, Finished, require_kafka_tools

pytestmark = pytest.mark.skipif("ADMIN_TOOLS" not in os.environ, reason="ADMIN_TOOLS is not set")

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
    "allow.everyone.if.no.acl.found": "true",
}
ENTRY = re.compile(
    r"\(principal=(\S+), host=(\S+), operation=(\w+), permissionType=(\w+)\)", re.MULTILINE
)


def entries(done: Finished) -> set[tuple[str, ...]]:
    return set(ENTRY.findall(done.out))


def test_kafka_acls_adds_lists_and_removes(start_daemon) -> None:
    daemon = start_daemon(SETTINGS)
    tools = require_kafka_tools()

    def tool(main_class: str, *arguments: str, fails: bool = False) -> Finished:
        done = tools.run(main_class, "--bootstrap-server", daemon.bootstrap, *arguments)
        assert (done.exit_code != 0) == fails, f"{arguments}\n{done.out}\n{done.err}"
        return done

    tool(TOPICS, "--create", "--topic", "orders")

    # Given a consumer's rights, as the tool makes them from one option.
    added = tool(
        ACLS,
        *("--add", "--allow-principal", "User:alice", "--consumer"),
        *("--topic", "orders", "--group", "billing", "--resource-pattern-type", "prefixed"),
    )
    alice = {
        ("User:alice", "*", "READ", "ALLOW"),
        ("User:alice", "*", "DESCRIBE", "ALLOW"),
    }
    assert entries(added) == alice
    listed = tool(ACLS, "--list", "--topic", "orders", "--resource-pattern-type", "prefixed")
    assert entries(listed) == alice
    assert "resourceType=TOPIC, name=orders, patternType=PREFIXED" in listed.out
    of_group = tool(ACLS, "--list", "--group", "billing-eu", "--resource-pattern-type", "match")
    assert entries(of_group) == {("User:alice", "*", "READ", "ALLOW")}

    # Then the topic has an entry, so nobody else sees it any more.
    assert "orders" not in tool(TOPICS, "--list").out.split()

    # A DENY for one host, and what the tool shows of one principal.
    tool(
        ACLS,
        *("--add", "--deny-principal", "User:mallory", "--deny-host", "192.0.2.7"),
        *("--operation", "All", "--topic", "*"),
    )
    mallory = ("User:mallory", "192.0.2.7", "ALL", "DENY")
    assert entries(tool(ACLS, "--list", "--principal", "User:mallory")) == {mallory}
    assert entries(tool(ACLS, "--list")) == {*alice, mallory}

    # A restart changes nothing.
    daemon.kill()
    daemon.start()
    assert entries(tool(ACLS, "--list")) == {*alice, mallory}

    # When the rights are removed, then everyone may see the topic again.
    gone = ("--remove", "--force", "--resource-pattern-type", "prefixed")
    tool(ACLS, *gone, "--topic", "orders")
    tool(ACLS, *gone, "--group", "billing")
    tool(ACLS, "--remove", "--force", "--topic", "*")
    assert entries(tool(ACLS, "--list")) == set()
    assert "orders" in tool(TOPICS, "--list").out.split()

    # A principal without a type does not even leave the tool.
    refused = tool(
        ACLS, "--add", "--allow-principal", "bob", "--operation", "Read", "--topic", "t", fails=True
    )
    assert "principalType:principalName" in refused.out + refused.err


PAGE = Path(__file__).parents[2] / "docs" / "acls.md"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
USERS = ("admin", "alice", "bob", "carol")
WITH_USERS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        MODULE + " " + " ".join(f'user_{user}="secret"' for user in USERS) + ";"
    ),
}


def commands_of_the_page() -> list[list[str]]:
    """What it says to type, without the program's name and the address."""
    text = PAGE.read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.startswith("    kafka-acls.sh ")]
    return [shlex.split(line)[3:] for line in lines]


def test_the_commands_of_the_page_work_for_users_who_log_in(start_daemon, tmp_path: Path) -> None:
    daemon = start_daemon(WITH_USERS, listen=None)
    tools = require_kafka_tools()
    for user in USERS:
        (tmp_path / f"{user}.properties").write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
            f'sasl.jaas.config={MODULE} username="{user}" password="secret";\n'
        )

    def tool(main_class: str, *arguments: str, user: str = "admin") -> Finished:
        done = tools.run(
            main_class,
            *("--bootstrap-server", daemon.bootstrap),
            *("--command-config", str(tmp_path / f"{user}.properties"), *arguments),
        )
        assert done.exit_code == 0, f"{arguments}\n{done.out}\n{done.err}"
        return done

    def seen_by(user: str) -> set[str]:
        return set(tool(TOPICS, "--list", user=user).out.split())

    for topic in ("orders", "billing-eu", "secret"):
        tool(TOPICS, "--create", "--topic", topic)
    assert seen_by("alice") == set()

    *additions, match, of_carol, everything, removal = commands_of_the_page()
    assert len(additions) == 3
    for command in (*additions, match, of_carol, everything):
        assert command[:2] == ["--command-config", "admin.properties"]
    for command in additions:
        tool(ACLS, *command[2:])
    assert seen_by("alice") == seen_by("bob") == {"orders"}
    assert seen_by("carol") == set()  # from another address only
    carol = {("User:carol", "192.0.2.7", "ALL", "ALLOW")}
    assert entries(tool(ACLS, *match[2:])) == carol
    assert entries(tool(ACLS, *of_carol[2:])) == carol
    assert len(entries(tool(ACLS, *everything[2:]))) > 4

    tool(ACLS, *removal[2:])
    assert entries(tool(ACLS, *of_carol[2:])) == set()
    refused = tools.run(
        ACLS,
        *("--bootstrap-server", daemon.bootstrap, "--list"),
        *("--command-config", str(tmp_path / "alice.properties")),
    )
    assert "Cluster authorization failed" in refused.out + refused.err or (
        "ClusterAuthorizationException" in refused.out + refused.err
    )
