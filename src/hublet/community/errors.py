"""Errors of threads: discussions, pull requests, papers, posts, blogs and their comments.

InvalidRequest  400
├── CannotReply
├── InvalidPaper
├── InvalidDay
├── PullRequestsNeedGit
├── InvalidSolution
├── BlogUpdateEmpty
└── InvalidCollection
NotAllowed  403
├── NotYourComment
├── NotYourThread
├── DiscussionsDisabled
├── NotYourDiscussion
├── CannotSubmitFor
├── CannotCreateCollection
└── NotYourCollection
NotFound  404
├── ThreadNotFound
├── CommentNotFound
├── DiscussionNotFound
├── CollectionNotFound
└── ItemNotFound
Conflict  409
├── CommentHidden
├── CannotReplyToHidden
├── CannotReactToHidden
├── NotAPullRequest
├── StatusUnchanged
├── TitleUnchanged
├── PullRequestNotClosed
├── PullRequestRefDeleted
├── MergeConflicts
├── SidesMoved
├── PaperExists
├── CollectionExists
└── ItemExists
"""

from collections.abc import Sequence

from hublet.core.errors import Conflict, InvalidRequest, NotAllowed, NotFound

_MAX_NAMES = 10


class ThreadNotFound(NotFound):
    def __init__(self, what: str) -> None:
        super().__init__(f"There is no {what}, or you cannot see it.")


class CommentNotFound(NotFound):
    def __init__(self, comment_id: str) -> None:
        super().__init__(f"There is no comment {comment_id} in this thread.")


class NotYourComment(NotAllowed):
    def __init__(self, action: str) -> None:
        super().__init__(f"You cannot {action} this comment: it is somebody else's.")


class CommentHidden(Conflict):
    def __init__(self) -> None:
        super().__init__("This comment is hidden: it cannot be edited any more.")


class CannotReply(InvalidRequest):
    def __init__(self) -> None:
        super().__init__("replyTo names no comment of this thread that can be answered.")


class CannotReplyToHidden(Conflict):
    def __init__(self) -> None:
        super().__init__("This comment is hidden: it cannot be answered any more.")


class CannotReactToHidden(Conflict):
    def __init__(self) -> None:
        super().__init__("This comment is hidden: nobody can react to it any more.")


class NotYourThread(NotAllowed):
    """The caller neither wrote this nor may write for the organization that owns it."""

    def __init__(self, action: str, what: str) -> None:
        super().__init__(f"You cannot {action} this {what}: it is somebody else's.")


class DiscussionNotFound(NotFound):
    def __init__(self, full_name: str, number: int) -> None:
        super().__init__(f"There is no discussion {number} in {full_name}.")


class DiscussionsDisabled(NotAllowed):
    def __init__(self, full_name: str) -> None:
        super().__init__(f"Discussions are disabled in {full_name}.")


class NotYourDiscussion(NotAllowed):
    def __init__(self, action: str) -> None:
        super().__init__(
            f"You cannot {action}: only its author and those who may write to the repository can."
        )


class PullRequestsNeedGit(InvalidRequest):
    def __init__(self, repo_type: str) -> None:
        super().__init__(
            f"pullRequest: a {repo_type} has no git and so no pull requests; open a discussion."
        )


class NotAPullRequest(Conflict):
    def __init__(self, number: int) -> None:
        super().__init__(f"Discussion {number} is no pull request.")


class StatusUnchanged(Conflict):
    """The discussion has the requested status already, or is merged."""

    def __init__(self, noun: str, status: str) -> None:
        super().__init__(f"This {noun} is {status} already.")


class TitleUnchanged(Conflict):
    def __init__(self, noun: str) -> None:
        super().__init__(f"This {noun} has that title already.")


class PullRequestNotClosed(Conflict):
    def __init__(self) -> None:
        super().__init__("Close this pull request before its ref is deleted.")


class PullRequestRefDeleted(Conflict):
    def __init__(self) -> None:
        super().__init__("The ref of this pull request was deleted: its commits cannot be reached.")


class MergeConflicts(Conflict):
    """The same places of the same files changed on both sides."""

    def __init__(self, paths: Sequence[str]) -> None:
        named = ", ".join(paths[:_MAX_NAMES])
        more = f" and {len(paths) - _MAX_NAMES} more" if len(paths) > _MAX_NAMES else ""
        super().__init__(f"This pull request conflicts with its base in {named}{more}.")


class SidesMoved(Conflict):
    """The head of a pull request or its base is not the commit that somebody looked at."""

    def __init__(self) -> None:
        super().__init__(
            "The pull request or the branch that it goes to has changed since you looked at it. "
            "Nothing was saved: look at it again."
        )


class InvalidSolution(InvalidRequest):
    def __init__(self, path: str, rule: str) -> None:
        super().__init__(f"{path}: {rule}.")


class InvalidPaper(InvalidRequest):
    pass


class InvalidDay(InvalidRequest):
    pass


class PaperExists(Conflict):
    def __init__(self, paper_id: str) -> None:
        super().__init__(f"The paper {paper_id} is here already.")


class AuthorClaimed(Conflict):
    def __init__(self, paper_id: str) -> None:
        super().__init__(
            f"Another account is this author of {paper_id}: a hub administrator can change that."
        )


class CannotSubmitFor(NotAllowed):
    def __init__(self, user: str) -> None:
        super().__init__(f"submittedBy: only hub administrators submit a paper for {user}.")


class BlogWithoutGroups(InvalidRequest):
    def __init__(self) -> None:
        super().__init__("Only the blogs of an organization can be in a resource group.")


class BlogUpdateEmpty(InvalidRequest):
    def __init__(self) -> None:
        super().__init__("Give title or content: nothing else of a blog can be changed.")


class InvalidCollection(InvalidRequest):
    pass


class CannotCreateCollection(NotAllowed):
    def __init__(self, namespace: str, reason: str) -> None:
        super().__init__(f"You cannot create collections in {namespace}: {reason}")


class NotYourCollection(NotAllowed):
    """The caller sees the collection, and may not change it."""

    def __init__(self, slug: str) -> None:
        super().__init__(
            f"You cannot change the collection {slug}: you have no write access to it."
        )


class CollectionNotFound(NotFound):
    def __init__(self, slug: str) -> None:
        super().__init__(f"There is no collection {slug}, or you cannot see it.")


class ItemNotFound(NotFound):
    """There is no such item in a collection, or nothing to make an item of."""

    def __init__(self, what: str) -> None:
        super().__init__(f"There is no {what}, or you cannot see it.")


class CollectionExists(Conflict):
    """The owner has a collection of this title; the clients read its slug from the body."""

    def __init__(self, title: str, *, slug: str) -> None:
        super().__init__(
            f"There is a collection with the title {title} already: {slug}.", extra={"slug": slug}
        )


class ItemExists(Conflict):
    def __init__(self, what: str, slug: str) -> None:
        super().__init__(f"The {what} is in the collection {slug} already.")
