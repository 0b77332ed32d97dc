"""SCRAM credentials: what a server keeps of a password (RFC 5802), and its text form.

From a credential nobody can log in, and the password can only be guessed, at the price of
`iterations` hashes for each guess. Kafka's counterparts: `ScramCredential`, `ScramFormatter`,
`ScramCredentialUtils`. As in Kafka, passwords are not normalised: SASLprep is not applied.
"""

from base64 import b64decode, b64encode
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Final

from msgspec import Struct

from security.sasl.hashes import (
    DIGEST_BYTES,
    hash_digest,
    hmac_digest,
    pbkdf2,
    shake_256_digest,
)

SCRAM_SHA_256: Final = "SCRAM-SHA-256"
SCRAM_SHA_512: Final = "SCRAM-SHA-512"

SCRAM_HASHES: Final[Mapping[str, str]] = {SCRAM_SHA_256: "sha256", SCRAM_SHA_512: "sha512"}
"""The mechanisms, and the hash of each."""

SCRAM_MECHANISM_IDS: Final[Mapping[int, str]] = {1: SCRAM_SHA_256, 2: SCRAM_SHA_512}
"""The numbers of the mechanisms in requests."""

ITERATIONS_MIN: Final = 4_096
ITERATIONS_MAX: Final = 16_384

_ITERATIONS_DIGITS: Final = 10  # of an int32
_FIELDS: Final = ("salt", "stored_key", "server_key", "iterations")


class ScramCredential(Struct, frozen=True):
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        """Without the keys: with a server key one can pose as the server."""
        return f"ScramCredential({self.iterations} iterations)"


def scram_credential(
    mechanism: str, password: str, salt: bytes, iterations: int
) -> ScramCredential:
    """Takes about 10 ms for 16,384 iterations: not for the event loop."""
    secret = password.encode("utf-8", "surrogatepass")
    salted = pbkdf2(SCRAM_HASHES[mechanism], secret, salt, iterations)
    return credential_of_salted_password(mechanism, salted, salt, iterations)


def credential_of_salted_password(
    mechanism: str, salted_password: bytes, salt: bytes, iterations: int
) -> ScramCredential:
    """Of what AlterUserScramCredentials carries: the client has done the hashing."""
    hash_name = SCRAM_HASHES[mechanism]
    client_key = hmac_digest(salted_password, b"Client Key", hash_name)
    return ScramCredential(
        salt=salt,
        stored_key=hash_digest(hash_name, client_key),
        server_key=hmac_digest(salted_password, b"Server Key", hash_name),
        iterations=iterations,
    )


class CredentialShape(Struct, frozen=True, order=True):
    """What a client sees of a credential that says who made it."""

    iterations: int
    salt_bytes: int
    """0: a salt as Kafka's tools make it, a number of 130 bits to the base 36."""

    @classmethod
    def of(cls, credential: ScramCredential) -> "CredentialShape":
        salt = credential.salt
        is_number = len(salt) in _NUMBER_DIGITS and not set(salt) - set(_BASE_36)
        return cls(credential.iterations, 0 if is_number else len(salt))


class CredentialShapes:
    """The shapes of all credentials of a mechanism, and how frequent each is."""

    def __init__(self, credentials: Iterable[ScramCredential] = ()) -> None:
        counts = sorted(Counter(map(CredentialShape.of, credentials)).items())
        self._shapes = [shape for shape, _ in counts] or [_OF_KAFKA]
        self._ends = list(accumulate(count for _, count in counts)) or [1]

    def at(self, share: float) -> CredentialShape:
        """`share` is from 0 to below 1: as many get a shape as have it."""
        return self._shapes[bisect_right(self._ends, share * self._ends[-1])]


def made_up_credential(
    mechanism: str, user: str, secret: bytes, shapes: CredentialShapes
) -> ScramCredential:
    """For a user who does not exist: keys that no password has, with the shape of a real one.

    The same user gets the same, as long as the shape stays; another shape has another salt, as with
    a new password.
    """
    name = f"{mechanism},{user}".encode("utf-8", "surrogatepass")
    share = int.from_bytes(hmac_digest(secret, name, "sha256")[:6]) / 2**48
    shape = shapes.at(share)
    salted = hmac_digest(secret, b"%s,%d,%d" % (name, shape.iterations, shape.salt_bytes), "sha256")
    if shape.salt_bytes:
        salt = shake_256_digest(salted, shape.salt_bytes)
    else:
        salt = base_36(int.from_bytes(salted) >> (256 - SALT_BITS)).encode()
    size = DIGEST_BYTES[SCRAM_HASHES[mechanism]]
    return ScramCredential(salt, bytes(size), bytes(size), shape.iterations)


SALT_BITS: Final = 130
"""Random bits of a salt or nonce that Kafka's tools make."""

_NUMBER_DIGITS: Final = range(23, 27)  # of 26 digits the first is 1, often it is missing
_BASE_36: Final = b"0123456789abcdefghijklmnopqrstuvwxyz"
_OF_KAFKA: Final = CredentialShape(ITERATIONS_MIN, 0)


def base_36(number: int) -> str:
    """As Java's `BigInteger.toString(36)`; 0 or greater."""
    digits = bytearray()
    while number:
        number, digit = divmod(number, 36)
        digits.append(_BASE_36[digit])
    return digits[::-1].decode() or "0"


# The text form: salt=…,stored_key=…,server_key=…,iterations=…


def format_credential(credential: ScramCredential) -> str:
    values = (
        b64encode(credential.salt).decode(),
        b64encode(credential.stored_key).decode(),
        b64encode(credential.server_key).decode(),
        str(credential.iterations),
    )
    return ",".join(f"{name}={value}" for name, value in zip(_FIELDS, values, strict=True))


def parse_credential(mechanism: str, text: str) -> ScramCredential:
    """Raises ValueError, whose message has nothing of the text."""
    pairs = dict(part.partition("=")[::2] for part in text.split(","))
    if set(pairs) != set(_FIELDS) or text.count(",") != len(_FIELDS) - 1:
        raise ValueError("a SCRAM credential has a salt, two keys and a number of iterations")
    salt, stored_key, server_key = (_bytes_of(pairs[name]) for name in _FIELDS[:3])
    size = DIGEST_BYTES[SCRAM_HASHES[mechanism]]
    if len(stored_key) != size or len(server_key) != size:
        raise ValueError(f"the keys of a {mechanism} credential have {size} bytes")
    digits = pairs["iterations"]
    is_number = digits.isascii() and digits.isdecimal() and len(digits) <= _ITERATIONS_DIGITS
    if not is_number or int(digits) < 1:
        raise ValueError("the iterations of a SCRAM credential are no number above 0")
    return ScramCredential(salt, stored_key, server_key, int(digits))


def _bytes_of(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError:  # binascii.Error included
        raise ValueError("a part of a SCRAM credential is no base64") from None
