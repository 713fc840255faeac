"""A wish to change a repository's settings."""

from typing import Literal

from hublet.core.light_dataclasses import dataclass
from hublet.repos.records import Gated, Visibility


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsChange:
    """What is None keeps its value; `gated` False takes the gate away."""

    visibility: Visibility | None = None
    gated: Gated | Literal[False] | None = None
    discussions_disabled: bool | None = None
