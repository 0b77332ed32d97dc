"""Kafka's configuration names: which exist, and which may not be ignored.

A name that Kafka knows and Rollcall does not use is accepted with a warning, except where ignoring
it would weaken security or durability: then the daemon does not start. The names are in
kafka_names.txt, printed from Kafka's ConfigDefs; those of a later Kafka are added there.
"""

from functools import cache
from pathlib import Path

from msgspec import Struct

from protocol.java_text import trim

_PLUGIN_PREFIXES = ("rlmm.config.", "rsm.config.", "config.providers.")

_SECURITY_PREFIXES = ("ssl.", "sasl.", "zookeeper.ssl.", "password.encoder.")

# Names that may not be ignored, each with the values that change nothing.
_MUST_NOT_IGNORE: dict[str, tuple[frozenset[str], str]] = {
    **{
        name: (frozenset({"", *harmless}), "it would leave clients unchecked")
        for name, harmless in {
            "principal.builder.class": (
                "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
            ),
            "security.providers": (),
            "delegation.token.secret.key": (),
            "delegation.token.master.key": (),
            "create.topic.policy.class.name": (),
            "alter.config.policy.class.name": (),
            "client.quota.callback.class": (),
            "zookeeper.set.acl": ("false",),
            "ssl.engine.factory.class": (),
            "sasl.oauthbearer.jwt.validator.class": (
                "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
                "org.apache.kafka.common.security.oauthbearer.BrokerJwtValidator",
            ),
        }.items()
    },
    **{
        name: (frozenset({"", "1", "-1", "0"}), "one node keeps one copy")
        for name in (
            "min.insync.replicas",
            "default.replication.factor",
            "offsets.topic.replication.factor",
            "transaction.state.log.replication.factor",
            "transaction.state.log.min.isr",
            "share.coordinator.state.topic.replication.factor",
            "share.coordinator.state.topic.min.isr",
        )
    },
    "remote.log.storage.system.enable": (frozenset({"", "false"}), "there is no remote storage"),
    # As a dynamic config: config/sources.py has taken it out of all others.
    "config.providers": (frozenset({""}), "values of dynamic configs are not looked up elsewhere"),
}


class KafkaName(Struct, frozen=True):
    """One line of kafka_names.txt; the default as text, or None where Kafka demands a value."""

    name: str
    kind: str
    default: str | None
    range: str


@cache
def kafka_names(section: str) -> dict[str, KafkaName]:
    """Kafka's names: of the "broker", of a "topic", or "other" ones."""
    known: dict[str, KafkaName] = {}
    current = ""
    for line in Path(__file__).with_name("kafka_names.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            current = line.strip("[]")
        elif current == section and line and not line.startswith("#"):
            name, kind, default, *rest = line.split(" ")
            unset = default in ("''", "null")
            text = None if default == "required" else "" if unset else default
            known[name] = KafkaName(name, kind, text, " ".join(rest))
    return known


def is_kafka_name(name: str) -> bool:
    """Whether some version of Kafka reads this name."""
    bare = _without_listener(name)
    return (
        bare in kafka_names("broker")
        or bare in kafka_names("other")
        or bare in _MUST_NOT_IGNORE
        or bare.startswith((*_SECURITY_PREFIXES, *_PLUGIN_PREFIXES))
    )


def refusal_reason(name: str, written: str) -> str | None:
    """Why the daemon must not start with this value; None if it may."""
    bare, value = _without_listener(name), trim(written)
    if bare in _MUST_NOT_IGNORE:
        harmless, reason = _MUST_NOT_IGNORE[bare]
        if value.casefold() not in {word.casefold() for word in harmless}:
            return _stop(reason)
    return None


def _stop(reason: str) -> str:
    return f"cannot be honoured ({reason}) and must not be ignored"


def split_listener_limit(name: str) -> tuple[str, str] | None:
    """`listener.name.NAME.max.connections` -> (NAME, `max.connections`); None for other keys."""
    for limit in ("max.connections", "max.connection.creation.rate"):
        listener = name.removeprefix("listener.name.").removesuffix("." + limit)
        if name == f"listener.name.{listener}.{limit}":
            return listener, limit
    return None


def is_listener_limit(name: str) -> bool:
    return split_listener_limit(name) is not None


def _without_listener(name: str) -> str:
    """The name behind listener.name.NAME., the form in which one listener has its own value."""
    if not name.startswith("listener.name."):
        return name
    _, _, rest = name.removeprefix("listener.name.").partition(".")
    # A SASL mechanism may stand between: listener.name.outside.scram-sha-512.sasl.jaas.config
    mechanism, dot, inner = rest.partition(".")
    return inner if dot and inner.startswith("sasl.") and mechanism != "sasl" else rest
