"""Which switch of a user decides whether something comes into the inbox, and whether by mail."""

from hublet.community.threads.records import ThreadKind
from hublet.core.light_dataclasses import dataclass
from hublet.notifications.preferences.keys import Key
from hublet.notifications.records import Involvement


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    inbox: Key
    mail: Key


_WATCHED = Choice(inbox=Key.web_discussions_watched, mail=Key.discussions_watched)
_DISCUSSED = Choice(inbox=Key.web_discussions_participating, mail=Key.discussions_participating)
_POSTED = Choice(inbox=Key.web_posts_participating, mail=Key.posts_participating)
_PAPER = Choice(inbox=Key.web_posts_participating, mail=Key.arxiv_paper_activity)

# By the kind of thread: for those who merely watch, and for those who have to do with it.
_CHOICES = {
    ThreadKind.discussion: (_WATCHED, _DISCUSSED),
    ThreadKind.post: (_WATCHED, _POSTED),
    ThreadKind.blog: (_WATCHED, _POSTED),
    ThreadKind.paper: (_PAPER, _PAPER),
}


def choice_of(kind: ThreadKind, involvement: Involvement) -> Choice:
    watching, involved = _CHOICES[kind]
    return watching if involvement is Involvement.watched else involved
