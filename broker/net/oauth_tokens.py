"""OAuth tokens: whether a JWT is signed by a known key, and what its claims say.

Needs no I/O: the keys are here already (`token_keys.py`). The checks are those of Kafka: `exp` and
`iat` are required, `nbf` counts, the issuer and the audience as configured; a token with an
audience is refused if none is expected. Unsigned tokens and those that are signed with a shared
secret are refused. Kafka's counterpart: `BrokerJwtValidator`.
"""

import math
from collections.abc import Mapping
from itertools import islice
from typing import Final

import jwt
from jwt.exceptions import InvalidSignatureError

from broker.net.token_keys import TOKEN_ALGORITHMS, TokenKeys
from config.security_keys import SecurityKeys
from protocol.java_text import trim
from security.sasl.oauthbearer import InvalidToken, ValidToken

_END_OF_TIME_MS: Final = 253_402_300_799_000  # of the year 9999
_KEYS_TRIED_MAX: Final = 8  # for a token that names no key


class OauthTokens:
    """Of one listener. `validate` is what an OauthBearerServer asks."""

    def __init__(self, values: SecurityKeys) -> None:
        """Reads the keys. Raises BadKeySet."""
        self._values = values
        self.keys = TokenKeys(values)
        self.keys.load()

    def validate(self, token: str) -> ValidToken:
        """Raises InvalidToken."""
        try:
            return self._valid(self._claims(token))
        except InvalidToken:
            raise
        except Exception as fault:  # noqa: BLE001 - a library reads what any client sends
            raise InvalidToken(f"{type(fault).__name__}: {_short(fault)}") from None

    def _claims(self, token: str) -> Mapping[str, object]:
        header = jwt.get_unverified_header(token)
        algorithm, key_id = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in TOKEN_ALGORITHMS:
            raise InvalidToken("its algorithm is not one of public keys")
        if "crit" in header:  # b64 is one that the library knows; Kafka's knows none
            raise InvalidToken("it has critical header fields")
        keys = list(islice(self.keys.find(key_id, algorithm), _KEYS_TRIED_MAX))
        for key in keys:
            try:
                return self._verified(token, key, algorithm)
            except InvalidSignatureError:
                continue
        if not keys:
            self.keys.ask(key_id)
            raise InvalidToken("its key is not known")
        raise InvalidToken("its signature is wrong")

    def _verified(self, token: str, key: jwt.PyJWK, algorithm: str) -> Mapping[str, object]:
        values = self._values
        claims: Mapping[str, object] = jwt.decode(
            token,
            key,
            algorithms=[algorithm],
            audience=values.sasl_oauthbearer_expected_audience or None,
            issuer=values.sasl_oauthbearer_expected_issuer or None,
            leeway=values.sasl_oauthbearer_clock_skew_seconds,
            options={
                "require": ["exp", "iat"],
                "verify_iat": False,  # it may be in the future, as for Kafka
                "verify_sub": False,  # another claim may name the principal
                "verify_jti": False,
            },
        )
        return claims

    def _valid(self, claims: Mapping[str, object]) -> ValidToken:
        _seconds(claims, "iat")
        expires_at_ms = min(int(_seconds(claims, "exp") * 1_000), _END_OF_TIME_MS)
        _check_scopes(claims.get(self._values.sasl_oauthbearer_scope_claim_name))
        principal = claims.get(self._values.sasl_oauthbearer_sub_claim_name)
        if not isinstance(principal, str) or not trim(principal):
            name = self._values.sasl_oauthbearer_sub_claim_name
            raise InvalidToken(f"its claim {name} names no principal")
        return ValidToken(trim(principal), expires_at_ms)


def _seconds(claims: Mapping[str, object], name: str) -> int | float:
    value = claims[name]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or value < 0:  # type: ignore[arg-type, operator]  # it is a number
        raise InvalidToken(f"its claim {name} is no time")
    return value  # type: ignore[return-value]  # it is a number


def _check_scopes(claim: object) -> None:
    """One text, or a list of different ones. Nothing is done with them."""
    scopes = claim if isinstance(claim, list) else [claim] if isinstance(claim, str) else []
    texts = [trim(scope) for scope in scopes if isinstance(scope, str)]
    if len(texts) != len(scopes) or not all(texts) or len(set(texts)) != len(texts):
        raise InvalidToken("its scopes are empty, or named twice")


def _short(fault: Exception) -> str:
    return str(fault)[:200]
