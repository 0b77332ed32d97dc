"""Configuration sources: command line over environment over file over default, merged and checked.

Reads a TOML file whose keys are Kafka's names, or a server.properties; the environment as Kafka's
container images name it (KAFKA_GROUP_MAX_SIZE) and own keys without their first word's dot
(ROLLCALL_FLUSH); and NAME=VALUE pairs of the command line. Every mistake is a `ConfigError` that
names the key and its place. Writes nothing, opens nothing but the file.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from msgspec.structs import replace

from config.admin_access import BadAdminAccess, check_admin
from config.java_properties import BadProperties, parse_properties
from config.kafka_names import (
    is_kafka_name,
    is_listener_limit,
    kafka_names,
    refusal_reason,
    split_listener_limit,
)
from config.keys import Config, Origin, keys
from config.limits import ListenerLimits
from config.listener_security import listener_of, listener_security, security_key
from config.listeners import BadListeners
from config.types import BrokerKey
from config.variables import resolve_variables
from config.written import ConfigError, Setting, sentence, written_text
from protocol.config_def import (
    ConfigException,
    ConfigValue,
    WrittenValue,
    convert_to_string,
)
from protocol.java_text import LONG_MAX, LONG_MIN, trim

_FILE_MAX_BYTES = 1_048_576  # of a configuration; a larger file was named by mistake
_SOURCES = ("default", "file", "environment", "command line")  # weakest first

# Names of one value: the strongest source of any of them decides, then the first that is set. Those
# after the deciding name stay in the result without effect, as in Kafka.
_SYNONYMS = (
    ("log.dirs", "log.dir"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    ("node.id", "broker.id"),
)

_MUST_AGREE = (("node.id", "broker.id"),)  # where both are set; see `_strongest`

_RESEMBLES = 0.85  # of difflib's ratio: one letter wrong, too many or missing, or two swapped
_OWN_VARIABLES = ("ROLLCALL_CONFIG", "ROLLCALL_STRICT_FILES")  # options, not configuration


def load_config(
    *,
    command_line: Iterable[Setting] = (),
    environment: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> Config:
    """All sources merged, every value checked. Raises ConfigError."""
    warnings: list[str] = []
    settings = _strongest(
        [
            *(_read_file(file) if file is not None else ()),
            *_read_environment(environment or {}, warnings),
            *command_line,
        ]
    )
    settings = resolve_variables(settings, environment or {}, warnings)
    values: dict[str, ConfigValue] = {}
    overrides: dict[str, ConfigValue] = {}
    unused: list[str] = []
    for setting in settings.values():
        _check_text(setting)
        reason = refusal_reason(setting.name, written_text(setting.written))
        if reason is not None:
            raise ConfigError(sentence(setting, reason))
        key = keys().get(setting.name)
        if key is not None:
            values[key.field] = _read_value(key, setting)
        elif (own := security_key(setting.name)) is not None:
            overrides[setting.name] = _read_value(own, setting)
        elif not is_listener_limit(setting.name):
            unused.append(setting.name)
    if unused:
        warnings.append(
            f"Configuration accepted, but Rollcall has no use for it: {', '.join(sorted(unused))}"
        )
    origins = {s.name: s.origin for s in settings.values() if s.name in keys()}
    config = Config(
        # The field names come from the table, so the types are those of the table's keys.
        **values,  # type: ignore[arg-type]  # as said above
        origins=origins,
        warnings=tuple(warnings),
        security_overrides=overrides,
    )
    _check_together(config)
    return _with_security(_with_listener_limits(config, settings.values()))


def _with_security(config: Config) -> Config:
    """Check what each listener does before Kafka's protocol, and warn of what has no effect."""
    names = {listener.name.lower() for listener in config.endpoints}
    for listener in config.endpoints:
        try:
            listener_security(config, listener)
        except BadListeners as bad:
            raise _together(config, bad.key, str(bad)) from None
    try:
        warnings = config.warnings + tuple(check_admin(config))
    except BadAdminAccess as bad:
        raise _together(config, bad.key, str(bad)) from None
    unused = [name for name in config.security_overrides if listener_of(name) not in names]
    if unused:
        warnings += (f"Configuration of a listener that there is not: {', '.join(unused)}",)
    if "sasl.jaas.config" in config.origins:
        warnings += (
            "sasl.jaas.config has no effect: it needs the prefix listener.name.NAME.MECHANISM.",
        )
    return replace(config, warnings=warnings)


