"""Events of discussions, pull requests, papers, posts and blogs."""

from hublet.core.dataclasses import dataclass
from hublet.core.outbox import Event
from hublet.events.repos import RepoSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadSnapshot:
    """A thread as it was when something happened to it.

    `kind` is discussion, paper, post or blog. What only one kind has is absent in the others:
    a discussion has a repository, a number and a status, a paper its paper id, a post or a
    blog its slug.
    """

    id: str
    kind: str
    title: str
    # Absent for what nobody here wrote, such as a paper.
    author_id: str | None = None
    repo: RepoSnapshot | None = None
    number: int | None = None
    is_pull_request: bool = False
    # One of draft, open, closed, merged.
    status: str | None = None
    pinned: bool = False
    base: str | None = None
    merge_commit_id: str | None = None
    paper_id: str | None = None
    slug: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentSnapshot:
    """A comment as it was written or changed; the text of a hidden one is absent."""

    id: str
    author_id: str
    hidden: bool = False
    content: str | None = None
    # The comment it answers, where a thread has replies.
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadCreated(Event):
    """A discussion, pull request, post or blog was opened, or a paper was added.

    `comment` is its first message; `mentioned_ids` are the users it mentions.
    """

    kind = "thread.created"
    thread: ThreadSnapshot
    comment: CommentSnapshot | None
    mentioned_ids: tuple[str, ...] = ()
    actor_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadUpdated(Event):
    """A thread's title, status or pin changed, or a pull request was merged.

    `changed` names what: title, status, pinned, content. `mentioned_ids` are the users whom
    a changed text did not mention before. `event_id` is where it stands in the thread's
    history, if it does: of the commits of one push, the first.
    """

    kind = "thread.updated"
    thread: ThreadSnapshot
    changed: tuple[str, ...]
    event_id: str | None = None
    mentioned_ids: tuple[str, ...] = ()
    actor_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadDeleted(Event):
    """A thread was deleted with its comments."""

    kind = "thread.deleted"
    thread: ThreadSnapshot
    actor_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionCreated(Event):
    """A collection was created; `owner_id` is the user or organization that it belongs to."""

    kind = "collection.created"
    collection_id: str
    owner_id: str
    actor_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionUpdated(Event):
    """A collection changed.

    `changed` names what: title, description, theme, private, position, resourceGroup, items, upvotes.
    """

    kind = "collection.updated"
    collection_id: str
    owner_id: str
    changed: tuple[str, ...]
    actor_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionDeleted(Event):
    """A collection was deleted; what it held stays."""

    kind = "collection.deleted"
    collection_id: str
    owner_id: str
    actor_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentCreated(Event):
    """Somebody commented; `mentioned_ids` are the users whom the comment mentions."""

    kind = "comment.created"
    thread: ThreadSnapshot
    comment: CommentSnapshot
    mentioned_ids: tuple[str, ...] = ()
    actor_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentUpdated(Event):
    """A comment was edited or hidden; `mentioned_ids` are those whom it did not mention before."""

    kind = "comment.updated"
    thread: ThreadSnapshot
    comment: CommentSnapshot
    mentioned_ids: tuple[str, ...] = ()
    actor_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EmojiAdded(Event):
    """A user reacted to a comment with an emoji; `reaction` is its name, as in thumbsup.

    It notifies nobody and triggers no webhook.
    """

    kind = "comment.emoji-added"
    thread: ThreadSnapshot
    comment_id: str
    reaction: str
    actor_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EmojiRemoved(Event):
    """A user took back a reaction. The emoji of a comment that is hidden go without this event."""

    kind = "comment.emoji-removed"
    thread: ThreadSnapshot
    comment_id: str
    reaction: str
    actor_id: str
