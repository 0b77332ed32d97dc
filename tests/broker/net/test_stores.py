"""Key and trust stores: PEM and PKCS12, and one line for each that cannot be used."""

import ssl
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509.oid import NameOID
from msgspec.structs import replace

from broker.net.tls.certificate import distinguished_name
from broker.net.tls.cipher_suites import TLS_1_3_SUITES
from broker.net.tls.contexts import ServerContext, make_context
from broker.net.tls.listener_tls import ListenerTls
from config.key_stores import BadStore, read_key_store, read_trusted
from config.security_keys import SecurityKeys
from security.ssl_principal import NoMatchingRule
from tests.broker.net.tls_client import authority, write_key_store

PASSWORD = "hunter2 of the store"


@pytest.fixture(scope="module")
def issued() -> trustme.LeafCert:
    return authority().issue_cert("localhost")


def _parts(issued: trustme.LeafCert) -> tuple[object, list[x509.Certificate]]:
    key = load_pem_private_key(issued.private_key_pem.bytes(), None)
    chain = [x509.load_pem_x509_certificate(blob.bytes()) for blob in issued.cert_chain_pems]
    return key, [*chain, x509.load_pem_x509_certificate(authority().cert_pem.bytes())]


def pkcs12_of(path: Path, issued: trustme.LeafCert, password: str | None) -> SecurityKeys:
    key, (own, *others) = _parts(issued)
    encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
    path.write_bytes(pkcs12.serialize_key_and_certificates(b"a", key, own, others, encryption))  # type: ignore[arg-type]
    return SecurityKeys(
        ssl_keystore_type="PKCS12",
        ssl_keystore_location=str(path),
        ssl_keystore_password=password or "",
    )


@pytest.mark.parametrize("kind", ["PKCS12", "JKS"])
@pytest.mark.parametrize("password", [PASSWORD, None])
def test_a_pkcs12_file(
    tmp_path: Path, issued: trustme.LeafCert, kind: str, password: str | None
) -> None:
    values = pkcs12_of(tmp_path / "a.p12", issued, password)
    store = read_key_store(replace(values, ssl_keystore_type=kind))
    assert store.certificate_pem.strip() == issued.cert_chain_pems[0].bytes().strip()
    assert store.chain_pem.count(b"BEGIN CERTIFICATE") == 2
    assert "PRIVATE" not in repr(store)
    make_context(values)


def test_inline_pem_with_an_encrypted_key(issued: trustme.LeafCert) -> None:
    key = load_pem_private_key(issued.private_key_pem.bytes(), None)
    encrypted = key.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(PASSWORD.encode())
    )
    chain = "".join(blob.bytes().decode() for blob in issued.cert_chain_pems)
    values = SecurityKeys(
        ssl_keystore_type="PEM",
        ssl_keystore_key=encrypted.decode(),
        ssl_keystore_certificate_chain=chain,
        ssl_key_password=PASSWORD,
    )
    make_context(values)
    for wrong in ("", "another"):
        with pytest.raises(BadStore, match="password") as caught:
            make_context(replace(values, ssl_key_password=wrong))
        assert caught.value.key == "ssl.key.password"


def test_the_certificate_of_the_key_comes_first_wherever_it_stands(
    tmp_path: Path, issued: trustme.LeafCert
) -> None:
    path = tmp_path / "a.pem"
    path.write_bytes(
        authority().cert_pem.bytes()
        + issued.cert_chain_pems[0].bytes()
        + issued.private_key_pem.bytes()
    )
    values = SecurityKeys(ssl_keystore_type="PEM", ssl_keystore_location=str(path))
    assert read_key_store(values).certificate_pem.strip() == (
        issued.cert_chain_pems[0].bytes().strip()
    )


def test_a_trust_store(tmp_path: Path) -> None:
    path = tmp_path / "trust.p12"
    certificate = x509.load_pem_x509_certificate(authority().cert_pem.bytes())
    path.write_bytes(
        pkcs12.serialize_key_and_certificates(
            None, None, None, [certificate], BestAvailableEncryption(PASSWORD.encode())
        )
    )
    values = SecurityKeys(
        ssl_truststore_location=str(path),
        ssl_truststore_password=PASSWORD,
        ssl_truststore_type="PKCS12",
    )
    trusted = read_trusted(values)
    assert trusted is not None
    assert "BEGIN CERTIFICATE" in trusted
    with pytest.raises(BadStore) as caught:
        read_trusted(replace(values, ssl_truststore_password="wrong"))
    assert caught.value.key == "ssl.truststore.password"
    assert read_trusted(SecurityKeys()) is None


