"""Wire schemas of papers."""

from typing import Annotated, Any, Literal, Self

from pydantic import MISSING, Field

from hublet.accounts.avatars import avatar_url
from hublet.community.comment_schemas import NOT_BLANK, Author, Title
from hublet.community.papers import records
from hublet.community.threads.records import Accounts
from hublet.core.schema import Line, ObjectId, Schema, Timestamp

MAX_SUMMARY = 20_000
MAX_AUTHORS = 500

# A page may link to it, so it is nothing that a browser would run.
WebAddress = Annotated[
    str, Field(pattern=r"^https?://[^\s<>\"]+$", max_length=500, examples=["https://example.com"])
]
_PaperId = Annotated[str, Field(min_length=3, max_length=64)]


class IndexPaper(Schema):
    """A paper with what is known of it; its id stands in one of the first two fields."""

    arxivId: _PaperId | MISSING = MISSING
    id: _PaperId | MISSING = MISSING
    title: Title
    summary: Annotated[str, Field(min_length=1, max_length=MAX_SUMMARY), NOT_BLANK]
    authors: Annotated[list[Line], Field(min_length=1, max_length=MAX_AUTHORS)]
    # The time of the submission counts without one.
    publishedAt: Timestamp | MISSING = MISSING
    # The name of the submitter; only hub administrators may name another user.
    submittedBy: str | MISSING = MISSING


class Submitter(Schema):
    id: Annotated[ObjectId, Field(alias="_id")]
    user: str
    name: str
    fullname: str
    avatarUrl: str
    type: Literal["user", "service-account"]

    @classmethod
    def of_id(cls, user_id: str, accounts: Accounts, *, base_url: str) -> Self | MISSING:
        account = accounts.get(user_id)
        if account is None:
            return MISSING
        return cls.model_validate(
            {
                "_id": account.id,
                "user": account.name,
                "name": account.name,
                "fullname": account.fullname,
                "avatarUrl": avatar_url(base_url, account.id),
                "type": account.wire_type,
            }
        )


class PaperAuthor(Schema):
    id: Annotated[ObjectId, Field(alias="_id")]
    name: str
    hidden: bool = False
    # The account that claimed to be this author.
    user: Submitter | MISSING = MISSING


class UpdatePaperLinks(Schema):
    """What is left out stays; null takes it away."""

    projectPage: WebAddress | MISSING | None = MISSING
    githubRepo: WebAddress | MISSING | None = MISSING
    organizationId: ObjectId | MISSING | None = MISSING


class PaperLinksUpdated(Schema):
    """The links are changed; there is no more to say."""


class ClaimPaper(Schema):
    paperId: _PaperId
    claimAuthorId: Annotated[ObjectId, Field(description="The `_id` of one of its authors.")]
    # The author's account; only hub administrators may name another than their own.
    targetUserId: ObjectId | MISSING = MISSING


class ClaimedPaper(Schema):
    ok: bool
    claimedPaperId: str


class Paper(Schema):
    object_id: Annotated[ObjectId, Field(alias="_id")]
    id: str
    title: str
    summary: str
    authors: list[PaperAuthor]
    publishedAt: Timestamp
    submittedOnDailyAt: Timestamp
    submittedOnDailyBy: Submitter | MISSING = MISSING
    upvotes: int
    projectPage: str | MISSING = MISSING
    githubRepo: str | MISSING = MISSING
    organization: Author | MISSING = MISSING
    # The thread with its comments.
    discussionId: ObjectId
    numComments: int

    @classmethod
    def of(cls, paper: records.PaperRecord, accounts: Accounts, *, base_url: str) -> Self:
        return cls.model_validate(
            {
                "_id": paper.thread.id,
                "id": paper.id,
                "title": paper.thread.title,
                "summary": paper.summary,
                "authors": _authors_of(paper, accounts, base_url),
                "publishedAt": paper.published_at,
                "submittedOnDailyAt": paper.submitted_at,
                "submittedOnDailyBy": Submitter.of_id(
                    paper.submitter_id, accounts, base_url=base_url
                ),
                "upvotes": paper.upvotes,
                "projectPage": paper.links.project_page or MISSING,
                "githubRepo": paper.links.github_repo or MISSING,
                "organization": Author.of_id(
                    paper.links.organization_id, accounts, base_url=base_url
                ),
                "discussionId": paper.thread.id,
                "numComments": paper.thread.comment_count,
            }
        )


def _authors_of(
    paper: records.PaperRecord, accounts: Accounts, base_url: str
) -> list[dict[str, Any]]:
    return [
        {
            "_id": author_id,
            "name": name,
            "user": Submitter.of_id(paper.claims.get(author_id, ""), accounts, base_url=base_url),
        }
        for author_id, name in zip(paper.author_ids, paper.authors, strict=True)
    ]


class PaperItem(Schema):
    """A paper among the daily ones or those that a search found."""

    paper: Paper
    title: str
    summary: str
    # When it was submitted here: so the clients read it.
    publishedAt: Timestamp
    submittedBy: Submitter | MISSING = MISSING
    numComments: int

    @classmethod
    def of(cls, paper: records.PaperRecord, accounts: Accounts, *, base_url: str) -> Self:
        details = Paper.of(paper, accounts, base_url=base_url)
        return cls(
            paper=details,
            title=details.title,
            summary=details.summary,
            publishedAt=details.submittedOnDailyAt,
            submittedBy=details.submittedOnDailyBy,
            numComments=details.numComments,
        )


class Upvotes(Schema):
    """How many voted for a paper, and whether the caller is one of them."""

    upvotes: int
    isUpvotedByUser: bool
