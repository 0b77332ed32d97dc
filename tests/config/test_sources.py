"""Four sources, one Config: which value wins, and what does a mistake in each of them look like?"""

from pathlib import Path

import pytest

from config.keys import Config
from config.limits import ListenerLimits
from config.settings import server_limits
from config.sources import (
    command_line_setting,
    environment_name,
    given,
    load_config,
)
from config.written import ConfigError


def file(folder: Path, content: str, name: str = "rollcall.toml") -> Path:
    path = folder / name
    path.write_text(content)
    return path


def refused(
    *pairs: str, environment: dict[str, str] | None = None, path: Path | None = None
) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(
            command_line=[command_line_setting(pair) for pair in pairs],
            environment=environment,
            file=path,
        )
    message = str(caught.value)
    assert "\n" not in message
    return message


def load(*pairs: str, path: Path | None = None) -> Config:
    return load_config(command_line=[command_line_setting(pair) for pair in pairs], file=path)


def test_without_any_source_all_values_are_defaults() -> None:
    assert load_config() == Config()


def test_command_line_beats_environment_beats_file(tmp_path: Path) -> None:
    path = file(tmp_path, "group.max.size = 1\nnum.partitions = 1\nnode.id = 11\n")
    config = load_config(
        command_line=[command_line_setting("group.max.size=3")],
        environment={"KAFKA_GROUP_MAX_SIZE": "2", "KAFKA_NUM_PARTITIONS": "2"},
        file=path,
    )

    assert (config.group_max_size, config.num_partitions, config.node_id) == (3, 2, 11)
    assert {name: str(origin) for name, origin in config.origins.items()} == {
        "group.max.size": "command line --set",
        "num.partitions": "environment KAFKA_NUM_PARTITIONS",
        "node.id": f"file {path}",
    }


@pytest.mark.parametrize(
    "content",
    [
        "group.initial.rebalance.delay.ms = 7",
        '"group.initial.rebalance.delay.ms" = 7',
        '"group.initial.rebalance.delay.ms" = "7"',
        "[group]\ninitial.rebalance.delay.ms = 7",
        "[group.initial]\nrebalance = { delay = { ms = 7 } }",
    ],
)
def test_toml_names_may_be_dotted_nested_or_quoted(tmp_path: Path, content: str) -> None:
    assert load_config(file=file(tmp_path, content)).group_initial_rebalance_delay_ms == 7


def test_toml_lists_are_lists(tmp_path: Path) -> None:
    path = file(
        tmp_path,
        'listeners = ["A://127.0.0.1:1", "B://127.0.0.1:2"]\n'
        'listener.security.protocol.map = "A:PLAINTEXT,B:PLAINTEXT"\n',
    )
    assert [e.name for e in load_config(file=path).endpoints] == ["A", "B"]


@pytest.mark.parametrize(
    "content",
    [
        "max.connections = 5\nmax.connections.per.ip = 3\n",
        "max.connections.per.ip = 3\nmax.connections = 5\n",
    ],
)
def test_a_name_inside_another_gets_a_message_that_says_so(tmp_path: Path, content: str) -> None:
    message = refused(path=file(tmp_path, content))

    assert "max.connections.per.ip: max.connections is a key too" in message
    assert '"max.connections" = ' in message


def test_quoted_they_live_side_by_side(tmp_path: Path) -> None:
    path = file(tmp_path, '"max.connections" = 5\nmax.connections.per.ip = 3\n')
    config = load_config(file=path)

    assert (config.max_connections, config.max_connections_per_ip) == (5, 3)


@pytest.mark.parametrize(
    "content",
    ['"node.id" = 1\nnode.id = 2\n', "node.id = 1\nnode.id = 2\n"],
)
def test_a_name_set_twice_in_toml_is_a_mistake(tmp_path: Path, content: str) -> None:
    assert "node.id: set twice" in refused(path=file(tmp_path, content))


def test_a_file_that_is_not_toml_says_where(tmp_path: Path) -> None:
    message = refused(path=file(tmp_path, "node.id = 1\n= 2\n"))
    assert "rollcall.toml" in message
    assert "line 2" in message


