"""What the shell tells a command beside the settings, which only `core/config` reads."""

import os
from typing import TextIO


def has_colours(stream: TextIO) -> bool:
    """Tell whether colours help here: on a terminal, unless NO_COLOR asks for none."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


def variables_in_use() -> dict[str, str]:
    """Return the variables that begin like our settings, in the order of their names."""
    return {name: os.environ[name] for name in sorted(os.environ) if name.startswith("HUBLET_")}
