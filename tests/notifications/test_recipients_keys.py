"""Which switch decides: one line for each kind of thread and part in it."""

import pytest

from hublet.community.threads.records import ThreadKind
from hublet.notifications.preferences.switches import SWITCHES
from hublet.notifications.recipients.records import channel_keys
from hublet.notifications.records import Involvement


@pytest.mark.parametrize(
    ("kind", "involvement", "inbox", "mail"),
    [
        ("discussion", "watched", "web_discussions_watched", "discussions_watched"),
        (
            "discussion",
            "participating",
            "web_discussions_participating",
            "discussions_participating",
        ),
        ("discussion", "mentioned", "web_discussions_participating", "discussions_participating"),
        ("post", "watched", "web_discussions_watched", "discussions_watched"),
        ("post", "participating", "web_posts_participating", "posts_participating"),
        ("post", "mentioned", "web_posts_participating", "posts_participating"),
        ("blog", "watched", "web_discussions_watched", "discussions_watched"),
        ("blog", "participating", "web_posts_participating", "posts_participating"),
        ("blog", "mentioned", "web_posts_participating", "posts_participating"),
        ("paper", "watched", "web_posts_participating", "arxiv_paper_activity"),
        ("paper", "participating", "web_posts_participating", "arxiv_paper_activity"),
        ("paper", "mentioned", "web_posts_participating", "arxiv_paper_activity"),
    ],
)
def test_the_switches_of(kind: str, involvement: str, inbox: str, mail: str) -> None:
    choice = channel_keys(ThreadKind(kind), Involvement[involvement])

    assert (choice.inbox, choice.mail) == (inbox, mail)
    assert (SWITCHES[choice.inbox].in_inbox, SWITCHES[choice.mail].in_inbox) == (True, False)