@pytest.mark.parametrize(
    ("name", "content"),
    [("rollcall.yaml", "a: 1"), ("rollcall.toml", "node.id = 1979-05-27")],
)
def test_other_formats_and_dates_are_refused(tmp_path: Path, name: str, content: str) -> None:
    assert name in refused(path=file(tmp_path, content, name))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert "nowhere.toml: No such file" in refused(path=tmp_path / "nowhere.toml")


def test_kafkas_own_sample_file_is_read(tmp_path: Path) -> None:
    # Given what a KRaft broker's server.properties typically holds.
    path = file(
        tmp_path,
        """
        process.roles=broker,controller
        node.id=7
        controller.quorum.bootstrap.servers=localhost:9093
        listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
        inter.broker.listener.name=PLAINTEXT
        advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
        controller.listener.names=CONTROLLER
        listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL
        num.network.threads=3
        log.dirs=some-folder
        offsets.topic.replication.factor=1
        log.retention.hours=24
        """,
        "server.properties",
    )
    config = load_config(file=path)

    # Then the controller's listener is not opened, and one warning names what has no use here.
    assert [(e.name, e.port) for e in config.endpoints] == [("PLAINTEXT", 9092)]
    assert config.node_id == 7
    assert config.data_dir == Path("some-folder")
    assert config.retention_ms == 24 * 3_600_000
    assert len(config.warnings) == 1
    assert "num.network.threads, process.roles" in config.warnings[0]


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("KAFKA_GROUP_MAX_SIZE", "group.max.size"),
        ("KAFKA_ADVERTISED_LISTENERS", "advertised.listeners"),
        ("ROLLCALL_FLUSH", "rollcall.flush"),
        ("ROLLCALL_FORGIVE_SLOW_MEMBER", "rollcall.forgive.slow.member"),
        ("KAFKA_A__B___C_D", "a_b-c.d"),
    ],
)
def test_environment_names_are_those_of_kafkas_images(variable: str, name: str) -> None:
    assert environment_name(variable) == name


def test_only_variables_that_resemble_a_key_get_a_warning() -> None:
    config = load_config(
        environment={
            "KAFKA_OPTS": "-Xmx1g",
            "KAFKA_GROUP_MAX_SIZ": "9",
            "KAFKA_PORT": "tcp://10.0.0.1:9092",  # Kubernetes sets it for a service named kafka
            "ROLLCALL_SERVICE_HOST": "10.0.0.1",
            "ROLLCALL_MAIN": "a script's own",
            "ROLLCALL_FLUHS": "page-cache",
            "PATH": "unrelated",
        }
    )
    assert config.warnings == (
        (
            "Environment ignored, no such configuration: "
            "KAFKA_GROUP_MAX_SIZ (did you mean group.max.size?), "
            "ROLLCALL_FLUHS (did you mean rollcall.flush?)"
        ),
        "Configuration accepted, but Rollcall has no use for it: port",
    )


@pytest.mark.parametrize("name", ["broker.rack", "log.dirs", "advertised.listeners"])
@pytest.mark.parametrize("value", ["h\udcff", "a\0b"])
def test_a_value_that_is_no_text_is_refused_in_one_line(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=r"valid UTF-8|a zero byte") as refused:
        load_config(environment={f"KAFKA_{name.upper().replace('.', '_')}": value})
    assert str(refused.value).startswith(f"{name} = ")
    assert str(refused.value).isprintable()


def test_a_wrong_value_in_the_environment_names_variable_and_key() -> None:
    message = refused(environment={"KAFKA_GROUP_MAX_SIZE": "many"})
    assert message == (
        "group.max.size = many (environment KAFKA_GROUP_MAX_SIZE): Not a number of type INT"
    )


def test_security_in_the_environment_stops_the_start() -> None:
    assert "ssl.engine.factory.class" in refused(
        environment={"KAFKA_SSL_ENGINE_FACTORY_CLASS": "com.example.Engine"}
    )


def test_an_unknown_name_is_refused_with_a_guess() -> None:
    message = refused("group.max.sise=1")
    assert message.startswith("group.max.sise = 1 (command line --set): no such")
    assert message.endswith("did you mean group.max.size?")


def test_passwords_are_not_repeated() -> None:
    for name in ("ssl.keystore.password", "listener.name.a.plain.sasl.jaas.config"):
        message = refused(f"{name}=hunter2\0x")
        assert name in message
        assert "hunter2" not in message


