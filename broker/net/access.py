"""Access of the listeners: made from the configuration, once for each listener.

Certificates are read before a port is bound, so that a bad one is one line of a start. Mechanisms
get what they ask: the users of PLAIN, the credentials of SCRAM, the keys that sign tokens.
Kafka's counterparts: `ChannelBuilders.serverChannelBuilder`, `SaslChannelBuilder`.
"""

from collections.abc import Callable, Mapping
from functools import partial

from broker.loop.ids import new_scram_nonce
from broker.net.listener_access import ListenerAccess, SaslAccess, SaslMechanism
from broker.net.tls.listener_tls import ListenerTls
from config.keys import Config
from config.listener_security import ListenerSecurity, MechanismSecurity, listener_security
from security.sasl.exchange import SaslServer
from security.sasl.oauthbearer import OAUTHBEARER, OauthBearerServer, ValidToken
from security.sasl.plain import PLAIN, PlainServer
from security.sasl.scram import ScramServer
from security.sasl.scram_credential import ScramCredential

CredentialOf = Callable[[str, str], ScramCredential | None]
"""(mechanism, user) -> what the user's password is checked against."""

TokenValidator = Callable[[str], ValidToken]


def open_tls(config: Config) -> dict[str, ListenerTls]:
    """Of the listeners that have TLS, by name. Raises BadStore, BadListeners."""
    return {
        listener.name: ListenerTls(listener.name, listener_security(config, listener).values)
        for listener in config.endpoints
        if listener.protocol.has_tls
    }


def listener_access(
    config: Config,
    tls: Mapping[str, ListenerTls],
    credential_of: CredentialOf,
    validator: Callable[[str, MechanismSecurity], TokenValidator],
) -> dict[str, ListenerAccess]:
    """By listener; one with nothing to do is missing.

    `validator` makes what checks the tokens of a listener, which it gets the name of.
    """
    access: dict[str, ListenerAccess] = {}
    for listener in config.endpoints:
        security = listener_security(config, listener)
        own_tls = tls.get(listener.name)
        sasl = None
        if security.protocol.has_sasl:
            validate = partial(validator, listener.name)
            sasl = _sasl(security, credential_of, validate)
        if own_tls is not None or sasl is not None:
            access[listener.name] = ListenerAccess(own_tls, sasl)
    return access


def _sasl(
    security: ListenerSecurity,
    credential_of: CredentialOf,
    validator: Callable[[MechanismSecurity], TokenValidator],
) -> SaslAccess:
    mechanisms = {
        mechanism.name: SaslMechanism(
            _new_server(mechanism, credential_of, validator),
            mechanism.values.connections_max_reauth_ms,
        )
        for mechanism in security.mechanisms.values()
    }
    return SaslAccess(mechanisms, security.values.sasl_server_max_receive_size)


def _new_server(
    mechanism: MechanismSecurity,
    credential_of: CredentialOf,
    validator: Callable[[MechanismSecurity], TokenValidator],
) -> Callable[[], SaslServer]:
    name = mechanism.name
    if name == PLAIN:
        return partial(PlainServer, mechanism.plain_users)
    if name == OAUTHBEARER:
        return partial(OauthBearerServer, validator(mechanism))
    return partial(ScramServer, name, partial(credential_of, name), new_scram_nonce)
