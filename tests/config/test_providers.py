"""Config providers: values from files, folders and the environment, and what a mistake looks like.

The rules are those of Kafka's `ConfigTransformer` and its three providers, except that a variable
without a value stops the start.
"""

import os
from pathlib import Path

import pytest

from config.admin_access import admin_access
from config.keys import Config
from config.sources import command_line_setting, load_config
from config.written import ConfigError
from protocol.config_def import Password, convert_to_string

CLASSES = "org.apache.kafka.common.config.provider"
SECRET = "s3cr3t-of-the-test"
PAIRS = (
    "config.providers=file,env,dir",
    f"config.providers.file.class={CLASSES}.FileConfigProvider",
    f"config.providers.env.class={CLASSES}.EnvVarConfigProvider",
    f"config.providers.dir.class={CLASSES}.DirectoryConfigProvider",
)


def load(
    *pairs: str, environment: dict[str, str] | None = None, file: Path | None = None
) -> Config:
    settings = [command_line_setting(pair) for pair in pairs]
    return load_config(command_line=settings, environment=environment, file=file)


def refused(*pairs: str, environment: dict[str, str] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        load(*PAIRS, *pairs, environment=environment)
    message = str(caught.value)
    assert "\n" not in message
    assert SECRET not in message
    return message


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    path = tmp_path / "secrets.properties"
    path.write_text(f"token: {SECRET}\nnode = 7\nname=Z\u00fcrich\nempty=\n", encoding="utf-8")
    return path


def test_each_provider_has_its_values(secrets: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "users").write_text("alice:a,bob:b\n")
    config = load(
        *PAIRS,
        f"rollcall.admin.token=${{file:{secrets}:token}}",
        f"rollcall.admin.users=${{dir:{tmp_path}/run:users}}",
        "broker.rack=${env:RACK}",
        environment={"RACK": "r1"},
    )

    access = admin_access(config)
    assert access.tokens == (SECRET,)
    assert access.passwords == {"alice": "a", "bob": "b"}
    assert config.broker_rack == "r1"
    assert config.warnings == ()


def test_a_variable_may_be_a_part_and_occur_twice(secrets: Path) -> None:
    config = load(
        *PAIRS,
        f"broker.rack=<${{file:{secrets}:node}}|${{env:A}}${{env:A}}>",
        environment={"A": "x"},
    )
    assert config.broker_rack == "<7|xx>"


def test_a_value_is_not_resolved_again_and_may_be_empty(secrets: Path) -> None:
    config = load(*PAIRS, "broker.rack=${env:A}", environment={"A": "${env:B}", "B": "no"})
    assert config.broker_rack == "${env:B}"
    assert load(*PAIRS, f"broker.rack=${{file:{secrets}:empty}}").broker_rack == ""


def test_a_file_is_utf_8_as_kafka_reads_it(secrets: Path) -> None:
    assert load(*PAIRS, f"broker.rack=${{file:{secrets}:name}}").broker_rack == "Z\u00fcrich"


def test_variables_work_in_each_source(secrets: Path, tmp_path: Path) -> None:
    toml = tmp_path / "rollcall.toml"
    toml.write_text(
        f'"config.providers" = "file"\n'
        f'config.providers.file.class = "{CLASSES}.FileConfigProvider"\n'
        f'node.id = "${{file:{secrets}:node}}"\n'
        f'log.cleanup.policy = ["${{file:{secrets}:policy}}", "delete"]\n'
    )
    secrets.write_text(secrets.read_text() + "policy=compact\n")
    properties = tmp_path / "server.properties"
    properties.write_text(
        f"config.providers=file\n"
        f"config.providers.file.class={CLASSES}.FileConfigProvider\n"
        f"node.id=${{file:{secrets}:node}}\n"
    )

    config = load(file=toml)
    assert config.node_id == 7
    assert config.log_cleanup_policy == ("compact", "delete")
    assert load(file=properties).node_id == 7
    named = {"KAFKA_NODE_ID": f"${{file:{secrets}:node}}"}
    assert load(*PAIRS, environment=named).node_id == 7


def test_the_origin_names_the_provider(secrets: Path) -> None:
    config = load(*PAIRS, f"node.id=${{file:{secrets}:node}}")
    assert str(config.origins["node.id"]) == "command line --set, provider file"


def test_without_providers_a_text_stays_as_it_is(secrets: Path) -> None:
    config = load("broker.rack=${env:RACK}", environment={"RACK": "r1"})
    assert config.broker_rack == "${env:RACK}"
    assert config.warnings == (
        "broker.rack keeps its variable: 'env' is not one of config.providers",
    )


def test_a_secret_never_is_the_variable_itself() -> None:
    message = refused("rollcall.admin.token=${vault:/a:b}")
    assert message == (
        "rollcall.admin.token = ... (command line --set): 'vault' is not one of config.providers"
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("${file:/nowhere/x:token}", "/nowhere/x: No such file or directory"),
        ("${file:SECRETS:toke}", "SECRETS has no key 'toke'"),
        ("${file:token}", "the variable has no path"),
        ("${file:FOLDER:token}", "FOLDER is not a file"),
        ("${dir:SECRETS:token}", "SECRETS is not a directory"),
        ("${dir:FOLDER:../x/token}", "'../x/token' is not the name of a file in FOLDER"),
        ("${dir:FOLDER:..}", "'..' is not the name of a file in FOLDER"),
        ("${dir:FOLDER:nothing}", "FOLDER/nothing: No such file or directory"),
        ("${env:NOTHING}", "the environment has no variable NOTHING"),
        ("${env:/path:NOTHING}", "the environment has no path '/path'"),
    ],
)
def test_a_variable_without_a_value_names_the_key(secrets: Path, text: str, why: str) -> None:
    def placed(words: str) -> str:
        return words.replace("SECRETS", str(secrets)).replace("FOLDER", str(secrets.parent))

    message = refused(f"rollcall.admin.token={placed(text)}")
    assert message == f"rollcall.admin.token = ... (command line --set): {placed(why)}"


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "is not a file" in refused(f"broker.rack=${{file:{tmp_path}/pipe:a}}")
    assert "is not a file" in refused(f"broker.rack=${{dir:{tmp_path}:pipe}}")