def _with_listener_limits(config: Config, settings: Iterable[Setting]) -> Config:
    """`listener.name.NAME.max.connections` and the rate, for listeners that there are."""
    listeners = {listener.name.lower(): listener.name for listener in config.endpoints}
    limits: dict[str, dict[str, int]] = {}
    unused: list[str] = []
    for setting in settings:
        split = split_listener_limit(setting.name)
        if split is None:
            continue
        listener, name = split
        key = keys()[name]
        value = _read_value(key, setting)
        assert isinstance(value, int)
        if listener in listeners:
            limits.setdefault(listeners[listener], {})[key.field] = value
        else:
            unused.append(setting.name)
    warnings = config.warnings
    if unused:
        warnings += (f"Configuration of a listener that there is not: {', '.join(unused)}",)
    by_listener = {name: ListenerLimits(**fields) for name, fields in limits.items()}
    return replace(config, listener_limits=by_listener, warnings=warnings)


def command_line_setting(pair: str) -> Setting:
    """One --set NAME=VALUE."""
    name, equals, value = pair.partition("=")
    if not equals or not trim(name):
        start = re.match(r"[\w.-]*", trim(pair))
        assert start is not None
        shown = start[0] if start[0] == pair else f"{start[0]}..."  # the rest may be a secret
        raise ConfigError(f"--set {shown}: must be NAME=VALUE")
    return given(trim(name), value, "--set")


def given(name: str, written: WrittenValue, option: str) -> Setting:
    """A value from an option of the command line; the name must be known."""
    setting = Setting(name, written, Origin("command line", option))
    _require_known(setting)
    return setting


# The file.


def _read_file(path: Path) -> list[Setting]:
    try:
        with path.open("rb") as file:
            content = file.read(_FILE_MAX_BYTES + 1)
    except OSError as failed:
        raise ConfigError(f"--config {path}: {failed.strerror}") from None
    if len(content) > _FILE_MAX_BYTES:
        raise ConfigError(f"--config {path}: larger than {_FILE_MAX_BYTES} bytes")
    match path.suffix:
        case ".properties":
            named: Mapping[str, WrittenValue] = _read_properties(path, content)
        case ".toml":
            named = _read_toml(path, content)
        case _:
            raise ConfigError(f"--config {path}: the name must end in .toml or .properties")
    settings = [Setting(name, value, Origin("file", str(path))) for name, value in named.items()]
    for setting in settings:
        _require_known(setting)
    return settings


def _read_properties(path: Path, content: bytes) -> dict[str, str]:
    try:
        return parse_properties(content)
    except BadProperties as bad:
        raise ConfigError(f"{path}: {bad}") from None


def _read_toml(path: Path, content: bytes) -> dict[str, WrittenValue]:
    import tomllib  # only if there is a file: importing it takes start-up time

    try:
        text = content.decode()
    except UnicodeDecodeError as bad:
        raise ConfigError(f"{path}: not UTF-8 at byte {bad.start}") from None
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as bad:
        raise ConfigError(f"{path}: {_explain_clash(text, str(bad)) or bad}") from None
    except ValueError:  # of int(), for thousands of digits
        raise ConfigError(f"{path}: a number has too many digits") from None
    except RecursionError:
        raise ConfigError(f"{path}: tables or lists are nested too deeply") from None
    flat: dict[str, WrittenValue] = {}
    _flatten(path, "", document, flat)
    return flat


def _flatten(
    path: Path, prefix: str, table: Mapping[str, object], flat: dict[str, WrittenValue]
) -> None:
    """Kafka's dotted names again from TOML's nested tables."""
    for part, value in table.items():
        name = f"{prefix}{part}"
        if isinstance(value, dict):
            _flatten(path, f"{name}.", value, flat)
        elif not isinstance(value, bool | int | float | str | list):
            raise ConfigError(f"{path}: {name}: a date or a time is not a value")
        elif name in flat:
            raise ConfigError(f"{path}: {name}: set twice")
        elif not _fits(value):
            raise ConfigError(
                f"{path}: {name}: must be a text, a number of 64 bits or a list of texts"
            )
        else:
            flat[name] = value


