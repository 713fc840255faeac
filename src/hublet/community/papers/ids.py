"""What a paper is called in its address."""

import re

from hublet.community.papers.errors import InvalidPaper

# What stands at this place in addresses of the API, and what may come to.
_RESERVED = frozenset({"claim", "daily", "index", "list", "new", "search", "trending"})

_ARXIV = re.compile(r"[0-9]{4}\.[0-9]{4,5}")
_OWN = re.compile(r"(?=.{3,64}$)[a-z][a-z0-9]*(-[a-z0-9]+)*")


def check_id(paper_id: str) -> None:
    """Refuse what cannot name a paper."""
    if _ARXIV.fullmatch(paper_id) is None and _OWN.fullmatch(paper_id) is None:
        raise InvalidPaper(
            "A paper's id is an arXiv id such as 2401.12345, without its version, or 3 to 64 "
            "lower-case letters, digits and single hyphens that start with a letter."
        )
    if paper_id in _RESERVED:
        raise InvalidPaper(f"The id {paper_id} is reserved.")