def test_bad_text_is_refused_without_quoting_it(secrets: Path) -> None:
    secrets.write_bytes(b"token=" + SECRET.encode() + b"\xff\n")
    assert "not UTF-8 at byte 24" in refused(f"rollcall.admin.token=${{file:{secrets}:token}}")
    secrets.write_text(f"token={SECRET}\\u12\n")
    assert "line 1: \\u must be" in refused(f"rollcall.admin.token=${{file:{secrets}:token}}")


def test_what_a_provider_has_is_not_quoted_whatever_key_it_is_for(secrets: Path) -> None:
    message = refused(f"node.id=${{file:{secrets}:token}}")
    assert message == "node.id = ... (command line --set, provider file): Not a number of type INT"


def test_allowed_paths_are_a_limit(secrets: Path, tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    limit = f"config.providers.file.param.allowed.paths={tmp_path}/open"
    inside = tmp_path / "open" / "a.properties"
    inside.write_text("node=5\n")

    assert load(*PAIRS, limit, f"node.id=${{file:{inside}:node}}").node_id == 5
    for path in (secrets, f"{tmp_path}/open/../secrets.properties", f"{tmp_path}/opened/x"):
        message = refused(limit, f"node.id=${{file:{path}:node}}")
        assert "config.providers.file.param.allowed.paths does not allow" in message
    assert "is not absolute" in refused("config.providers.dir.param.allowed.paths=etc")
    assert "does not exist" in refused("config.providers.dir.param.allowed.paths=/no/such/path")


def test_the_environment_can_be_limited() -> None:
    limit = "config.providers.env.param.allowlist.pattern=ROLL.*"
    config = load(*PAIRS, limit, "broker.rack=${env:ROLL_A}", environment={"ROLL_A": "x"})
    assert config.broker_rack == "x"
    assert "does not allow the variable HOME" in refused(
        limit, "broker.rack=${env:HOME}", environment={"HOME": SECRET}
    )
    assert "not a regular expression" in refused(
        "config.providers.env.param.allowlist.pattern=(", "broker.rack=${env:HOME}"
    )


def test_other_classes_cannot_be_used() -> None:
    assert refused("config.providers.file.class=com.example.Vault").startswith(
        "config.providers.file.class = com.example.Vault (command line --set): must be "
    )
    assert "config.providers.aws.class: required" in refused("config.providers=aws")


def test_a_password_is_not_written_by_accident() -> None:
    password = load(f"rollcall.admin.token={SECRET}").rollcall_admin_token

    assert isinstance(password, Password)
    assert password == SECRET
    assert password.value == SECRET
    assert password.encode() == SECRET.encode()
    shown = (str(password), repr(password), f"{password}", f"{password:>30}")
    assert {*shown, convert_to_string(password)} == {"[hidden]"}
    assert SECRET not in repr(load(f"rollcall.admin.token={SECRET}"))


@pytest.mark.parametrize(
    "pair",
    [
        f"rollcall.admin.token={SECRET} {SECRET}",
        f"rollcall.admin.token={SECRET}\u00fc",
        f"rollcall.admin.users={SECRET}",
        f"rollcall.admin.users=alice:a,:{SECRET}",
        f"rollcall.admin.users=alice:{SECRET},alice:{SECRET}",
        f"rollcall.admin.tokens={SECRET}",
        f"rollcall.admin.token {SECRET}",
        f"sasl.jaas.config={SECRET}\0x",
    ],
)
def test_no_mistake_quotes_a_secret(pair: str) -> None:
    assert "rollcall.admin." in (message := refused_alone(pair)) or "jaas" in message


def refused_alone(pair: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(pair)
    assert SECRET not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("pairs", "warned"),
    [
        (["rollcall.admin.listener=0.0.0.0:9180"], "asks for no credentials"),
        (["rollcall.admin.listener=:9180"], "asks for no credentials"),
        (["rollcall.admin.listener=admin.lan:9180"], "asks for no credentials"),
        (
            ["rollcall.admin.listener=[::]:9180", "rollcall.admin.token=a"],
            "receives credentials from other machines unencrypted",
        ),
        (
            [
                "rollcall.admin.listener=[::]:9180",
                "rollcall.admin.token=a",
                "rollcall.admin.ssl.certificate=/a",
            ],
            None,
        ),
        (["rollcall.admin.listener=127.0.0.9:9180"], None),
        (["rollcall.admin.listener=[::1]:9180"], None),
        (["rollcall.admin.listener=LOCALHOST:9180"], None),
        (["rollcall.admin.listener="], None),
    ],
)
def test_an_admin_port_that_others_reach_is_warned_of_once(
    pairs: list[str], warned: str | None
) -> None:
    warnings = load(*pairs).warnings
    assert len(warnings) == (0 if warned is None else 1)
    assert warned is None or warned in warnings[0]


def test_the_names_of_the_admin_port() -> None:
    access = admin_access(
        load(
            "listeners=A://kafka.lan:9092",
            "advertised.listeners=A://Broker.Example.COM:9092",
            "listener.security.protocol.map=A:PLAINTEXT",
            "rollcall.admin.listener=localhost:9180",
            "rollcall.admin.allowed.hosts=rollcall,metrics.lan.",
        )
    )
    names = {"localhost", "kafka.lan", "broker.example.com", "rollcall", "metrics.lan"}
    assert names <= access.host_names
    assert access.is_loopback
    assert not access.asks_for_credentials
