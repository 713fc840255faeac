"""What a user offers as tools."""

import re

from hublet.core.light_dataclasses import dataclass
from hublet.repos.records import Repo

# Shown for a space whose card has none.
DEFAULT_EMOJI = "🚀"
# The longest emoji, a family of four with skin tones, has eleven code points.
_LONGEST_EMOJI = 16

_NOT_IN_A_DOMAIN = re.compile("[^a-z0-9]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    built_in: tuple[str, ...] = ()
    spaces: tuple[Repo, ...] = ()


def emoji_of(space: Repo) -> str:
    """Return the emoji of the space's card; whoever writes a card may have put anything there."""
    emoji = (space.card or {}).get("emoji")
    if not isinstance(emoji, str) or not 0 < len(emoji.strip()) <= _LONGEST_EMOJI:
        return DEFAULT_EMOJI
    return emoji.strip()


def subdomain_of(space: Repo) -> str:
    """Return what stands in front of the domain of spaces, as the public hub writes it."""
    return _NOT_IN_A_DOMAIN.sub("-", f"{space.owner_name}-{space.name}".lower())
