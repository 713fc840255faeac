"""Hub: the settings and keys that every part of one running hub shares."""

from hublet.core.config import Settings
from hublet.core.dataclasses import dataclass
from hublet.core.sealing import KeyRing


@dataclass(frozen=True, slots=True, kw_only=True)
class Hub:
    settings: Settings
    keys: KeyRing
