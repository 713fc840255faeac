"""Timeline of a thread: its comments and changes, in the order in which they came."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from markupsafe import Markup

from hublet.community.discussions.records import (
    DiscussionHistory,
    DiscussionRights,
    ThreadReference,
)
from hublet.community.discussions.view import PullRequestHeads, ThreadAudience
from hublet.community.threads.records import (
    Comment,
    CommentRevision,
    EmojiCount,
    PublicThreadRights,
    Thread,
    ThreadChange,
    ThreadStatus,
)
from hublet.core.dataclasses import dataclass
from hublet.core.hub import Hub
from hublet.repos.records import Repo
from hublet.web.picture_sizes import MAX_PICTURES, PictureSource
from hublet.web.repo_head import path_of
from hublet.web.threads.content import EMOJI, place_of, render_markdown

# A longer timeline shows its first comment and its newest entries; all of it has its own address.
MAX_ENTRIES = 200

_ICONS = {
    "commit": "git-commit-horizontal",
    "title-change": "pencil",
    "pinning-change": "pin",
}
_STATUS_ICONS = {"closed": "circle-x", "merged": "git-merge", "open": "circle-dot"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReactionView:
    name: str
    character: str
    count: int
    # Names, for the title of the button.
    users: str
    is_mine: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentEntry:
    id: str
    author: str
    comment: Comment
    html: Markup
    # What the author is to the thread: Author, Owner, or nothing.
    role: str
    reactions: Sequence[ReactionView]
    # What it said before, oldest first.
    versions: Sequence[CommentRevision]
    hidden_by: str | None
    # The comment that it answers, and who wrote that.
    parent: tuple[str, str] | None
    is_first: bool
    may_edit: bool
    may_hide: bool
    is_comment: bool = True

    @property
    def free_emoji(self) -> list[tuple[str, str]]:
        """Names and characters of the emoji that nobody gave yet."""
        used = {each.name for each in self.reactions}
        return [(str(name), shown) for name, shown in EMOJI.items() if str(name) not in used]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeEntry:
    id: str
    author: str
    change: ThreadChange
    icon: str
    # Whether a status of open followed one of closed.
    is_again: bool = False
    is_comment: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceEntry:
    """Somebody named this thread in another one, which the viewer may see."""

    id: str
    author: str
    title: str
    # How it is called from here: `#12`, or with its repository.
    name: str
    href: str
    created_at: datetime
    icon: str
    is_comment: bool = False


TimelineEntry = CommentEntry | ChangeEntry | ReferenceEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadMaterial:
    """All that a timeline is made of."""

    hub: Hub
    thread: Thread
    # None for a paper, post or blog, whose text is no comment.
    repo: Repo | None
    history: DiscussionHistory
    # Where this thread is named, as far as the viewer may see it.
    references: Sequence[tuple[ThreadReference, Repo]]
    audience: ThreadAudience
    rights: DiscussionRights | PublicThreadRights
    user_id: str | None
    # Changes with all that the page shows.
    version: int
    # None for what is no pull request.
    heads: PullRequestHeads | None = None


def build(material: ThreadMaterial, *, is_whole: bool) -> tuple[list[TimelineEntry], int]:
    """Return the entries, and how many were left out after the first. Blocks: it renders texts."""
    history = material.history
    references = [_reference(material, *each) for each in material.references]
    events: list[Comment | ThreadChange | ReferenceEntry] = [
        *history.comments,
        *_changes(material),
        *references,
    ]
    events.sort(key=lambda each: (each.created_at, each.id))
    cut = 0 if is_whole else max(0, len(events) - MAX_ENTRIES)
    if cut:
        events = [events[0], *events[cut:]]
    return list(_entries(material, events)), max(0, cut - 1)


async def add_picture_sizes(
    entries: Sequence[TimelineEntry], material: ThreadMaterial, pictures: PictureSource
) -> list[TimelineEntry]:
    """Return the entries, the first pictures in their comments with the sizes that they lack."""
    place = place_of(material.repo, material.hub)
    left = MAX_PICTURES
    sized = list(entries)
    for number, entry in enumerate(entries):
        if isinstance(entry, CommentEntry) and left > 0 and (count := entry.html.count("<img ")):
            left -= count
            html = await pictures.add_sizes(entry.html, place)
            sized[number] = replace(entry, html=html)
    return sized


def _changes(material: ThreadMaterial) -> Iterator[ThreadChange]:
    """Yield the changes; the commit of a merge is named by the merge itself."""
    merge_commit = material.thread.merge_commit_id
    for change in material.history.changes:
        if change.type != "commit" or change.data.get("oid") != merge_commit:
            yield change


def _entries(
    material: ThreadMaterial, events: Sequence[Comment | ThreadChange | ReferenceEntry]
) -> Iterator[TimelineEntry]:
    ids = [each.id for each in material.history.comments] if material.repo else []
    first = min(ids, default=None)
    was_closed = False
    for event in events:
        if isinstance(event, Comment):
            yield _comment(material, event, is_first=event.id == first)
            continue
        if isinstance(event, ReferenceEntry):
            yield event
            continue
        yield _change(material, event, is_again=was_closed)
        was_closed = was_closed or event.data.get("status") == ThreadStatus.closed


def _reference(material: ThreadMaterial, reference: ThreadReference, repo: Repo) -> ReferenceEntry:
    thread, is_here = reference.thread, material.repo is not None and repo.id == material.repo.id
    return ReferenceEntry(
        id=reference.comment_id,
        author=reference.author,
        title=thread.title,
        name=f"#{thread.number}" if is_here else f"{repo.full_name}#{thread.number}",
        href=f"{path_of(repo)}/discussions/{thread.number}#{reference.comment_id}",
        created_at=reference.created_at,
        icon="git-pull-request" if thread.is_pull_request else "message-square",
    )


def _change(material: ThreadMaterial, change: ThreadChange, *, is_again: bool) -> ChangeEntry:
    status = str(change.data.get("status", ""))
    return ChangeEntry(
        id=change.id,
        author=name_in(material.history, change.author_id),
        change=change,
        icon=_ICONS.get(change.type) or _STATUS_ICONS.get(status, "circle-dot"),
        is_again=is_again,
    )


def _comment(material: ThreadMaterial, comment: Comment, *, is_first: bool) -> CommentEntry:
    history, rights, is_own = (
        material.history,
        material.rights,
        comment.author_id == material.user_id,
    )
    is_shown = not comment.hidden
    return CommentEntry(
        id=comment.id,
        author=name_in(history, comment.author_id),
        comment=comment,
        html=_html(material, comment),
        role=_role(material, comment),
        reactions=[
            _reaction(material, comment, each) for each in history.emoji.get(comment.id, ())
        ],
        versions=history.versions.get(comment.id, ()) if is_shown else (),
        hidden_by=name_in(history, comment.hidden_by) if comment.hidden_by else None,
        parent=_parent(history, comment),
        is_first=is_first,
        may_edit=is_shown and is_own and rights.may_comment,
        may_hide=is_shown and (rights.may_write or (is_own and rights.may_discuss)),
    )


def _html(material: ThreadMaterial, comment: Comment) -> Markup:
    if comment.hidden:
        return Markup()
    place = place_of(material.repo, material.hub, anchor=comment.id)
    return render_markdown(comment.raw, place)


def _role(material: ThreadMaterial, comment: Comment) -> str:
    if material.repo is not None and comment.author_id == material.repo.owner_id:
        return "Owner"
    return "Author" if comment.author_id == material.thread.author_id else ""


def _reaction(material: ThreadMaterial, comment: Comment, emoji: EmojiCount) -> ReactionView:
    return ReactionView(
        name=str(emoji.reaction),
        character=EMOJI[emoji.reaction],
        count=emoji.count,
        users=", ".join(emoji.users),
        is_mine=(comment.id, emoji.reaction) in material.audience.given,
    )


def _parent(history: DiscussionHistory, comment: Comment) -> tuple[str, str] | None:
    parent = next((each for each in history.comments if each.id == comment.parent_id), None)
    return (parent.id, name_in(history, parent.author_id)) if parent else None


def name_in(history: DiscussionHistory, account_id: str | None) -> str:
    """Return the name of an account; those who are gone have none."""
    account = history.accounts.get(account_id or "")
    return account.name if account else "ghost"
