"""SCRAM: a client proves that it knows a password without sending it (RFC 5802, RFC 7677).

Client first message, server first message, client final message, server final message. What may
stand in them is as in Kafka: no channel binding, user names in ASCII, unknown extensions ignored.
Kafka refuses an unknown user at the first message, which tells who exists. Here such a user gets a
made-up credential and fails at the proof, as with a wrong password; the error is the same. A
mandatory extension (`m=`), which Kafka ignores, is refused, as RFC 5802 demands.
Delegation tokens (`tokenauth=true`) are not served. Kafka's counterparts: `ScramSaslServer`,
`ScramMessages`.
"""

import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from hashlib import new as new_hash
from hmac import compare_digest, digest
from typing import Final

from security.sasl.exchange import InvalidCredentials, SaslFailure
from security.sasl.scram_credential import ITERATIONS_MIN, SCRAM_HASHES, ScramCredential

_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_VALUE: Final = r"[\x01-\x2b\x2d-\x7f]+"
_NONCE: Final = r"[\x21-\x2b\x2d-\x7e]+"
_EXTENSIONS: Final = f"(?:,[A-Za-z]+={_VALUE})*"
_BASE64: Final = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"

_CLIENT_FIRST: Final = re.compile(
    f"n,(?:a=(?P<authzid>{_NAME}))?,"
    f"(?P<bare>n=(?P<name>{_NAME}),r=(?P<nonce>{_NONCE})(?P<extensions>{_EXTENSIONS}))"
)
_CLIENT_FINAL: Final = re.compile(
    f"(?P<without_proof>c={_BASE64},r=(?P<nonce>{_NONCE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)


class ScramServer:
    """Implements SaslServer."""

    expires_at_ms: int | None = None

    def __init__(
        self,
        mechanism: str,
        credential_of: Callable[[str], ScramCredential | None],
        new_nonce: Callable[[], str],
        made_up: Callable[[str], ScramCredential] | None = None,
    ) -> None:
        """`made_up` gives what an unknown user is asked for; None: refused at once, as in Kafka."""
        self.mechanism = mechanism
        self.is_complete = False
        self.claimed_name = self.principal_name = ""
        self._credential_of = credential_of
        self._new_nonce = new_nonce
        self._made_up = made_up
        self._is_over = False
        self._final: _Expected | None = None  # after the client's first message

    def evaluate(self, token: bytes) -> bytes:
        if self._is_over:
            raise SaslFailure("Unexpected challenge in Sasl server state", "the exchange is over")
        self._is_over = True  # unless it goes on below
        try:
            text = token.decode()
        except UnicodeDecodeError:
            raise self._invalid("the message is no UTF-8") from None
        if self._final is None:
            self._final = self._expected(text)
            self._is_over = False
            return self._final.server_first.encode()
        return self._verify(text, self._final)

    def _expected(self, text: str) -> "_Expected":
        first = _CLIENT_FIRST.fullmatch(text)
        if first is None:
            raise self._invalid("the client first message is malformed")
        if _asks_for_a_token(first["extensions"]):
            raise self._invalid("delegation tokens are not served")
        user = first["name"].replace("=2C", ",").replace("=3D", "=")
        self.claimed_name = user
        known = self._credential_of(user)
        # For every user, so that it always takes the same time.
        made_up = None if self._made_up is None else self._made_up(user)
        credential = made_up if known is None else known
        if credential is None:
            raise self._invalid("there is no such user")
        if first["authzid"] and first["authzid"] != user:
            raise SaslFailure(
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            )
        if credential.iterations < ITERATIONS_MIN:
            raise self._invalid(f"the credential has {credential.iterations} iterations")
        nonce = first["nonce"] + self._new_nonce()
        salt = b64encode(credential.salt).decode()
        server_first = f"r={nonce},s={salt},i={credential.iterations}"
        return _Expected(
            user, credential, nonce, first["bare"], server_first, is_known=known is not None
        )

    def _verify(self, text: str, expected: "_Expected") -> bytes:
        final = _CLIENT_FINAL.fullmatch(text)
        if final is None:
            raise self._invalid("the client final message is malformed")
        if final["nonce"] != expected.nonce:
            raise self._invalid("the nonce of the client final message is not the server's")
        signed = f"{expected.client_first},{expected.server_first},{final['without_proof']}"
        hash_name, credential = SCRAM_HASHES[self.mechanism], expected.credential
        signature = digest(credential.stored_key, signed.encode(), hash_name)
        proof = b64decode(final["proof"])
        if len(proof) != len(signature):
            raise self._invalid("the proof has the wrong size")
        client_key = bytes(a ^ b for a, b in zip(signature, proof, strict=True))
        is_proven = compare_digest(new_hash(hash_name, client_key).digest(), credential.stored_key)
        if not (is_proven and expected.is_known):
            raise self._invalid("wrong password" if expected.is_known else "there is no such user")
        self.is_complete = True
        self.principal_name = expected.user
        answer = digest(credential.server_key, signed.encode(), hash_name)
        return b"v=" + b64encode(answer)

    def _invalid(self, reason: str) -> InvalidCredentials:
        return InvalidCredentials(self.mechanism, reason)


class _Expected:
    """What the client's final message is checked with."""

    __slots__ = ("client_first", "credential", "is_known", "nonce", "server_first", "user")

    def __init__(
        self,
        user: str,
        credential: ScramCredential,
        nonce: str,
        client_first: str,
        server_first: str,
        *,
        is_known: bool,
    ) -> None:
        self.user = user
        self.credential = credential
        self.nonce = nonce
        self.client_first = client_first
        self.server_first = server_first
        self.is_known = is_known


def _asks_for_a_token(extensions: str) -> bool:
    """The last value counts, as in Kafka."""
    pairs = dict(part.partition("=")[::2] for part in extensions.split(","))
    return pairs.get("tokenauth", "").lower() == "true"
