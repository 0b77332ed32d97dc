"""Config providers: values that stand in a file, a folder or the environment instead.

    config.providers = file,env,dir
    config.providers.file.class = org.apache.kafka.common.config.provider.FileConfigProvider
    sasl.jaas.config = ${file:/etc/rollcall/secrets.properties:jaas}

`${NAME:PATH:KEY}` is replaced by what the provider NAME has there, within the value of any key and
of any source. Kafka leaves a variable as it is that it cannot resolve; here it stops the start.
Kafka's counterpart: `ConfigTransformer`, `FileConfigProvider`, `DirectoryConfigProvider`,
`EnvVarConfigProvider`, `AllowedPaths`.
"""

import os.path
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Final

from config.java_properties import BadProperties, properties_of
from protocol.java_text import split_list, trim

PROVIDERS_KEY: Final = "config.providers"
SECRET_BYTES_MAX: Final = 1_048_576  # of a file that a provider reads

_CLASSES: Final = "org.apache.kafka.common.config.provider."
_FILE, _DIRECTORY, _ENVIRONMENT = (
    f"{_CLASSES}{name}ConfigProvider" for name in ("File", "Directory", "EnvVar")
)

# ConfigTransformer.DEFAULT_PATTERN.
_VARIABLE: Final = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")


class ProviderRefused(ValueError):
    """A provider that cannot be used; `key` is to be changed."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(reason)
        self.key = key


class Unresolved(ValueError):
    """A variable without a value. The message names the variable, and no value."""


class UnknownProvider(Unresolved):
    """Kafka leaves such a text as it is."""


_Reader = Callable[[str, str], str]
"""(path, key) -> value. Raises Unresolved."""


class Providers:
    """The providers of one configuration. Each file is read once."""

    def __init__(self, settings: Mapping[str, str], environment: Mapping[str, str]) -> None:
        """`settings`: those with names `config.providers.*`. Raises ProviderRefused."""
        self._environment = environment
        self._files: dict[Path, Mapping[str, str]] = {}
        self._providers: dict[str, _Reader] = {
            name: self._provider(name, settings)
            for name in filter(None, split_list(settings.get(PROVIDERS_KEY, "")))
        }

    def resolve(self, text: str) -> tuple[str, str]:
        """The text with the values of its variables, and the names of the providers that had them.

        Raises Unresolved.
        """
        used: dict[str, None] = {}

        def value(match: re.Match[str]) -> str:
            name, path, key = match[1], match[2] or "", match[3]
            if name not in self._providers:
                raise UnknownProvider(f"{name!r} is not one of {PROVIDERS_KEY}")
            used[name] = None
            return self._providers[name](path, key)

        if "${" not in text:
            return text, ""
        return _VARIABLE.sub(value, text), ",".join(used)

    def _provider(self, name: str, settings: Mapping[str, str]) -> _Reader:
        key = f"{PROVIDERS_KEY}.{name}.class"
        prefix = f"{PROVIDERS_KEY}.{name}.param."
        match trim(settings.get(key, "")):
            case "":
                raise ProviderRefused(key, f"required, because {PROVIDERS_KEY} names {name}")
            case str(class_name) if class_name == _ENVIRONMENT:
                pattern = settings.get(f"{prefix}allowlist.pattern", ".*")
                return self._environment_provider(f"{prefix}allowlist.pattern", pattern)
            case str(class_name) if class_name in (_FILE, _DIRECTORY):
                parameter = f"{prefix}allowed.paths"
                allowed = _allowed_paths(parameter, settings.get(parameter, ""))
                read = self._in_file if class_name == _FILE else self._in_directory
                return lambda path, entry: read(_permitted(path, parameter, allowed), entry)
            case _:
                raise ProviderRefused(key, f"must be {_FILE}, {_DIRECTORY} or {_ENVIRONMENT}")

    def _environment_provider(self, parameter: str, pattern: str) -> _Reader:
        try:
            allowed = re.compile(pattern)
        except re.error as bad:
            raise ProviderRefused(parameter, f"not a regular expression: {bad}") from None

        def read(path: str, name: str) -> str:
            if path:
                raise Unresolved(f"the environment has no path {path!r}")
            if not allowed.fullmatch(name):
                raise Unresolved(f"{parameter} does not allow the variable {name}")
            if name not in self._environment:
                raise Unresolved(f"the environment has no variable {name}")
            return self._environment[name]

        return read

    def _in_file(self, path: Path, key: str) -> str:
        if path not in self._files:
            try:
                self._files[path] = properties_of(_text_of(path))
            except BadProperties as bad:
                raise Unresolved(f"{path}: {bad}") from None
        found = self._files[path].get(key)
        if found is None:
            raise Unresolved(f"{path} has no key {key!r}")
        return found

    def _in_directory(self, path: Path, name: str) -> str:
        try:
            is_directory = S_ISDIR(path.stat().st_mode)
        except OSError as failed:
            raise Unresolved(f"{path}: {failed.strerror}") from None
        if not is_directory:
            raise Unresolved(f"{path} is not a directory")
        if name in ("", ".", "..") or "/" in name or "\0" in name:
            raise Unresolved(f"{name!r} is not the name of a file in {path}")
        return _text_of(path / name)


def _allowed_paths(parameter: str, text: str) -> tuple[Path, ...] | None:
    """None: every path. Raises ProviderRefused."""
    if not text:
        return None
    allowed: list[Path] = []
    for part in text.split(","):
        path = Path(os.path.normpath(part))
        if not path.is_absolute():
            raise ProviderRefused(parameter, f"{path} is not absolute")
        if not path.exists():
            raise ProviderRefused(parameter, f"{path} does not exist")
        allowed.append(path)
    return tuple(allowed)


def _permitted(text: str, parameter: str, allowed: Iterable[Path] | None) -> Path:
    """By its text, without `..`, as in Kafka: symbolic links are followed wherever they point."""
    if not text or "\0" in text:
        raise Unresolved("the variable has no path")
    if allowed is None:
        return Path(text)
    path = Path(os.path.normpath(text))
    if not any(path.is_relative_to(each) for each in allowed):
        raise Unresolved(f"{parameter} does not allow {path}")
    return path


def _text_of(path: Path) -> str:
    try:
        if not S_ISREG(path.stat().st_mode):  # a pipe would be waited for
            raise Unresolved(f"{path} is not a file")
        with path.open("rb") as file:
            content = file.read(SECRET_BYTES_MAX + 1)
    except OSError as failed:
        raise Unresolved(f"{path}: {failed.strerror}") from None
    if len(content) > SECRET_BYTES_MAX:
        raise Unresolved(f"{path} is larger than {SECRET_BYTES_MAX} bytes")
    try:
        return content.decode()
    except UnicodeDecodeError as bad:
        raise Unresolved(f"{path}: not UTF-8 at byte {bad.start}") from None
