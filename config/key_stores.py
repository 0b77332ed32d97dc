"""Key and trust stores: reads certificates and private keys from PEM and PKCS12.

Values are PEM texts in memory. Errors are `BadStore`: one line for the operator, which names the
key of the configuration and never shows a secret. Kafka's counterparts: `DefaultSslEngineFactory`
with its `FileBasedStore`, `FileBasedPemStore` and `PemStore`.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

from config.security_keys import SecurityKeys

STORE_BYTES_MAX: Final = 4_194_304
"""A key or trust store; a larger file was named by mistake."""

_JKS_MAGIC: Final = b"\xfe\xed\xfe\xed"
_BLOCK: Final = re.compile(
    rb"-----BEGIN (?P<kind>[A-Z0-9 ]+)-----.*?-----END (?P=kind)-----", re.DOTALL
)
_CERTIFICATE: Final = b"CERTIFICATE"


class BadStore(Exception):
    """A store that cannot be used; `key` is the configuration's."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(reason)
        self.key = key


class KeyStore(Struct, frozen=True):
    """A private key and its certificate chain, the server's own certificate first."""

    key_pem: bytes
    chain_pem: bytes

    @property
    def certificate_pem(self) -> bytes:
        """The server's own."""
        match = _BLOCK.search(self.chain_pem)
        assert match is not None, "a key store has a certificate"
        return match[0]

    def __repr__(self) -> str:
        return "KeyStore(...)"


def store_files(values: SecurityKeys) -> list[Path]:
    """The files that the stores are read from."""
    locations = (values.ssl_keystore_location, values.ssl_truststore_location)
    return [Path(location) for location in locations if location]


def read_key_store(values: SecurityKeys) -> KeyStore:
    """Raises BadStore."""
    if values.ssl_keystore_key:
        if values.ssl_keystore_type != "PEM":
            raise BadStore("ssl.keystore.type", "must be PEM with ssl.keystore.key")
        return _pem_key_store(
            values.ssl_keystore_key.encode(),
            values.ssl_keystore_certificate_chain.encode(),
            values.ssl_key_password,
            "ssl.keystore.key",
        )
    key = "ssl.keystore.location"
    content = _read(values.ssl_keystore_location, key)
    if values.ssl_keystore_type == "PEM":
        if values.ssl_keystore_password:
            raise BadStore("ssl.keystore.password", "must not be set for PEM: ssl.key.password")
        return _pem_key_store(content, content, values.ssl_key_password, key)
    _refuse_jks(content, values.ssl_keystore_location, key)
    return _pkcs12_key_store(content, values.ssl_keystore_password, values.ssl_key_password)


def read_trusted(values: SecurityKeys) -> str | None:
    """The trusted certificates as PEM; None without a trust store. Raises BadStore."""
    if values.ssl_truststore_certificates:
        content, key = values.ssl_truststore_certificates.encode(), "ssl.truststore.certificates"
        if values.ssl_truststore_type != "PEM":
            raise BadStore("ssl.truststore.type", f"must be PEM with {key}")
        return _certificates(content, key).decode()
    if not values.ssl_truststore_location:
        return None
    key = "ssl.truststore.location"
    content = _read(values.ssl_truststore_location, key)
    if values.ssl_truststore_type == "PEM":
        return _certificates(content, key).decode()
    _refuse_jks(content, values.ssl_truststore_location, key)
    return _pkcs12_certificates(content, values.ssl_truststore_password)


def _read(location: str, key: str) -> bytes:
    try:
        with Path(location).open("rb") as file:
            content = file.read(STORE_BYTES_MAX + 1)
    except (OSError, ValueError) as failed:
        reason = failed.strerror if isinstance(failed, OSError) else "not a path"
        raise BadStore(key, f"{location}: {reason}") from None
    if len(content) > STORE_BYTES_MAX:
        raise BadStore(key, f"{location}: larger than {STORE_BYTES_MAX} bytes")
    return content


def _refuse_jks(content: bytes, location: str, key: str) -> None:
    if content.startswith(_JKS_MAGIC):
        raise BadStore(
            key,
            f"{location} is in the old form JKS; convert it: keytool -importkeystore "
            "-srckeystore OLD -destkeystore NEW -deststoretype pkcs12",
        )


def _blocks(content: bytes) -> list[tuple[bytes, bytes]]:
    return [(match["kind"], match[0]) for match in _BLOCK.finditer(content)]


