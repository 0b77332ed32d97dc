"""TLS clients: certificates of a test's authority, for a listener and for its clients."""

import asyncio
import ssl
from functools import cache
from pathlib import Path

import trustme

from config.security_keys import SecurityKeys
from tests.broker.shell import Client

PASSWORD = "a store's password"


@cache
def authority() -> trustme.CA:
    return trustme.CA(key_type=trustme.KeyType.ECDSA)


def write_key_store(path: Path, *names: str, common_name: str = "server") -> SecurityKeys:
    """A PEM key store of a server certificate, and the values that name it."""
    certificate = authority().issue_cert(
        *(names or ("localhost", "127.0.0.1")),
        common_name=common_name,
        organization_name="Rollcall",
        organization_unit_name="Tests",
    )
    path.write_bytes(
        certificate.private_key_pem.bytes()
        + b"".join(blob.bytes() for blob in certificate.cert_chain_pems)
    )
    return SecurityKeys(ssl_keystore_type="PEM", ssl_keystore_location=str(path))


def trusting(values: SecurityKeys, client_auth: str, **other: str) -> SecurityKeys:
    """The same, trusting the test's authority for clients."""
    from msgspec.structs import replace

    return replace(
        values,
        ssl_truststore_type="PEM",
        ssl_truststore_certificates=authority().cert_pem.bytes().decode(),
        ssl_client_auth=client_auth,
        **other,
    )


def client_context(
    common_name: str | None = None, ca: trustme.CA | None = None, **options: object
) -> ssl.SSLContext:
    """Trusts the server; with a name it has a certificate of `ca`, else the test's authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority().configure_trust(context)
    for name, value in options.items():
        setattr(context, name, value)
    if common_name is not None:
        issuer = ca or authority()
        issuer.issue_cert(
            "client.test", common_name=common_name, organization_name="Rollcall"
        ).configure_cert(context)
    return context


async def tls_client(port: int, context: ssl.SSLContext) -> Client:
    """Raises ssl.SSLError, ConnectionError."""
    return Client(*await asyncio.open_connection("localhost", port, ssl=context, family=2))
