"""Hashes: those of OpenSSL that authentication needs, which is loaded with the first use.

OpenSSL takes 4 MB, and most daemons have no listener with SASL. What checks passwords itself
(plain.py, scram.py) is imported for such a listener only.
"""

from typing import Final

DIGEST_BYTES: Final = {"sha256": 32, "sha512": 64}
"""By the name of the hash."""


def hmac_digest(key: bytes, message: bytes, hash_name: str) -> bytes:
    from hmac import digest

    return digest(key, message, hash_name)


def hash_digest(hash_name: str, message: bytes) -> bytes:
    from hashlib import new

    return new(hash_name, message).digest()


def shake_256_digest(message: bytes, size_bytes: int) -> bytes:
    from hashlib import shake_256

    return shake_256(message).digest(size_bytes)


def pbkdf2(hash_name: str, password: bytes, salt: bytes, iterations: int) -> bytes:
    """Takes about 10 ms for 16,384 iterations."""
    from hashlib import pbkdf2_hmac

    return pbkdf2_hmac(hash_name, password, salt, iterations)
