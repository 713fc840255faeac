"""A logo as it is served."""

from dataclasses import field

from hublet.core.light_dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Logo:
    media_type: str
    content: bytes = field(repr=False)
