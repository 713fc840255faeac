"""What is on its way to inboxes, and what has to leave them."""

from hublet.community.threads.records import ThreadKind
from hublet.core.light_dataclasses import dataclass
from hublet.events import RepoSnapshot
from hublet.notifications.records import Item


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """Something that happened in a thread."""

    thread_id: str
    # The comment or change that it leads to; None for the thread itself.
    event_id: str | None
    actor_id: str
    # The last user who was looked at.
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A thread as it is now, with what decides who hears of it."""

    thread_id: str
    kind: ThreadKind
    # The owner of the repository, or of the post or blog; nobody owns a paper.
    owner_id: str | None
    # As it is now, too; only discussions have one.
    repo: RepoSnapshot | None

    @property
    def repo_id(self) -> str | None:
        return self.repo.id if self.repo else None

    def item(self, event_id: str | None) -> Item:
        place_id = self.owner_id if self.kind is ThreadKind.post else self.repo_id
        return Item(
            thread_id=self.thread_id,
            type=self.repo.type if self.repo else self.kind,
            place_id=place_id,
            event_id=event_id,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadGone:
    """A thread that is to leave every inbox."""

    thread_id: str
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoReview:
    """A repository that some people may not see any more, or that is gone."""

    repo_id: str
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberReview:
    """A user who may see less of an organization's private repositories than before."""

    user_id: str
    organization_id: str
    # The last repository that was looked at.
    after: str = ""
