"""Environment variables of a command; those of settings are read by `core/config`."""

import os
from pathlib import Path
from typing import TextIO


def has_colours(stream: TextIO) -> bool:
    """Return whether to use colours: on a terminal, unless NO_COLOR is set."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


def first_variable(*names: str) -> str | None:
    """Return the value of the first of these variables that is set and not empty."""
    return next((value for name in names if (value := os.environ.get(name))), None)


def first_variable_set(*names: str) -> str | None:
    """Return the name of the first of these variables that is set and not empty."""
    return next((name for name in names if os.environ.get(name)), None)


def config_folder() -> Path:
    """Return the folder of this user's configuration files (XDG)."""
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    # The standard says to ignore a relative path.
    return Path(folder) if Path(folder).is_absolute() else Path.home() / ".config"
