"""Records of recipients: activity in a thread, cleanups, and the preferences that decide."""

from hublet.community.threads.records import ThreadKind
from hublet.core.dataclasses import dataclass
from hublet.events import RepoSnapshot
from hublet.notifications.preferences.switches import PreferenceKey
from hublet.notifications.records import InboxItem, Involvement


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadActivity:
    """An event in a thread, and the recipients still to be notified."""

    thread_id: str
    # The comment or change that it leads to; None for the thread itself.
    event_id: str | None
    actor_id: str
    # The last user who was processed.
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadSubject:
    """A thread as it is now, with what decides who is notified."""

    thread_id: str
    kind: ThreadKind
    # The owner of the repository, or of the post or blog; nobody owns a paper.
    owner_id: str | None
    # As it is now; only discussions have one.
    repo: RepoSnapshot | None

    @property
    def repo_id(self) -> str | None:
        return self.repo.id if self.repo else None

    def item(self, event_id: str | None) -> InboxItem:
        place_id = self.owner_id if self.kind is ThreadKind.post else self.repo_id
        return InboxItem(
            thread_id=self.thread_id,
            type=self.repo.type if self.repo else self.kind,
            place_id=place_id,
            event_id=event_id,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadRemoval:
    """A thread that is to be removed from every inbox."""

    thread_id: str
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoReview:
    """A repository that was deleted, or that some users may not see any more."""

    repo_id: str
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberReview:
    """A user who may see less of an organization's private repositories than before."""

    user_id: str
    organization_id: str
    # The last repository that was processed.
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelKeys:
    """The preferences that decide about the inbox and about mail."""

    inbox: PreferenceKey
    mail: PreferenceKey


_WATCHED = ChannelKeys(
    inbox=PreferenceKey.web_discussions_watched, mail=PreferenceKey.discussions_watched
)
_DISCUSSED = ChannelKeys(
    inbox=PreferenceKey.web_discussions_participating, mail=PreferenceKey.discussions_participating
)
_POSTED = ChannelKeys(
    inbox=PreferenceKey.web_posts_participating, mail=PreferenceKey.posts_participating
)
_PAPER = ChannelKeys(
    inbox=PreferenceKey.web_posts_participating, mail=PreferenceKey.arxiv_paper_activity
)

# By the kind of thread: for those who merely watch, and for those who are involved.
_KEYS = {
    ThreadKind.discussion: (_WATCHED, _DISCUSSED),
    ThreadKind.post: (_WATCHED, _POSTED),
    ThreadKind.blog: (_WATCHED, _POSTED),
    ThreadKind.paper: (_PAPER, _PAPER),
}


def channel_keys(kind: ThreadKind, involvement: Involvement) -> ChannelKeys:
    watching, involved = _KEYS[kind]
    return watching if involvement is Involvement.watched else involved
