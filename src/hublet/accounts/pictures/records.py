"""A picture as it is served."""

from hublet.core.light_dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    media_type: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Portrayed:
    """Whose picture it is, and the uploaded one if there is one to show."""

    name: str
    upload: Picture | None
