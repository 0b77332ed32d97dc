"""Client properties: how to reach a secured cluster, from a file of Kafka's client properties.

The file is that of Kafka's tools (`--command-config`): `security.protocol`, `ssl.*`, `sasl.*`,
`client.id`, `request.timeout.ms`. Names that a command has no use for are ignored, as Kafka's tools
do. Kafka's counterparts: `SaslConfigs`, `SslConfigs`, `JaasContext`, `DefaultSslEngineFactory`.
"""

import re
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from client.errors import BadClientProperties
from config.java_properties import BadProperties, parse_properties
from config.key_stores import BadStore, in_memory, read_key_store, read_trusted
from config.security_keys import MECHANISMS, TLS_VERSIONS, SecurityKeys
from protocol.java_text import parse_integer, split_list, trim

PROPERTIES_BYTES_MAX: Final = 1 << 20
"""A file of properties; a larger one was named by mistake."""

_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
DEFAULT_TIMEOUT_S: Final = 30.0
_JAAS_OPTION: Final = re.compile(r"""(\w[\w.]*)\s*=\s*("(?:[^"\\]|\\.)*"|[^\s;"]+)""")


class Login(Struct, frozen=True):
    """What a SASL mechanism needs. `token_location`: a file with a bearer token."""

    mechanism: str
    username: str = ""
    password: str = ""
    token_location: str = ""

    def __repr__(self) -> str:
        return f"Login({self.mechanism}, {self.username!r})"


class ClientProperties(Struct, frozen=True):
    """`bootstrap` is that of the file, "" without one. No `tls`, no `login`: none is asked for."""

    bootstrap: str = ""
    client_id: str = "rollcall"
    timeout_s: float = DEFAULT_TIMEOUT_S
    tls: ssl.SSLContext | None = None
    login: Login | None = None


def read_client_properties(path: Path) -> ClientProperties:
    """Raises BadClientProperties."""
    try:
        with path.open("rb") as file:
            content = file.read(PROPERTIES_BYTES_MAX)
            has_more = bool(file.read(1))
    except OSError as failed:
        raise BadClientProperties(f"{path}: {failed.strerror or failed}") from None
    if has_more:
        raise BadClientProperties(f"{path}: larger than {PROPERTIES_BYTES_MAX} bytes")
    try:
        return client_properties(parse_properties(content))
    except BadProperties as bad:
        raise BadClientProperties(f"{path}: {bad}") from None
    except BadClientProperties as bad:
        raise BadClientProperties(f"{path}: {bad}") from None


def client_properties(texts: Mapping[str, str]) -> ClientProperties:
    """Raises BadClientProperties, whose message begins with the property."""
    values = {name: trim(text) for name, text in texts.items()}
    protocol = values.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise BadClientProperties(f"security.protocol: must be one of {', '.join(_PROTOCOLS)}")
    timeout_ms = parse_integer(values.get("request.timeout.ms", "30000"), 1, 2**31 - 1)
    if timeout_ms is None:
        raise BadClientProperties("request.timeout.ms: must be a number of milliseconds")
    return ClientProperties(
        bootstrap=values.get("bootstrap.servers", ""),
        client_id=values.get("client.id") or "rollcall",
        timeout_s=timeout_ms / 1000,
        tls=_tls(values) if protocol.endswith("SSL") else None,
        login=_login(values) if protocol.startswith("SASL") else None,
    )


def _tls(values: Mapping[str, str]) -> ssl.SSLContext:
    versions = tuple(split_list(values.get("ssl.enabled.protocols", ""))) or TLS_VERSIONS
    unknown = [version for version in versions if version not in TLS_VERSIONS]
    if unknown:
        raise BadClientProperties(f"ssl.enabled.protocols: {unknown[0]!r} is not served")
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH)
    keys = SecurityKeys(
        ssl_keystore_type=values.get("ssl.keystore.type", "JKS").upper(),
        ssl_keystore_location=values.get("ssl.keystore.location", ""),
        ssl_keystore_password=values.get("ssl.keystore.password", ""),
        ssl_key_password=values.get("ssl.key.password", ""),
        ssl_keystore_key=values.get("ssl.keystore.key", ""),
        ssl_keystore_certificate_chain=values.get("ssl.keystore.certificate.chain", ""),
        ssl_truststore_type=values.get("ssl.truststore.type", "JKS").upper(),
        ssl_truststore_location=values.get("ssl.truststore.location", ""),
        ssl_truststore_password=values.get("ssl.truststore.password", ""),
        ssl_truststore_certificates=values.get("ssl.truststore.certificates", ""),
    )
    try:
        trusted = read_trusted(keys)
        if trusted is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            # As in Java: a certificate in the trust store is trusted, though it be no root.
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            context.load_verify_locations(cadata=trusted)
        if keys.ssl_keystore_location or keys.ssl_keystore_key:
            store = read_key_store(keys)
            with in_memory(store.chain_pem) as chain, in_memory(store.key_pem) as key:
                context.load_cert_chain(chain, key)
    except BadStore as bad:
        raise BadClientProperties(f"{bad.key}: {bad}") from None
    except ssl.SSLError as bad:
        raise BadClientProperties(f"ssl.*: OpenSSL refuses it: {bad.reason or bad}") from None
    context.minimum_version = (
        ssl.TLSVersion.TLSv1_2 if "TLSv1.2" in versions else ssl.TLSVersion.TLSv1_3
    )
    context.maximum_version = (
        ssl.TLSVersion.TLSv1_3 if "TLSv1.3" in versions else ssl.TLSVersion.TLSv1_2
    )
    if not values.get("ssl.endpoint.identification.algorithm", "https"):
        context.check_hostname = False
    return context


def _login(values: Mapping[str, str]) -> Login:
    mechanism = values.get("sasl.mechanism", "GSSAPI")
    if mechanism not in MECHANISMS:
        raise BadClientProperties(f"sasl.mechanism: must be one of {', '.join(MECHANISMS)}")
    if mechanism == "OAUTHBEARER":
        url = values.get("sasl.oauthbearer.token.endpoint.url", "")
        if not url.startswith("file://"):
            raise BadClientProperties(
                "sasl.oauthbearer.token.endpoint.url: must name a file with a token: file:///PATH"
            )
        return Login(mechanism, token_location=url.removeprefix("file://"))
    options = dict(_JAAS_OPTION.findall(values.get("sasl.jaas.config", "")))
    username, password = (_unquoted(options.get(name, "")) for name in ("username", "password"))
    if not username or "password" not in options:
        raise BadClientProperties(
            'sasl.jaas.config: must have username="..." and password="..." for ' + mechanism
        )
    return Login(mechanism, username, password)


def _unquoted(text: str) -> str:
    if not text.startswith('"'):
        return text
    return re.sub(r"\\(.)", r"\1", text[1:-1])