@pytest.mark.parametrize(
    "pair",
    [
        "log.dirs=a,b",
        "log.dir=",
        "log.retention.minutes=0",
        "max.connections.per.ip=0",
        "max.connections.per.ip.overrides=host",
        "queued.max.request.bytes=5",
        "group.max.session.timeout.ms=5",
        "rollcall.admin.listener=9180",
        "listeners=",
        "listeners=PLAINTEXT://h:99999",
        "advertised.listeners=PLAINTEXT://0.0.0.0:9092",
        "advertised.listeners=OTHER://h:9092",
        "listener.security.protocol.map=PLAINTEXT",
    ],
)
def test_a_value_that_cannot_work_is_refused_by_its_own_name(pair: str) -> None:
    assert refused(pair).startswith(pair.partition("=")[0])


@pytest.mark.parametrize(
    ("pairs", "name", "reason"),
    [
        (
            ["group.consumer.session.timeout.ms=44999"],
            "group.consumer.session.timeout.ms",
            "must be greater than or equal to group.consumer.min.session.timeout.ms",
        ),
        (
            ["group.consumer.session.timeout.ms=60001"],
            "group.consumer.session.timeout.ms",
            "must be less than or equal to group.consumer.max.session.timeout.ms",
        ),
        (
            ["group.consumer.min.session.timeout.ms=60001"],
            "group.consumer.max.session.timeout.ms",
            "must be greater than or equal to group.consumer.min.session.timeout.ms",
        ),
        (
            ["group.consumer.min.session.timeout.ms=1", "group.consumer.session.timeout.ms=5000"],
            "group.consumer.heartbeat.interval.ms",
            "must be less than group.consumer.session.timeout.ms",
        ),
        (
            ["group.consumer.max.heartbeat.interval.ms=4999"],
            "group.consumer.max.heartbeat.interval.ms",
            "must be greater than or equal to group.consumer.min.heartbeat.interval.ms",
        ),
        (
            ["group.consumer.min.assignment.interval.ms=1001"],
            "group.consumer.assignment.interval.ms",
            "must be greater than or equal to group.consumer.min.assignment.interval.ms",
        ),
        (
            ["group.consumer.session.timeout.ms=1", "group.consumer.heartbeat.interval.ms=1"],
            "group.consumer.heartbeat.interval.ms",
            "must be greater than or equal to group.consumer.min.heartbeat.interval.ms",
        ),
        (
            ["group.coordinator.rebalance.protocols=consumer,streams"],
            "group.coordinator.rebalance.protocols",
            "Disabling the 'classic' protocol is not supported.",
        ),
    ],
)
def test_consumer_group_keys_that_contradict_are_refused_in_kafkas_words(
    pairs: list[str], name: str, reason: str
) -> None:
    """As GroupCoordinatorConfig and KafkaConfig of 4.3.1 refuse them."""
    sentence = refused(*pairs)
    assert sentence.startswith(f"{name} = ")
    assert sentence.endswith(f": {reason}")


@pytest.mark.parametrize(
    "pairs",
    [
        ["group.consumer.min.session.timeout.ms=1", "group.consumer.session.timeout.ms=5001"],
        ["group.consumer.max.heartbeat.interval.ms=46000"],
        ["group.coordinator.rebalance.protocols=classic"],
        ["group.consumer.assignors=range"],
    ],
)
def test_consumer_group_keys_at_their_limits_are_taken(pairs: list[str]) -> None:
    assert load_config(command_line=[command_line_setting(pair) for pair in pairs])


def test_a_pair_needs_an_equals_sign() -> None:
    assert refused("group.max.size") == "--set group.max.size: must be NAME=VALUE"


def test_the_stronger_source_wins_between_two_names_of_one_value(tmp_path: Path) -> None:
    path = file(tmp_path, 'log.dirs = "from-file"\nlog.retention.ms = 5\n')
    config = load_config(
        file=path,
        command_line=[
            command_line_setting("log.dir=from-line"),
            command_line_setting("log.retention.hours=1"),
        ],
    )
    assert config.data_dir == Path("from-line")
    assert config.retention_ms == 3_600_000