def _fits(value: object) -> bool:
    """TOML's integers have 64 bits, but the library takes any; a list must be of strings."""
    if isinstance(value, int):
        return LONG_MIN <= value <= LONG_MAX
    return not isinstance(value, list) or all(isinstance(word, str) for word in value)


def _explain_clash(text: str, message: str) -> str | None:
    """Name the two keys when one is the beginning of the other, which TOML forbids unquoted.

    max.connections = 5 makes `connections` a number, and max.connections.per.ip wants a table.
    """
    if "overwrite" not in message and "redefine" not in message and "namespace" not in message:
        return None
    written = re.findall(r"^[ \t]*([A-Za-z0-9_.-]+)[ \t]*=", text, flags=re.MULTILINE)
    for longer in written:
        for shorter in written:
            if longer.startswith(f"{shorter}."):
                return (
                    f"{longer}: {shorter} is a key too, and TOML cannot have one inside the other; "
                    f'write both in quotes: "{shorter}" = ... and "{longer}" = ...'
                )
    repeated = [name for name in written if written.count(name) > 1]
    return f"{repeated[0]}: set twice" if repeated else None


# The environment.


def _read_environment(environment: Mapping[str, str], warnings: list[str]) -> list[Setting]:
    settings: list[Setting] = []
    unknown: list[str] = []
    for variable, value in sorted(environment.items()):
        if variable in _OWN_VARIABLES or not variable.startswith(("KAFKA_", "ROLLCALL_")):
            continue
        name = environment_name(variable)
        if _is_known(name):
            settings.append(Setting(name, value, Origin("environment", variable)))
        else:
            unknown.append(variable)
    guesses = _resembling(unknown)
    if guesses:
        warnings.append(f"Environment ignored, no such configuration: {', '.join(guesses)}")
    return settings


def _resembling(variables: list[str]) -> list[str]:
    """Of variables that are no configuration those that look like a misspelled key.

    Scripts and images have others of their own (ROLLCALL_MAIN, KAFKA_OPTS): no warning for those.
    """
    if not variables:
        return []
    from difflib import get_close_matches  # slow to import, and most starts need no guess

    names = [*keys(), *kafka_names("broker")]
    found: list[str] = []
    for variable in variables:
        near = get_close_matches(environment_name(variable), names, n=1, cutoff=_RESEMBLES)
        found += [f"{variable} (did you mean {near[0]}?)" for near in [near] if near]
    return found


def environment_name(variable: str) -> str:
    """KAFKA_MAX_CONNECTIONS_PER_IP: max.connections.per.ip; ROLLCALL_FLUSH: rollcall.flush.

    As Kafka's images have it: _ stands for a dot, __ for an underscore, ___ for a hyphen.
    """
    text = variable.removeprefix("KAFKA_").lower()
    stands_for = {1: ".", 2: "_", 3: "-"}
    return re.sub(r"_+", lambda run: stands_for.get(len(run[0]), run[0]), text)


# Merging and checking.


def _strongest(settings: Iterable[Setting]) -> dict[str, Setting]:
    """One setting for each name; of names for the same value only those of the strongest source."""
    chosen: dict[str, Setting] = {}
    for setting in settings:  # weakest first: the last one stays
        chosen[setting.name] = setting
    for names in _SYNONYMS:
        present = [chosen[name] for name in names if name in chosen]
        strongest = max((_rank(setting) for setting in present), default=0)
        for setting in present:
            if _rank(setting) == strongest and names not in _MUST_AGREE:
                break
            if _rank(setting) < strongest:
                del chosen[setting.name]
    broker_id = chosen.pop("broker.id", None)
    if broker_id is not None and written_text(broker_id.written) != "-1":
        node_id = chosen.setdefault("node.id", Setting("node.id", *_rest(broker_id)))
        if written_text(node_id.written) != written_text(broker_id.written):
            raise ConfigError(sentence(broker_id, "must be the same as node.id"))
    return chosen


def _rank(setting: Setting) -> int:
    return _SOURCES.index(setting.origin.source)


def _rest(setting: Setting) -> tuple[WrittenValue, Origin]:
    return setting.written, setting.origin


