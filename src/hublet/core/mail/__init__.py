"""Mail: the one door through which the hub sends it."""

from hublet.core.mail.errors import LetterDelayed, LetterRefused, PostUnavailable
from hublet.core.mail.letters import Letter, one_line
from hublet.core.mail.opening import domain_of, folder_of, post_of
from hublet.core.mail.post import Post

__all__ = [
    "Letter",
    "LetterDelayed",
    "LetterRefused",
    "Post",
    "PostUnavailable",
    "domain_of",
    "folder_of",
    "one_line",
    "post_of",
]
