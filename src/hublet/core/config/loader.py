"""Loader of the settings: flags over HUBLET_… variables over a TOML file over defaults."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import Field, fields, replace
from pathlib import Path
from typing import Any

from hublet.core.config.settings import Settings
from hublet.core.dataclasses import dataclass

CONFIG_VARIABLE = "HUBLET_CONFIG"
# For commands: which hub to call, and with which token. A hub has no use for them.
_COMMAND_VARIABLES = {"HUBLET_ENDPOINT", "HUBLET_TOKEN"}
CONFIG_FILE = "hublet.toml"
# With the name of a variable, where a setting comes from.
VARIABLE = "the variable "

_SHORT_VARIABLES = {
    "database.data_dir": "HUBLET_DATA_DIR",
    "server.base_url": "HUBLET_BASE_URL",
    "server.host": "HUBLET_HOST",
    "server.port": "HUBLET_PORT",
    "server.role": "HUBLET_ROLE",
    "server.processes": "HUBLET_PROCESSES",
    "server.test_mode": "HUBLET_TEST_MODE",
    "tokens.prefix": "HUBLET_TOKEN_PREFIX",
}

# Each key with the source it came from, in words, and the value as it stands there.
_SourceValues = dict[str, tuple[str, object]]


class ConfigurationError(Exception):
    """Invalid settings: one sentence on each line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingInfo:
    group: str
    name: str
    variable: str
    toml_key: str
    type: str
    default: str
    sentence: str
    secret: bool


_DEFAULTS = Settings()
_GROUPS = [each.name for each in fields(_DEFAULTS) if each.name not in {"file", "origins"}]
_FIELDS: dict[str, Field[Any]] = {
    f"{group}.{each.name}": each for group in _GROUPS for each in fields(getattr(_DEFAULTS, group))
}
_VARIABLES = {
    _SHORT_VARIABLES.get(key, f"HUBLET_{key.replace('.', '_').upper()}"): key for key in _FIELDS
}


def describe() -> list[SettingInfo]:
    """List what may be set, in the order of the groups."""
    return [_describe(variable, key) for variable, key in _VARIABLES.items()]


def _describe(variable: str, key: str) -> SettingInfo:
    group, _, name = key.partition(".")
    metadata = _FIELDS[key].metadata
    return SettingInfo(
        group=group,
        name=name,
        variable=variable,
        toml_key=key,
        type=metadata["kind"].words,
        default=_default_text(_FIELDS[key].default, unset=metadata["unset"]),
        sentence=metadata["sentence"],
        secret=metadata["secret"],
    )


def _default_text(default: object, *, unset: str) -> str:
    if default is None:
        return unset
    if default == ():
        return "empty"
    if isinstance(default, tuple):
        return ",".join(map(str, default))
    return str(default).lower() if isinstance(default, bool) else str(default)


def safe_database_url(url: str) -> str:
    """Return the URL with *** in place of every password in it."""
    masked = re.sub(r"(://[^:/@]*:).*@", r"\1***@", url)
    return re.sub(r"(password=)[^&#]*", r"\1***", masked)


def load(
    overrides: Mapping[str, object] | None = None, environ: Mapping[str, str] | None = None
) -> Settings:
    """Read the settings from every source, or raise one error that lists all that is wrong.

    `overrides` are keyed like the TOML file (`server.port`), and `config` names that file;
    None stands for a flag that was not given. Every source is checked, also where a stronger
    one wins: a mistake in the file shall not wait for the day the flag is dropped.
    """
    flags = {key: value for key, value in (overrides or {}).items() if value is not None}
    environ = os.environ if environ is None else environ
    named = flags.pop("config", environ.get(CONFIG_VARIABLE))
    problems: list[str] = []
    by_variable = _from_variables(environ)
    by_flag: _SourceValues = {key: ("a flag", value) for key, value in flags.items()}
    values = _check_values(by_variable, problems) | _check_values(by_flag, problems)
    data_dir = Path(values.get("database.data_dir", _DEFAULTS.database.data_dir))
    path = data_dir / CONFIG_FILE if named is None else Path(str(named))
    is_there = named is not None or path.exists()
    in_file = _from_file(path, problems) if is_there else {}
    values = _check_values(in_file, problems) | values
    if problems:
        raise ConfigurationError("\n".join(problems))
    groups = {group: _build_group(group, values) for group in _GROUPS}
    origins = {key: source for key, (source, _) in (in_file | by_variable | by_flag).items()}
    return Settings(**groups, file=path.absolute() if is_there else None, origins=origins)


def _build_group(group: str, values: dict[str, Any]) -> Any:
    named = (key.partition(".") for key in values)
    own = {name: values[f"{group}.{name}"] for start, _, name in named if start == group}
    return replace(getattr(_DEFAULTS, group), **own)


def aws_environment() -> dict[str, str]:
    """Return the variables by which programs learn how to reach AWS and what is like it."""
    return {name: value for name, value in os.environ.items() if name.startswith("AWS_") and value}


def _from_variables(environ: Mapping[str, str]) -> _SourceValues:
    return {
        _VARIABLES.get(name, name): (f"{VARIABLE}{name}", value)
        for name, value in environ.items()
        if name.startswith("HUBLET_") and name not in {CONFIG_VARIABLE, *_COMMAND_VARIABLES}
    }


def _from_file(path: Path, problems: list[str]) -> _SourceValues:
    try:
        import tomllib  # noqa: PLC0415 - without a file, every command starts faster.

        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        problems.append(f"The settings file {path} cannot be read: {error.strerror}.")
        return {}
    except ValueError as error:
        problems.append(f"The settings file {path} is not TOML: {error}.")
        return {}
    return {key: (f"{path}:{key}", value) for key, value in _flatten(document)}


def _flatten(document: dict[str, Any]) -> Iterator[tuple[str, object]]:
    for group, table in document.items():
        # A group that does not exist is an error even when it is empty.
        if isinstance(table, dict) and (table or group in _GROUPS):
            yield from ((f"{group}.{name}", value) for name, value in table.items())
        else:
            yield group, table


def _check_values(given: _SourceValues, problems: list[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, (source, value) in given.items():
        if key not in _FIELDS:
            problems.append(f"{key}, from {source}, is not a setting{_hint(key)}")
            continue
        metadata = _FIELDS[key].metadata
        try:
            values[key] = metadata["kind"].read(value)
        except (ValueError, RuntimeError):  # A path in a home that does not exist is the latter.
            instead = "" if metadata["secret"] else f", not {safe_database_url(repr(value))}"
            problems.append(f"{key}, from {source}, must be {metadata['kind'].words}{instead}.")
    return values


def _hint(key: str) -> str:
    import difflib  # noqa: PLC0415 - needed only when something is wrong.

    meant = key.removeprefix("HUBLET_").lower().replace("_", ".", 1)
    if meant in _SHORT_VARIABLES:
        return f"; did you mean {_SHORT_VARIABLES[meant]}?"
    near = difflib.get_close_matches(key, [*_FIELDS, *_VARIABLES], n=1, cutoff=0.5)
    return f"; did you mean {near[0]}?" if near else "."
