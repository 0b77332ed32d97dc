"""Listener security: which protocol, TLS and SASL values a listener has.

A value is that of `listener.name.NAME.MECHANISM.KEY`, else of `listener.name.NAME.KEY`, else of
`KEY`. Raises `BadListeners` for what cannot work: a TLS listener without a key store, a SASL
listener without a mechanism that is served.
Kafka's counterpart: `AbstractConfig.valuesWithPrefixOverride`, `ChannelBuilders`.
"""

from collections.abc import Mapping
from functools import cache
from typing import Final

from msgspec import Struct

from config.jaas import BadJaas, plain_users
from config.keys import Config, keys
from config.listeners import BadListeners, Listener, SecurityProtocol
from config.security_keys import MECHANISMS, SecurityKeys
from config.types import BrokerKey
from protocol.config_def import ConfigType, ConfigValue

_PREFIX: Final = "listener.name."

_OWN_HANDLERS: Final = frozenset(
    (
        "",
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler",
        "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerValidatorCallbackHandler",
    )
)


class MechanismSecurity(Struct, frozen=True):
    """One SASL mechanism of one listener."""

    name: str
    values: SecurityKeys
    plain_users: Mapping[str, str]
    """Passwords by user; empty for the other mechanisms."""


class ListenerSecurity(Struct, frozen=True):
    """`values` are those of the listener; each mechanism has its own."""

    protocol: SecurityProtocol
    values: SecurityKeys
    mechanisms: Mapping[str, MechanismSecurity]


@cache
def security_keys() -> Mapping[str, BrokerKey]:
    """The keys that a listener may have of its own, by name."""
    return {name: key for name, key in keys().items() if key.field in SecurityKeys.DEFINITIONS}


def security_key(name: str) -> BrokerKey | None:
    """The key of a name with `listener.name.NAME.` or `listener.name.NAME.MECHANISM.`."""
    if not name.startswith(_PREFIX):
        return None
    _, _, rest = name.removeprefix(_PREFIX).partition(".")
    table = security_keys()
    if rest in table:
        return table[rest]
    mechanism, _, inner = rest.partition(".")
    is_mechanism = mechanism.upper() in MECHANISMS
    return table.get(inner) if is_mechanism else None


def listener_of(name: str) -> str:
    """The lower-case NAME in `listener.name.NAME.KEY`."""
    return name.removeprefix(_PREFIX).partition(".")[0]


def listener_security(config: Config, listener: Listener) -> ListenerSecurity:
    """What the listener does before Kafka's protocol begins. Raises BadListeners."""
    values = _values(config, f"{_PREFIX}{listener.name.lower()}.")
    protocol = listener.protocol
    if protocol.has_tls:
        _check_tls(listener, values)
    mechanisms: dict[str, MechanismSecurity] = {}
    if protocol.has_sasl:
        for name in _mechanisms(listener, values):
            mechanisms[name] = _mechanism(config, listener, name)
    return ListenerSecurity(protocol, values, mechanisms)


def _values(config: Config, *prefixes: str) -> SecurityKeys:
    """The prefixes from the weakest to the strongest."""
    found: dict[str, ConfigValue] = {}
    for key in security_keys().values():
        value: ConfigValue = getattr(config, key.field)
        for prefix in prefixes:
            value = config.security_overrides.get(prefix + key.name, value)
        found[key.field] = value
    # The field names come from the table, so the types are those of the table's keys.
    return SecurityKeys(**found)  # type: ignore[arg-type]  # as said above


def _check_tls(listener: Listener, values: SecurityKeys) -> None:
    name = f"{_PREFIX}{listener.name.lower()}."
    if not values.ssl_keystore_location and not values.ssl_keystore_key:
        raise BadListeners(
            "ssl.keystore.location",
            f"required, because the listener {listener.name} is {listener.protocol.value} "
            f"(or {name}ssl.keystore.location)",
        )
    if values.ssl_keystore_key and not values.ssl_keystore_certificate_chain:
        raise BadListeners("ssl.keystore.certificate.chain", "required with ssl.keystore.key")
    wants_clients = values.ssl_client_auth != "none"
    has_trust = values.ssl_truststore_location or values.ssl_truststore_certificates
    if wants_clients and not has_trust:
        raise BadListeners(
            "ssl.truststore.location",
            f"required, because ssl.client.auth of the listener {listener.name} is "
            f"{values.ssl_client_auth}",
        )


def _mechanisms(listener: Listener, values: SecurityKeys) -> list[str]:
    names = [name.upper() for name in values.sasl_enabled_mechanisms]
    for name in names:
        if name not in MECHANISMS:
            served = ", ".join(MECHANISMS)
            raise BadListeners(
                "sasl.enabled.mechanisms",
                f"{name} is not served (listener {listener.name}); there are {served}",
            )
    if not names:
        raise BadListeners(
            "sasl.enabled.mechanisms", f"the listener {listener.name} needs at least one"
        )
    return list(dict.fromkeys(names))


def _mechanism(config: Config, listener: Listener, name: str) -> MechanismSecurity:
    prefix = f"{_PREFIX}{listener.name.lower()}."
    own = f"{prefix}{name.lower()}."
    values = _values(config, prefix, own)
    users: Mapping[str, str] = {}
    if name == "PLAIN":
        jaas = config.security_overrides.get(f"{own}sasl.jaas.config", "")
        assert isinstance(jaas, str)
        try:
            users = plain_users(jaas)
        except BadJaas as bad:
            raise BadListeners("sasl.jaas.config", f"{own}sasl.jaas.config: {bad}") from None
    if name == "OAUTHBEARER":
        _check_tokens(listener, values)
    handler = values.sasl_server_callback_handler_class
    if handler not in _OWN_HANDLERS:
        raise BadListeners(
            "sasl.server.callback.handler.class", f"{handler} is a Java class of your own"
        )
    return MechanismSecurity(name, values, users)


def _check_tokens(listener: Listener, values: SecurityKeys) -> None:
    url = values.sasl_oauthbearer_jwks_endpoint_url
    if not url:
        raise BadListeners(
            "sasl.oauthbearer.jwks.endpoint.url",
            f"required, because the listener {listener.name} has OAUTHBEARER",
        )
    if not url.lower().startswith(("file:/", "https://", "http://")):
        raise BadListeners(
            "sasl.oauthbearer.jwks.endpoint.url", f"{url} is no file:, https: or http: URL"
        )
    if values.sasl_oauthbearer_jwks_endpoint_refresh_ms <= 0:
        raise BadListeners("sasl.oauthbearer.jwks.endpoint.refresh.ms", "must be positive")


def is_secret(name: str) -> bool:
    """Whether the value of the key must not be shown; a name that is not served is judged by it."""
    key = keys().get(name) or security_key(name)
    if key is not None and key.type is ConfigType.PASSWORD:
        return True
    return any(word in name for word in ("password", "jaas", "secret", "keystore.key", "token"))
