"""Environment variables of a command, beside the settings, which only `core/config` reads."""

import os
from pathlib import Path
from typing import TextIO


def has_colours(stream: TextIO) -> bool:
    """Tell whether colours help here: on a terminal, unless NO_COLOR asks for none."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


def variables_in_use() -> dict[str, str]:
    """Return the variables that begin like our settings, in the order of their names."""
    return {name: os.environ[name] for name in sorted(os.environ) if name.startswith("HUBLET_")}


def first_variable(*names: str) -> str | None:
    """Return the value of the first of these variables that is set and not empty."""
    return next((value for name in names if (value := os.environ.get(name))), None)


def first_variable_set(*names: str) -> str | None:
    """Return the name of the first of these variables that is set and not empty."""
    return next((name for name in names if os.environ.get(name)), None)


def config_folder() -> Path:
    """Return where this person's programs keep what they remember."""
    named = os.environ.get("XDG_CONFIG_HOME", "")
    # The standard asks for a full path, and to pass over any other.
    return Path(named) if Path(named).is_absolute() else Path.home() / ".config"
