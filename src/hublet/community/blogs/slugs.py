"""What a blog is called in its address."""

import re
import unicodedata
from collections.abc import Iterator

MAX_LENGTH = 80

_OTHERS = re.compile(r"[^a-z0-9]+")
# After that many blogs of one title, numbers are drawn and no longer counted.
_COUNTED = 9


def slug_of(title: str) -> str:
    """Return the title in ASCII letters, digits and hyphens; accents go, other scripts do too."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    words = _OTHERS.sub("-", plain.replace("'", "")).strip("-")
    return words[:MAX_LENGTH].rstrip("-") or "blog"


def counted_slugs(title: str) -> Iterator[str]:
    """Yield the names to try, one after the other."""
    slug = slug_of(title)
    yield slug
    for number in range(2, _COUNTED + 1):
        yield f"{slug}-{number}"
