"""SCRAM client: the messages of the side that proves its password (RFC 5802).

It also checks that the server knows the password's credential. Kafka's counterpart:
`ScramSaslClient`. As in Kafka, passwords are not normalised.
"""

import re
from base64 import b64decode, b64encode
from binascii import Error as BadBase64
from hashlib import new as new_hash
from hashlib import pbkdf2_hmac
from hmac import compare_digest, digest
from typing import Final

from security.sasl.exchange import SaslFailure
from security.sasl.scram_credential import ITERATIONS_MIN, SCRAM_HASHES

CLIENT_ITERATIONS_MAX: Final = 1_000_000
"""A server that asks for more would keep the client busy for seconds."""

_SERVER_FIRST: Final = re.compile(r"r=(?P<nonce>[^,]+),s=(?P<salt>[^,]+),i=(?P<i>[0-9]{1,9})")


class ScramClient:
    """One exchange; `nonce` is random and of printable characters."""

    def __init__(self, mechanism: str, user: str, password: str, nonce: str) -> None:
        self._hash = SCRAM_HASHES[mechanism]
        self._password = password.encode("utf-8", "surrogatepass")
        self._nonce = nonce
        name = user.replace("=", "=3D").replace(",", "=2C")
        self._first_bare = f"n={name},r={nonce}"
        self._server_signature = b""

    def first_message(self) -> bytes:
        return f"n,,{self._first_bare}".encode()

    def final_message(self, server_first: bytes) -> bytes:
        """Raises SaslFailure."""
        text = server_first.decode(errors="replace")
        match = _SERVER_FIRST.match(text)
        if match is None:  # also with a mandatory extension (`m=`), as RFC 5802 demands
            raise SaslFailure("the server's first message is malformed")
        if not match["nonce"].startswith(self._nonce) or match["nonce"] == self._nonce:
            raise SaslFailure("the server's nonce does not belong to this exchange")
        iterations = int(match["i"])
        if not ITERATIONS_MIN <= iterations <= CLIENT_ITERATIONS_MAX:
            raise SaslFailure(f"the server asks for {iterations} iterations")
        try:
            salt = b64decode(match["salt"], validate=True)
        except BadBase64:
            raise SaslFailure("the server's salt is not Base64") from None
        salted = pbkdf2_hmac(self._hash, self._password, salt, iterations)
        without_proof = f"c=biws,r={match['nonce']}"
        signed = f"{self._first_bare},{text},{without_proof}".encode()
        client_key = digest(salted, b"Client Key", self._hash)
        signature = digest(new_hash(self._hash, client_key).digest(), signed, self._hash)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        server_key = digest(salted, b"Server Key", self._hash)
        self._server_signature = digest(server_key, signed, self._hash)
        return f"{without_proof},p={b64encode(proof).decode()}".encode()

    def check_server(self, server_final: bytes) -> None:
        """Raises SaslFailure for a server that does not know the credential."""
        expected = b"v=" + b64encode(self._server_signature)
        if not self._server_signature or not compare_digest(server_final, expected):
            raise SaslFailure("the server cannot prove that it knows the user")
