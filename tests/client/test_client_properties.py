"""Client properties: a file of Kafka's tools says how to connect; mistakes name the property."""

from pathlib import Path

import pytest

from client.errors import BadClientProperties
from client.properties import Login, client_properties, read_client_properties

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def test_without_properties_nothing_is_secured() -> None:
    properties = client_properties({})
    assert properties.tls is None
    assert properties.login is None
    assert properties.timeout_s == 30


@pytest.mark.parametrize(
    ("jaas", "username", "password"),
    [
        (f'{PLAIN} username="amy" password="se=c;r et";', "amy", "se=c;r et"),
        (f'{PLAIN} \n username = amy\n password="a\\"b\\\\c" ;', "amy", 'a"b\\c'),
        (f'{PLAIN} password="" username="amy";', "amy", ""),
    ],
)
def test_a_jaas_configuration_names_the_user(jaas: str, username: str, password: str) -> None:
    texts = {
        "security.protocol": "sasl_plaintext",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": jaas,
    }
    assert client_properties(texts).login == Login("PLAIN", username, password)


def test_a_login_does_not_show_its_password() -> None:
    assert "secret" not in repr(Login("PLAIN", "amy", "secret"))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("security.protocol=TLS", "security.protocol"),
        ("request.timeout.ms=soon", "request.timeout.ms"),
        ("security.protocol=SASL_SSL", "sasl.mechanism"),
        ("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN", "sasl.jaas.config"),
        (
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url",
        ),
        ("security.protocol=SSL\nssl.truststore.location=/nowhere.p12", "ssl.truststore.location"),
        (
            "security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.certificates=x",
            "ssl.truststore.certificates",
        ),
        ("security.protocol=SSL\nssl.enabled.protocols=TLSv1", "ssl.enabled.protocols"),
    ],
)
def test_a_mistake_names_the_file_and_the_property(tmp_path: Path, text: str, named: str) -> None:
    path = tmp_path / "client.properties"
    path.write_text(text)
    with pytest.raises(BadClientProperties) as bad:
        read_client_properties(path)
    assert str(bad.value).startswith(f"{path}: {named}: ")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadClientProperties, match=r"nowhere: No such file"):
        read_client_properties(tmp_path / "nowhere")
