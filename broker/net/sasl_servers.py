"""SASL servers: the mechanisms of a listener, and what each asks. Imported where one has SASL.

Kafka's counterpart: `SaslServerAuthenticator.createSaslServer`.
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from broker.loop.ids import new_scram_nonce
from broker.net.listener_access import SaslAccess, SaslMechanism
from config.listener_security import ListenerSecurity, MechanismSecurity
from security.sasl.exchange import SaslServer
from security.sasl.oauthbearer import OAUTHBEARER, OauthBearerServer, ValidToken
from security.sasl.plain import PLAIN, PlainServer
from security.sasl.scram import ScramServer
from security.sasl.scram_credential import ScramCredential


class ScramUsers(Protocol):
    """What the passwords of SCRAM are checked against."""

    def credential(self, mechanism: str, user: str, /) -> ScramCredential | None: ...

    def made_up(self, mechanism: str, user: str, /) -> ScramCredential:
        """What an unknown user is asked for, so that a client does not learn who is known."""


class TokenValidator(Protocol):
    """What `oauth_tokens.py` gives."""

    def validate(self, token: str) -> ValidToken:
        """Raises InvalidToken."""


def sasl_access(
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
