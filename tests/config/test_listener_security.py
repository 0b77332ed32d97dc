"""Security of listeners: whose value counts, and what cannot work."""

import pytest

from config.jaas import PLAIN_MODULE, BadJaas, plain_users
from config.keys import Config
from config.listener_security import ListenerSecurity, is_secret, listener_security
from config.listeners import SecurityProtocol
from config.sources import command_line_setting, load_config
from config.written import ConfigError

STORE = "ssl.keystore.location=/keys/a.pem"
USERS = f'{PLAIN_MODULE} required user_alice="a secret" user_bob="b";'


def config_of(*pairs: str) -> Config:
    return load_config(command_line=[command_line_setting(pair) for pair in pairs])


def security_of(name: str, *pairs: str) -> ListenerSecurity:
    config = config_of(*pairs)
    (listener,) = (each for each in config.endpoints if each.name == name)
    return listener_security(config, listener)


def refused(*pairs: str) -> str:
    with pytest.raises(ConfigError) as caught:
        config_of(*pairs)
    return str(caught.value)


def test_a_listener_has_the_protocol_of_the_map() -> None:
    protocols = "listener.security.protocol.map=IN:PLAINTEXT,OUT:SASL_SSL"
    listeners = "listeners=IN://h:1,OUT://h:2"
    pairs = (protocols, listeners, STORE, "sasl.enabled.mechanisms=PLAIN,scram-sha-256")
    assert security_of("IN", *pairs).protocol is SecurityProtocol.PLAINTEXT
    out = security_of("OUT", *pairs)
    assert out.protocol is SecurityProtocol.SASL_SSL
    assert out.protocol.has_tls
    assert list(out.mechanisms) == ["PLAIN", "SCRAM-SHA-256"]


def test_a_value_of_the_listener_beats_the_common_one_and_that_of_a_mechanism_beats_both() -> None:
    security = security_of(
        "SASL_PLAINTEXT",
        "listeners=SASL_PLAINTEXT://h:1",
        "sasl.enabled.mechanisms=PLAIN,OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url=file:///keys.json",
        "connections.max.reauth.ms=1",
        "listener.name.sasl_plaintext.connections.max.reauth.ms=2",
        "listener.name.sasl_plaintext.oauthbearer.connections.max.reauth.ms=3",
    )
    assert security.values.connections_max_reauth_ms == 2
    assert security.mechanisms["PLAIN"].values.connections_max_reauth_ms == 2
    assert security.mechanisms["OAUTHBEARER"].values.connections_max_reauth_ms == 3


def test_the_users_of_plain_belong_to_its_mechanism_on_the_listener() -> None:
    security = security_of(
        "SASL_PLAINTEXT",
        "listeners=SASL_PLAINTEXT://h:1",
        "sasl.enabled.mechanisms=PLAIN",
        f"listener.name.sasl_plaintext.plain.sasl.jaas.config={USERS}",
    )
    assert security.mechanisms["PLAIN"].plain_users == {"alice": "a secret", "bob": "b"}


def test_what_has_no_effect_is_warned_of() -> None:
    warnings = config_of(
        f"sasl.jaas.config={USERS}", "listener.name.other.ssl.client.auth=none"
    ).warnings
    assert "Configuration of a listener that there is not: listener.name.other.ssl.client.auth" in (
        warnings
    )
    assert any("needs the prefix listener.name.NAME.MECHANISM." in line for line in warnings)


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        (["listeners=SSL://h:1"], "ssl.keystore.location: required"),
        (
            ["listeners=SSL://h:1", "ssl.keystore.key=x"],
            "ssl.keystore.certificate.chain: required with ssl.keystore.key",
        ),
        (
            ["listeners=SSL://h:1", STORE, "ssl.client.auth=required"],
            "ssl.truststore.location: required",
        ),
        (["listeners=SASL_PLAINTEXT://h:1"], "GSSAPI is not served"),
        (
            ["listeners=SASL_PLAINTEXT://h:1", "sasl.enabled.mechanisms="],
            "needs at least one",
        ),
        (
            [
                "listeners=SASL_PLAINTEXT://h:1",
                "sasl.enabled.mechanisms=PLAIN",
                "listener.name.sasl_plaintext.plain.sasl.jaas.config=hunter2",
            ],
            "must be of the form",
        ),
        (
            [
                "listeners=SASL_PLAINTEXT://h:1",
                "sasl.enabled.mechanisms=OAUTHBEARER",
                "sasl.oauthbearer.jwks.endpoint.url=file:///keys.json",
                "sasl.server.callback.handler.class=com.example.Mine",
            ],
            "com.example.Mine",
        ),
        (
            ["listeners=SASL_PLAINTEXT://h:1", "sasl.enabled.mechanisms=OAUTHBEARER"],
            "sasl.oauthbearer.jwks.endpoint.url: required",
        ),
        (
            [
                "listeners=SASL_PLAINTEXT://h:1",
                "sasl.enabled.mechanisms=OAUTHBEARER",
                "sasl.oauthbearer.jwks.endpoint.url=ftp://h.example/keys",
            ],
            "ftp://h.example/keys is no",
        ),
        (
            [
                "listeners=SASL_PLAINTEXT://h:1",
                "sasl.enabled.mechanisms=OAUTHBEARER",
                "sasl.oauthbearer.jwks.endpoint.url=file:///keys.json",
                "sasl.oauthbearer.jwks.endpoint.refresh.ms=0",
            ],
            "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        ),
        (["ssl.enabled.protocols=TLSv1.1"], "ssl.enabled.protocols = TLSv1.1"),
        (["ssl.client.auth=maybe"], "ssl.client.auth = maybe"),
        (
            ["connection.failed.authentication.delay.ms=600000"],
            "must be less than connections.max.idle.ms",
        ),
    ],
)
def test_what_cannot_work_is_one_line_that_names_the_key(pairs: list[str], words: str) -> None:
    message = refused(*pairs)
    assert words in message
    assert "hunter2" not in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "users"),
    [
        ("", {}),
        (f"{PLAIN_MODULE} required user_a=b;", {"a": "b"}),
        (f'{PLAIN_MODULE} REQUIRED username="x" user_a = "=;\\"\\\\" ;', {"a": '=;"\\'}),
        (f'{PLAIN_MODULE}\n required\n user_a=""\n;', {"a": ""}),
    ],
)
def test_users_of_a_jaas_text(text: str, users: dict[str, str]) -> None:
    assert plain_users(text) == users


