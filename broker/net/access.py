"""Access of the listeners: made from the configuration, once for each listener.

Certificates are read before a port is bound, so that a bad one is one line of a start. Mechanisms
get what they ask: the users of PLAIN, the credentials of SCRAM, the keys that sign tokens.
Kafka's counterparts: `ChannelBuilders.serverChannelBuilder`, `SaslChannelBuilder`.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Protocol

from broker.loop.ids import new_scram_nonce
from broker.net.listener_access import ListenerAccess, SaslAccess, SaslMechanism
from broker.net.tls.listener_tls import ListenerTls
from broker.observe.events import CertificateRefused
from config.key_stores import BadStore
from config.keys import Config
from config.listener_security import ListenerSecurity, MechanismSecurity, listener_security
from config.listeners import BadListeners, Listener
from config.security_keys import SecurityKeys
from protocol.config_def import ConfigException
from security.sasl.exchange import SaslServer
from security.sasl.oauthbearer import OAUTHBEARER, OauthBearerServer, ValidToken
from security.sasl.plain import PLAIN, PlainServer
from security.sasl.scram import ScramServer
from security.sasl.scram_credential import ScramCredential

if TYPE_CHECKING:
    from broker.net.oauth_tokens import OauthTokens


Tokens = Mapping[str, "OauthTokens"]
"""The checks of tokens of the listeners with OAUTHBEARER, by name."""


class ScramUsers(Protocol):
    """What the passwords of SCRAM are checked against."""

    def credential(self, mechanism: str, user: str, /) -> ScramCredential | None: ...

    def made_up(self, mechanism: str, user: str, /) -> ScramCredential:
        """What an unknown user is asked for, so that a client does not learn who is known."""


class TokenValidator(Protocol):
    """What `oauth_tokens.py` gives."""

    def validate(self, token: str) -> ValidToken:
        """Raises InvalidToken."""


def open_tls(config: Config) -> dict[str, ListenerTls]:
    """Of the listeners that have TLS, by name. Raises BadStore, BadListeners."""
    return {
        listener.name: ListenerTls(listener.name, listener_security(config, listener).values)
        for listener in config.endpoints
        if listener.protocol.has_tls
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


def check_stores(tls: Mapping[str, ListenerTls], config: Config) -> None:
    """Read the stores of a configuration that is about to be changed. Raises ConfigException."""
    for own, values in _with_tls(config, tls):
        try:
            own.check(values())
        except (BadStore, BadListeners) as bad:
            prefix = f"listener.name.{own.name.lower()}."
            raise ConfigException(f"{prefix}{bad.key}: {bad}") from None


def use_stores(
    tls: Mapping[str, ListenerTls], config: Config, observe: Callable[[CertificateRefused], None]
) -> None:
    """Use the stores of a changed configuration. At a start one of them may be gone."""
    for own, values in _with_tls(config, tls):
        try:
            own.reload(values())
        except (BadStore, BadListeners) as bad:
            observe(CertificateRefused(own.name, f"{bad.key}: {bad}"))


def _with_tls(
    config: Config, tls: Mapping[str, ListenerTls]
) -> list[tuple[ListenerTls, Callable[[], SecurityKeys]]]:
    def values(listener: Listener) -> SecurityKeys:
        return listener_security(config, listener).values

    return [
        (tls[listener.name], partial(values, listener))
        for listener in config.endpoints
        if listener.name in tls
    ]


def listener_access(
    config: Config,
    tls: Mapping[str, ListenerTls],
    users: ScramUsers,
    tokens: Mapping[str, TokenValidator],
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
            sasl = _sasl(security, users, tokens.get(listener.name))
        if own_tls is not None or sasl is not None:
            access[listener.name] = ListenerAccess(own_tls, sasl)
    return access


def _sasl(
    security: ListenerSecurity, users: ScramUsers, tokens: TokenValidator | None
) -> SaslAccess:
    mechanisms = {
        mechanism.name: SaslMechanism(
            _new_server(mechanism, users, tokens),
            mechanism.values.connections_max_reauth_ms,
        )
        for mechanism in security.mechanisms.values()
    }
    return SaslAccess(mechanisms, security.values.sasl_server_max_receive_size)


def _new_server(
    mechanism: MechanismSecurity, users: ScramUsers, tokens: TokenValidator | None
) -> Callable[[], SaslServer]:
    name = mechanism.name
    if name == PLAIN:
        return partial(PlainServer, mechanism.plain_users)
    if name == OAUTHBEARER:
        assert tokens is not None, "open_tokens has them for every such listener"
        return partial(OauthBearerServer, tokens.validate)
    credential, made_up = partial(users.credential, name), partial(users.made_up, name)
    return partial(ScramServer, name, credential, new_scram_nonce, made_up)