def test_within_one_source_kafkas_order_holds(tmp_path: Path) -> None:
    path = file(tmp_path, 'log.dirs = "plural"\nlog.dir = "singular"\n')
    assert load_config(file=path).data_dir == Path("plural")


def test_a_folder_given_as_an_option_may_contain_a_comma() -> None:
    config = load_config(command_line=[given("log.dirs", ["a,b"], "--data-dir")])
    assert config.data_dir == Path("a,b")


def test_broker_id_is_the_old_name_of_node_id() -> None:
    assert load_config(command_line=[command_line_setting("broker.id=4")]).node_id == 4
    assert load_config(command_line=[command_line_setting("broker.id=-1")]).node_id == 1
    assert "same as node.id" in refused("broker.id=4", "node.id=5")


def test_a_coarser_name_of_a_weaker_source_stays_and_has_no_effect(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("log.retention.hours=10\nlog.roll.ms=5\n")
    config = load("log.retention.ms=7", "log.roll.hours=3", path=path)

    assert (config.retention_ms, config.log_retention_hours) == (7, 10)
    assert "log.retention.hours" in config.origins, "it was configured"
    assert config.roll_ms == 3 * 3_600_000, "the stronger source decides"
    assert "log.roll.ms" not in config.origins


@pytest.mark.parametrize("value", ["0\x1f", "\x000", " 0\t", "00000000000000000000000000"])
def test_blanks_are_those_of_java(value: str) -> None:
    assert load(f"group.initial.rebalance.delay.ms={value}").group_initial_rebalance_delay_ms == 0


@pytest.mark.parametrize("value", ["1\xa0", "1_0", "1\x85", "9" * 5_000])
def test_blanks_and_digits_of_python_alone_are_refused(value: str) -> None:
    assert "Not a number of type INT" in refused(f"num.partitions={value}")


@pytest.mark.parametrize("number", ["99999999999999", "\u0661", "-1", "1_0", ""])
def test_a_limit_of_an_address_is_a_number_of_32_bits(number: str) -> None:
    said = refused(f"max.connections.per.ip.overrides=127.0.0.1:{number}")
    assert "is not of the form ADDRESS:NUMBER" in said


def test_limits_of_addresses_are_read_as_lists_are() -> None:
    config = load("max.connections.per.ip.overrides= 127.0.0.1 : 5 ,::1:\x1f7")
    assert config.connections_by_address == {"127.0.0.1": 5, "::1": 7}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"node.id = {'9' * 5_000}", "too many digits"),
        (f"node.id = 0x{'f' * 5_000}", "node.id: must be a text, a number of 64 bits"),
        (f"node.id = {'[' * 5_000}{']' * 5_000}", "nested too deeply"),
        ("log.dirs = [['a']]", "log.dirs: must be a text"),
        (f"log.dirs = [0x{'f' * 5_000}]", "log.dirs: must be a text"),
    ],
)
def test_toml_that_python_stumbles_over_is_one_line(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "f.toml"
    path.write_text(text)
    assert says in refused(path=path)


# Limits of single listeners


def test_a_listener_has_limits_of_its_own() -> None:
    config = load(
        "listeners=INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
        "listener.security.protocol.map=INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "listener.name.outside.max.connections=7",
        "listener.name.outside.max.connection.creation.rate=3",
        "listener.name.inside.max.connections=0",
    )
    assert config.warnings == ()
    assert server_limits(config).by_listener == {
        "OUTSIDE": ListenerLimits(7, 3),
        "INSIDE": ListenerLimits(0),
    }


@pytest.mark.parametrize("listener", ["nowhere", "PLAINTEXT"])
def test_limits_of_no_listener_are_warned_about(listener: str) -> None:
    """Kafka reads the name in lower case only."""
    config = load(f"listener.name.{listener}.max.connections=7")
    assert config.listener_limits == {}
    assert len(config.warnings) == 1
    assert f"listener.name.{listener}.max.connections" in config.warnings[0]


@pytest.mark.parametrize("value", ["-1", "many", "2147483648", ""])
@pytest.mark.parametrize("key", ["max.connections", "max.connection.creation.rate"])
def test_a_bad_limit_of_a_listener_is_refused_by_its_name(key: str, value: str) -> None:
    message = refused(f"listener.name.plaintext.{key}={value}")
    assert message.startswith(f"listener.name.plaintext.{key} ")
