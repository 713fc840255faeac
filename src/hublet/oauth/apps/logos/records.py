"""A logo as it is served."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Logo:
    media_type: str
    content: bytes = field(repr=False)