def _certificates(content: bytes, key: str) -> bytes:
    """All certificates of a PEM text; each is parsed, so that a bad one is found at the start."""
    from cryptography import x509  # slow to import; most daemons have no TLS

    found = [block for kind, block in _blocks(content) if kind == _CERTIFICATE]
    if not found:
        raise BadStore(key, "has no certificate in PEM")
    for block in found:
        try:
            x509.load_pem_x509_certificate(block)
        except ValueError as bad:
            raise BadStore(key, f"has a certificate that cannot be read: {bad}") from None
    return b"\n".join(found) + b"\n"


def _pem_key_store(key_text: bytes, chain_text: bytes, password: str, key: str) -> KeyStore:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    chain = _certificates(
        chain_text, key.replace("ssl.keystore.key", "ssl.keystore.certificate.chain")
    )
    keys = [block for kind, block in _blocks(key_text) if kind.endswith(b"PRIVATE KEY")]
    if len(keys) != 1:
        raise BadStore(key, f"must have one private key in PEM, and has {len(keys)}")
    is_encrypted = b"ENCRYPTED" in keys[0]
    try:
        private = load_pem_private_key(keys[0], password.encode() if is_encrypted else None)
    except (ValueError, TypeError):
        reason = "its password is wrong" if password else "it needs ssl.key.password"
        if not is_encrypted:
            reason = "it is damaged"
        secret_key = "ssl.key.password" if is_encrypted else key
        raise BadStore(secret_key, f"the private key cannot be read: {reason}") from None
    return _matching(_plain_pem(private), chain, key)


def _pkcs12_key_store(content: bytes, password: str, key_password: str) -> KeyStore:
    from cryptography.hazmat.primitives.serialization import Encoding, pkcs12

    key = "ssl.keystore.location"
    if key_password and key_password != password:
        raise BadStore("ssl.key.password", "must be that of the key store in PKCS12")
    try:
        store = pkcs12.load_pkcs12(content, password.encode() if password else None)
    except ValueError:
        reason = "it is no PKCS12 file, or the password is wrong"
        raise BadStore("ssl.keystore.password", f"the key store cannot be read: {reason}") from None
    if store.key is None or store.cert is None:
        raise BadStore(key, "has no private key with a certificate")
    chain = [store.cert.certificate, *(each.certificate for each in store.additional_certs)]
    pem = b"".join(certificate.public_bytes(Encoding.PEM) for certificate in chain)
    return _matching(_plain_pem(store.key), pem, key)


def _pkcs12_certificates(content: bytes, password: str) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, pkcs12

    try:
        store = pkcs12.load_pkcs12(content, password.encode() if password else None)
    except ValueError:
        reason = "it is no PKCS12 file, or the password is wrong"
        raise BadStore(
            "ssl.truststore.password", f"the trust store cannot be read: {reason}"
        ) from None
    found = [*([store.cert] if store.cert else []), *store.additional_certs]
    if not found:
        raise BadStore("ssl.truststore.location", "has no certificate")
    return b"".join(each.certificate.public_bytes(Encoding.PEM) for each in found).decode()


def _plain_pem(private: object) -> bytes:
    """Without a password: it stays in memory."""
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    dump = getattr(private, "private_bytes", None)
    if dump is None:
        raise BadStore("ssl.keystore.location", "has a private key of a kind that TLS cannot use")
    pem: bytes = dump(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return pem


def _matching(key_pem: bytes, chain_pem: bytes, key: str) -> KeyStore:
    """The certificate of the key comes first, as OpenSSL wants it."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        PublicFormat,
        load_pem_private_key,
    )

    form = Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    public = load_pem_private_key(key_pem, None).public_key().public_bytes(*form)
    blocks = [block for _, block in _blocks(chain_pem)]
    first = next(
        (
            number
            for number, block in enumerate(blocks)
            if x509.load_pem_x509_certificate(block).public_key().public_bytes(*form) == public
        ),
        None,
    )
    if first is None:
        raise BadStore(key, "has no certificate of its private key")
    blocks.insert(0, blocks.pop(first))
    return KeyStore(key_pem, b"\n".join(blocks) + b"\n")


@contextmanager
def in_memory(content: bytes) -> Iterator[str]:
    """A path from which OpenSSL can read the content: a key is never written to a disk."""
    number = os.memfd_create("rollcall-tls", os.MFD_CLOEXEC)
    try:
        os.write(number, content)
        yield f"/proc/self/fd/{number}"
    finally:
        os.close(number)
