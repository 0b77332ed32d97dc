"""Security keys: TLS and SASL of the listeners, each key with its default, range and meaning.

A listener has its own value as `listener.name.NAME.KEY`, and a SASL mechanism of a listener as
`listener.name.NAME.MECHANISM.KEY`, both in lower case (`listener_security.py` finds the value).
`config/keys.py` has the keys without a prefix in its table. Kafka's counterparts: `SslConfigs`,
`SaslConfigs`, `BrokerSecurityConfigs`.
"""

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Struct

from config.types import (
    Definition,
    KeyTable,
    boolean,
    class_name,
    integer,
    password,
    string,
    valid_list,
    valid_string,
)

TLS_VERSIONS = ("TLSv1.2", "TLSv1.3")

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
"""Those that are served. Kafka has GSSAPI too."""


class SecurityKeys(Struct, frozen=True, metaclass=KeyTable):
    """The values for one listener, or for one mechanism of it. The defaults are Kafka's."""

    DEFINITIONS: ClassVar[Mapping[str, Definition]]

    ssl_enabled_protocols: tuple[str, ...] = valid_list(
        TLS_VERSIONS, "The TLS versions that clients may use.", *TLS_VERSIONS, non_empty=True
    )
    ssl_protocol: str = valid_string(
        "TLSv1.3", "The newest TLS version. It has no effect: see ssl.enabled.protocols.",
        "TLSv1.2", "TLSv1.3", "TLS",
    )  # fmt: skip
    ssl_cipher_suites: tuple[str, ...] = valid_list(
        (),
        "The cipher suites of TLS 1.2, by Java's or OpenSSL's names. Empty: OpenSSL's default. "
        "Those of TLS 1.3 cannot be chosen.",
    )
    ssl_keystore_type: str = valid_string(
        "JKS",
        "The form of the key store: PEM or PKCS12. JKS, Kafka's default, is accepted for a file "
        "that is PKCS12 in fact, as keytool writes it.",
        "PEM",
        "PKCS12",
        "JKS",
    )
    ssl_keystore_location: str = string(
        "",
        "The file with the server's private key and certificate chain. It is read again when it "
        "changes.",
    )
    ssl_keystore_password: str = password("The password of the PKCS12 file.")
    ssl_key_password: str = password("The password of the private key.")
    ssl_keystore_key: str = password("The private key itself as PEM, instead of a file.")
    ssl_keystore_certificate_chain: str = password(
        "The certificate chain itself as PEM, with ssl.keystore.key."
    )
    ssl_truststore_type: str = valid_string(
        "JKS", "The form of the trust store, as for the key store.", "PEM", "PKCS12", "JKS"
    )
    ssl_truststore_location: str = string(
        "", "The file with the certificates that sign those of clients."
    )
    ssl_truststore_password: str = password("The password of the PKCS12 file.")
    ssl_truststore_certificates: str = password(
        "The certificates that sign those of clients as PEM, instead of a file."
    )
    ssl_client_auth: str = valid_string(
        "none",
        "Whether clients show a certificate: required, requested (they may), or none.",
        "required",
        "requested",
        "none",
    )
    ssl_principal_mapping_rules: str = string(
        "DEFAULT",
        "How the name of a client's certificate becomes a user: rules "
        "RULE:pattern/replacement/[LU], separated by commas; the first that fits. DEFAULT: the "
        "whole name.",
    )
    ssl_allow_dn_changes: bool = boolean(
        "Whether a key store that is read again may have another distinguished name.",
        default=False,
    )
    ssl_allow_san_changes: bool = boolean(
        "Whether a key store that is read again may lack alternative names of the one before.",
        default=False,
    )
    sasl_enabled_mechanisms: tuple[str, ...] = valid_list(
        ("GSSAPI",),
        "The SASL mechanisms of the listener: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER. "
        "The default is Kafka's and must be changed: GSSAPI is not served.",
    )
    sasl_jaas_config: str = password(
        "The users of PLAIN, as listener.name.NAME.plain.sasl.jaas.config: "
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'user_alice="SECRET";'
    )
    sasl_server_max_receive_size: int = integer(
        524_288, "Largest request before a client is authenticated.", at_least=1
    )
    sasl_server_callback_handler_class: str = class_name(
        "",
        "For OAUTHBEARER Kafka's OAuthBearerValidatorCallbackHandler, which is what is done "
        "without it as well. Any other class prevents the start.",
    )
    sasl_oauthbearer_jwks_endpoint_url: str = string(
        "",
        "Where the keys are that sign tokens: a JWKS file (file:///…) or URL (https://…). "
        "OAUTHBEARER needs it.",
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int = integer(
        3_600_000, "How often the URL is read. A file is read when it changes.", long=True
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int = integer(
        100, "How long to wait before the URL is read again after a failure; then doubled.",
        long=True,
    )  # fmt: skip
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int = integer(
        10_000, "The longest wait between two such attempts.", long=True
    )
    sasl_oauthbearer_expected_audience: tuple[str, ...] = valid_list(
        (),
        "A token must be for one of these audiences (claim aud). Empty: a token with an audience "
        "is refused.",
    )
    sasl_oauthbearer_expected_issuer: str = string(
        "", "A token must be from this issuer (claim iss). Empty: from any."
    )
    sasl_oauthbearer_scope_claim_name: str = string("scope", "The claim with the scopes.")
    sasl_oauthbearer_sub_claim_name: str = string("sub", "The claim that names the user.")
    sasl_oauthbearer_clock_skew_seconds: int = integer(
        30, "How much the clocks of the issuer and of this server may differ."
    )
    connections_max_reauth_ms: int = integer(
        0,
        "After this time a client must authenticate again; else its connection is closed at its "
        "next request. 0: never, unless its token expires.",
        long=True,
    )
