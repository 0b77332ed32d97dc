"""Variables: what stands for the `${NAME:PATH:KEY}` in the settings of all sources.

`providers.py` has the values. The strongest setting of a name is resolved, no other.
"""

from collections.abc import Mapping

from msgspec.structs import replace

from config.keys import Origin
from config.listener_security import is_secret
from config.providers import (
    PROVIDERS_KEY,
    ProviderRefused,
    Providers,
    UnknownProvider,
    Unresolved,
)
from config.written import ConfigError, Setting, sentence, written_text


def resolve_variables(
    settings: Mapping[str, Setting], environment: Mapping[str, str], warnings: list[str]
) -> dict[str, Setting]:
    """All settings but those of the config providers, which have replaced their variables."""
    own = {name: each for name, each in settings.items() if _is_of_providers(name)}
    try:
        texts = {name: written_text(setting.written) for name, setting in own.items()}
        providers = Providers(texts, environment)
    except ProviderRefused as refused:
        setting = own.get(refused.key, Setting(refused.key, "", Origin()))
        raise ConfigError(sentence(setting, str(refused))) from None
    found: dict[str, Setting] = {}
    for name, setting in settings.items():
        if name in own:
            continue
        try:
            found[name] = _resolved_setting(setting, providers)
        except UnknownProvider as unknown:
            if is_secret(name):  # the variable itself would be the secret, for all to read
                raise ConfigError(sentence(setting, str(unknown))) from None
            warnings.append(f"{name} keeps its variable: {unknown}")
            found[name] = setting
        except Unresolved as missing:
            raise ConfigError(sentence(setting, str(missing))) from None
    return found


def _resolved_setting(setting: Setting, providers: Providers) -> Setting:
    written = setting.written
    if isinstance(written, bool | int | float):
        return setting
    words = [written] if isinstance(written, str) else [str(word) for word in written]
    resolved = [providers.resolve(word) for word in words]
    used = ",".join(dict.fromkeys(names for _, names in resolved if names))
    if not used:
        return setting
    texts = [text for text, _ in resolved]
    found = texts[0] if isinstance(written, str) else texts
    return replace(setting, written=found, origin=replace(setting.origin, provider=used))


def _is_of_providers(name: str) -> bool:
    return name == PROVIDERS_KEY or name.startswith(f"{PROVIDERS_KEY}.")
