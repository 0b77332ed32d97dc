"""Access of the listeners: made from the configuration, once for each listener.

Certificates are read before a port is bound, so that a bad one is one line of a start. Mechanisms
get what they ask: the users of PLAIN, the credentials of SCRAM, the keys that sign tokens.
TLS and the mechanisms of SASL are imported where a listener has them.
Kafka's counterparts: `ChannelBuilders.serverChannelBuilder`, `SaslChannelBuilder`.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from broker.net.listener_access import ListenerAccess
from broker.observe.events import CertificateRefused
from config.key_stores import BadStore
from config.keys import Config
from config.listener_security import listener_security
from config.listeners import BadListeners, Listener
from config.security_keys import SecurityKeys
from protocol.config_def import ConfigException
from security.sasl.oauthbearer import OAUTHBEARER

if TYPE_CHECKING:
    from broker.net.oauth_tokens import OauthTokens
    from broker.net.sasl_servers import ScramUsers, TokenValidator
    from broker.net.tls.listener_tls import ListenerTls


Tokens = Mapping[str, "OauthTokens"]
"""The checks of tokens of the listeners with OAUTHBEARER, by name."""


def open_tls(config: Config) -> dict[str, "ListenerTls"]:
    """Of the listeners that have TLS, by name. Raises BadStore, BadListeners."""
    listeners = [listener for listener in config.endpoints if listener.protocol.has_tls]
    if not listeners:
        return {}
    from broker.net.tls.listener_tls import ListenerTls

    return {
        listener.name: ListenerTls(listener.name, listener_security(config, listener).values)
        for listener in listeners
    }


def open_tokens(config: Config) -> dict[str, "OauthTokens"]:
    """Of the listeners with OAUTHBEARER, by name. Raises BadStore, BadListeners."""
    tokens: dict[str, OauthTokens] = {}
    for listener in config.endpoints:
        mechanism = listener_security(config, listener).mechanisms.get(OAUTHBEARER)
        if mechanism is not None:
            # The library of tokens takes a tenth of a start; most daemons have none.
            from broker.net import oauth_tokens

            tokens[listener.name] = oauth_tokens.OauthTokens(mechanism.values)
    return tokens


def check_stores(tls: Mapping[str, "ListenerTls"], config: Config) -> None:
    """Read the stores of a configuration that is about to be changed. Raises ConfigException."""
    for own, values in _with_tls(config, tls):
        try:
            own.check(values())
        except (BadStore, BadListeners) as bad:
            prefix = f"listener.name.{own.name.lower()}."
            raise ConfigException(f"{prefix}{bad.key}: {bad}") from None


def use_stores(
    tls: Mapping[str, "ListenerTls"], config: Config, observe: Callable[[CertificateRefused], None]
) -> None:
    """Use the stores of a changed configuration. At a start one of them may be gone."""
    for own, values in _with_tls(config, tls):
        try:
            own.reload(values())
        except (BadStore, BadListeners) as bad:
            observe(CertificateRefused(own.name, f"{bad.key}: {bad}"))


def _with_tls(
    config: Config, tls: Mapping[str, "ListenerTls"]
) -> list[tuple["ListenerTls", Callable[[], SecurityKeys]]]:
    def values(listener: Listener) -> SecurityKeys:
        return listener_security(config, listener).values

    return [
        (tls[listener.name], partial(values, listener))
        for listener in config.endpoints
        if listener.name in tls
    ]


def listener_access(
    config: Config,
    tls: Mapping[str, "ListenerTls"],
    users: "ScramUsers",
    tokens: Mapping[str, "TokenValidator"],
) -> dict[str, ListenerAccess]:
    """By listener; one with nothing to do is missing.

    `tokens` has what checks them for each listener with OAUTHBEARER.
    """
    access: dict[str, ListenerAccess] = {}
    for listener in config.endpoints:
        security = listener_security(config, listener)
        own_tls = tls.get(listener.name)
        sasl = None
        if security.protocol.has_sasl:
            from broker.net.sasl_servers import sasl_access

            sasl = sasl_access(security, users, tokens.get(listener.name))
        if own_tls is not None or sasl is not None:
            access[listener.name] = ListenerAccess(own_tls, sasl)
    return access