def _check_text(setting: Setting) -> None:
    """Any value may be part of a response, a path or a file, so it must be valid text."""
    text = written_text(setting.written)
    if "\0" in text:
        raise ConfigError(sentence(setting, "must not have a zero byte"))
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ConfigError(sentence(setting, "must be valid UTF-8")) from None


def _read_value(key: BrokerKey, setting: Setting) -> ConfigValue:
    try:
        return key.parse(setting.written)
    except ConfigException as refused:
        raise ConfigError(sentence(setting, refused.reason)) from None


def _is_known(name: str) -> bool:
    return name in keys() or is_kafka_name(name) or security_key(name) is not None


def _require_known(setting: Setting) -> None:
    name = setting.name
    if _is_known(name):
        return
    from difflib import get_close_matches

    near = get_close_matches(name, [*keys(), *kafka_names("broker")], n=1)
    guess = f"; did you mean {near[0]}?" if near else ""
    raise ConfigError(sentence(setting, f"no such configuration name{guess}"))


def _check_together(config: Config) -> None:
    """The rules that need more than one value, most of them KafkaConfig.validateValues'."""
    for name, holds, reason in (
        *_consumer_group_rules(config),
        (
            _written_one(config, "log.dirs", "log.dir"),
            len(config.log_dirs or config.log_dir) == 1,
            "must be one directory",
        ),
        (
            "connection.failed.authentication.delay.ms",
            config.connections_max_idle_ms < 0
            or config.connection_failed_authentication_delay_ms < config.connections_max_idle_ms,
            "must be less than connections.max.idle.ms",
        ),
        (
            "group.max.session.timeout.ms",
            config.group_max_session_timeout_ms >= config.group_min_session_timeout_ms,
            "must not be below group.min.session.timeout.ms",
        ),
        (
            "queued.max.request.bytes",
            config.queued_max_request_bytes <= 0
            or config.queued_max_request_bytes >= config.socket_request_max_bytes,
            "must not be below socket.request.max.bytes",
        ),
        (
            "max.connections.per.ip",
            config.max_connections_per_ip > 0 or config.max_connections_per_ip_overrides != "",
            "can be 0 only with max.connections.per.ip.overrides",
        ),
        (
            _written_one(
                config, "log.retention.ms", "log.retention.minutes", "log.retention.hours"
            ),
            config.retention_ms != 0,
            "must be at least 1, or -1 for no limit",
        ),
    ):
        if not holds:
            raise _together(config, name, reason)
    for name, read in (
        ("max.connections.per.ip.overrides", lambda: config.connections_by_address),
        ("rollcall.admin.listener", lambda: config.admin_address),
        ("super.users", lambda: config.super_user_principals),
    ):
        try:
            read()
        except ValueError as bad:
            raise _together(config, name, str(bad)) from None
    try:
        config.endpoints  # noqa: B018 - for its exception
    except BadListeners as bad:
        raise _together(config, bad.key, str(bad)) from None


def _consumer_group_rules(config: Config) -> Iterator[tuple[str, bool, str]]:
    """GroupCoordinatorConfig.validate's rules, and their words."""
    for key in ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms"):
        name, low, high = (f"group.consumer.{part}{key}" for part in ("", "min.", "max."))
        value, least, most = (getattr(config, n.replace(".", "_")) for n in (name, low, high))
        yield high, most >= least, f"must be greater than or equal to {low}"
        yield name, value >= least, f"must be greater than or equal to {low}"
        yield name, value <= most, f"must be less than or equal to {high}"
    yield (
        "group.consumer.heartbeat.interval.ms",
        config.group_consumer_heartbeat_interval_ms < config.group_consumer_session_timeout_ms,
        "must be less than group.consumer.session.timeout.ms",
    )
    yield (
        "group.coordinator.rebalance.protocols",
        "classic" in config.group_coordinator_rebalance_protocols,
        "Disabling the 'classic' protocol is not supported.",
    )


def _written_one(config: Config, *names: str) -> str:
    return next((name for name in names if name in config.origins), names[0])


def _together(config: Config, name: str, reason: str) -> ConfigError:
    key = keys()[name]
    written = convert_to_string(config.value(key))
    return ConfigError(sentence(Setting(name, written, config.origin(key)), reason))
