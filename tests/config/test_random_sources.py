"""Whatever a source says: a Config or one line that names the key, never another exception."""

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from config.kafka_names import kafka_names
from config.keys import Config, keys
from config.sources import command_line_setting, load_config
from config.written import ConfigError, Setting
from protocol.config_def import Password, convert_to_string

NAMES = st.one_of(
    st.sampled_from(sorted(keys())),
    st.sampled_from(sorted(kafka_names("broker"))),
    st.text(alphabet="abc._-= \n", max_size=12),
)
VALUES = st.one_of(
    st.text(max_size=20),
    st.integers().map(str),
    st.sampled_from(
        [
            "",
            "true",
            "-1",
            "0",
            "1",
            "A://h:1,B://[::1]:0",
            "A:PLAINTEXT,B:SSL",
            "x:1,:2",
            ",",
            "1e3",
        ]
    ),
)
PAIRS = st.lists(st.tuples(NAMES, VALUES), max_size=6)


def outcome(**sources: object) -> Config | None:
    """What the daemon would start with, or None where it would not start."""
    try:
        return load_config(**sources)  # type: ignore[arg-type]
    except ConfigError as refused:
        message = str(refused)
    assert message.strip()
    assert message.isprintable()
    return None


@given(PAIRS)
@settings(max_examples=300, deadline=None)
def test_command_line(pairs: list[tuple[str, str]]) -> None:
    command_line: list[Setting] = []
    messages: list[str] = []
    for name, value in pairs:
        try:
            command_line.append(command_line_setting(f"{name}={value}"))
        except ConfigError as refused:
            messages.append(str(refused))
    assert all(message.isprintable() for message in messages)
    config = outcome(command_line=command_line)
    if config is not None:
        assert config.endpoints
        for name in config.origins:
            key = keys()[name]
            assert key.parse(_written(config, name)) == config.value(key)


def _written(config: Config, name: str) -> str | list[str]:
    value = config.value(keys()[name])
    if isinstance(value, Password):
        return value.value
    return list(value) if isinstance(value, tuple) else convert_to_string(value)


@given(PAIRS)
@settings(max_examples=100, deadline=None)
def test_environment(pairs: list[tuple[str, str]]) -> None:
    outcome(environment={f"KAFKA_{name.upper().replace('.', '_')}": value for name, value in pairs})


@given(st.binary(max_size=200), st.sampled_from(["a.toml", "a.properties"]))
@settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_any_bytes_in_a_file(tmp_path: Path, content: bytes, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    outcome(file=path)


@given(PAIRS, st.sampled_from([" = ", "=", ":"]), st.booleans())
@settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_lines_in_a_file(
    tmp_path: Path, pairs: list[tuple[str, str]], sign: str, as_toml: bool
) -> None:
    path = tmp_path / ("a.toml" if as_toml else "a.properties")
    quote = '"' if as_toml else ""
    lines = "\n".join(f"{name}{sign}{quote}{value}{quote}" for name, value in pairs)
    path.write_text(lines, encoding="utf-8")
    outcome(file=path)