@pytest.mark.parametrize(
    ("content", "kind", "key", "words"),
    [
        (None, "PEM", "ssl.keystore.location", "No such file"),
        (b"", "PEM", "ssl.keystore.location", "no certificate"),
        (b"\xfe\xed\xfe\xed", "JKS", "ssl.keystore.location", "keytool -importkeystore"),
        (b"what", "PKCS12", "ssl.keystore.password", "no PKCS12 file, or the password is wrong"),
        (
            b"-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----",
            "PEM",
            "ssl.keystore.location",
            "cannot be read",
        ),
    ],
)
def test_a_file_that_is_no_key_store(
    tmp_path: Path, content: bytes | None, kind: str, key: str, words: str
) -> None:
    path = tmp_path / "a"
    if content is not None:
        path.write_bytes(content)
    values = SecurityKeys(
        ssl_keystore_type=kind, ssl_keystore_location=str(path), ssl_keystore_password=""
    )
    with pytest.raises(BadStore, match=words) as caught:
        read_key_store(values)
    assert caught.value.key == key
    assert "\n" not in str(caught.value)


def test_a_key_without_its_certificate(tmp_path: Path, issued: trustme.LeafCert) -> None:
    path = tmp_path / "a.pem"
    path.write_bytes(issued.private_key_pem.bytes() + authority().cert_pem.bytes())
    with pytest.raises(BadStore, match="has no certificate of its private key"):
        read_key_store(SecurityKeys(ssl_keystore_type="PEM", ssl_keystore_location=str(path)))


@pytest.mark.parametrize(
    ("suites", "protocols", "oldest", "newest"),
    [
        ((), ("TLSv1.2", "TLSv1.3"), "TLSv1_2", "TLSv1_3"),
        ((), ("TLSv1.3",), "TLSv1_3", "TLSv1_3"),
        (
            ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES256-GCM-SHA384"),
            ("TLSv1.2", "TLSv1.3"),
            "TLSv1_2",
            "TLSv1_2",
        ),
        (tuple(TLS_1_3_SUITES), ("TLSv1.2", "TLSv1.3"), "TLSv1_3", "TLSv1_3"),
    ],
)
def test_versions_and_suites(
    tmp_path: Path, suites: tuple[str, ...], protocols: tuple[str, ...], oldest: str, newest: str
) -> None:
    values = write_key_store(tmp_path / "a.pem")
    asked = replace(values, ssl_cipher_suites=suites, ssl_enabled_protocols=protocols)
    context = make_context(asked).context
    assert context.minimum_version is ssl.TLSVersion[oldest]
    assert context.maximum_version is ssl.TLSVersion[newest]


@pytest.mark.parametrize(
    ("suites", "protocols"),
    [
        (("TLS_AES_128_GCM_SHA256",), ("TLSv1.2", "TLSv1.3")),
        (("TLS_RSA_WITH_RC4_128_MD5",), ("TLSv1.2",)),
        (("NO-SUCH-SUITE",), ("TLSv1.2",)),
        (("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",), ("TLSv1.3",)),
    ],
)
def test_suites_that_cannot_be_honoured(
    tmp_path: Path, suites: tuple[str, ...], protocols: tuple[str, ...]
) -> None:
    values = write_key_store(tmp_path / "a.pem")
    asked = replace(values, ssl_cipher_suites=suites, ssl_enabled_protocols=protocols)
    with pytest.raises(BadStore) as caught:
        make_context(asked)
    assert caught.value.key == "ssl.cipher.suites"


def test_a_name_as_java_writes_it() -> None:
    name = x509.Name(
        [
            x509.NameAttribute(NameOID.COUNTRY_NAME, "US"),
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Bar, Inc."),
            x509.NameAttribute(NameOID.EMAIL_ADDRESS, "b@c"),
            x509.NameAttribute(NameOID.COMMON_NAME, " #bob\\ "),
        ]
    )
    assert distinguished_name(_self_signed(name)) == (
        "CN=\\ #bob\\\\\\ ,1.2.840.113549.1.9.1=#1603624063,O=Bar\\, Inc.,C=US"
    )


def _self_signed(name: x509.Name) -> bytes:
    from datetime import UTC, datetime, timedelta

    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name)
    builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now).not_valid_after(now + timedelta(days=1))
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.DER)


def test_a_certificate_that_the_library_cannot_read_names_nobody(
    tmp_path: Path, issued: trustme.LeafCert
) -> None:
    """OpenSSL may have accepted it: no exception but this one may leave a handshake."""
    tls = ListenerTls("A", write_key_store(tmp_path / "server.pem"))
    der = ssl.PEM_cert_to_DER_cert(issued.cert_chain_pems[0].bytes().decode())
    version_3, version_8 = b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x07"
    for spoilt in (der.replace(version_3, version_8, 1), der[:-1], b""):
        with pytest.raises(NoMatchingRule, match="cannot be read"):
            tls.principal(spoilt)


def test_a_config_wins_over_a_file_that_is_read_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = write_key_store(tmp_path / "first.pem")
    second = write_key_store(tmp_path / "second.pem")
    tls = ListenerTls("A", first)
    from_file = tls.check(first)
    configured: list[ssl.SSLContext] = []

    def meanwhile(_: SecurityKeys) -> ServerContext:
        monkeypatch.undo()
        assert tls.reload(second)
        configured.append(tls.context())
        return from_file

    monkeypatch.setattr(tls, "check", meanwhile)
    assert not tls.reload(is_forced=True)
    assert [tls.context()] == configured