@pytest.mark.parametrize(
    ("option", "password"),
    [
        ("user_a='secret';", "secret"),
        ("user_a='it\"s';", 'it"s'),
        ('user_a="it\'s";', "it's"),
        ("user_a=abc1234;", "abc1234"),
        ("user_a=a.b;", "a.b"),
        (r'user_a="a\nb";', "a\nb"),
        (r'user_a="a\101\7z";', "aA\az"),
        (r'user_a="a\qb\"c";', 'aqb"c'),
        (r'user_a="\400\8";', " 08"),
        ('user_a="a\\\nb";', "a\nb"),
        ("user_a=x // c\n;", "x"),
        ("user_a=x /* ; */ ;", "x"),
        ('user_a="x // y";', "x // y"),
        ("user_a=éü;", "éü"),
        ('"user_a"="x";', "x"),
        ("user_a=x$y-z_0;", "x$y-z_0"),
        ("user_a=x user_a=y;", "y"),
        ('user_a=";";', ";"),
        ('user_a="a\0b";', "a\0b"),
        ("user_a=1234;", None),
        ("user_a=12ab;", None),
        ("user_a=-x;", None),
        ("user_a=-.5;", None),
        ("user_a=.5;", None),
        ("user_a=a/b;", None),
        ('user_a="a\nb";', None),
        ('user_a="abc;', None),
        ("user_a=a+b;", None),
        ("user_a=x; Q required user_b=y;", None),
        ("user_a=x;;", None),
        ("user_a=@x;", None),
        ("user_a==;", None),
        ("user_a=a,b;", None),
        ('user_a="end\\', None),
    ],
)
def test_passwords_as_kafka_reads_them(option: str, password: str | None) -> None:
    """As asked of `JaasConfig` in kafka-clients 4.3.1; None: it refuses them."""
    text = f"{PLAIN_MODULE} required {option}"
    if password is None:
        with pytest.raises(BadJaas):
            plain_users(text)
    else:
        assert plain_users(text) == {"a": password}


@pytest.mark.parametrize(
    "text",
    [
        "hunter2",
        f"{PLAIN_MODULE} required user_a=hunter2",
        f"{PLAIN_MODULE} required user_a hunter2;",
        f'{PLAIN_MODULE} required user_a="hunter2;',
        f'{PLAIN_MODULE} required user_a "=" hunter2;',
        f"{PLAIN_MODULE} maybe user_a=hunter2;",
        "com.example.Module required user_a=hunter2;",
        f"{PLAIN_MODULE} required user_a=;hunter2;",
    ],
)
def test_a_bad_jaas_text_is_not_repeated(text: str) -> None:
    with pytest.raises(BadJaas) as caught:
        plain_users(text)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ssl.keystore.password", True),
        ("ssl.keystore.key", True),
        ("listener.name.a.ssl.truststore.certificates", True),
        ("listener.name.a.plain.sasl.jaas.config", True),
        ("ssl.keystore.location", False),
        ("log.dirs", False),
    ],
)
def test_secrets_are_known_by_their_keys(name: str, expected: bool) -> None:
    assert is_secret(name) is expected
