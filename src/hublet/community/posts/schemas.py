"""Wire schemas of posts."""

from typing import Annotated, Self

from pydantic import MISSING, Field

from hublet.community.comment_schemas import NOT_BLANK, Author, Title
from hublet.community.threads.records import Accounts, Thread
from hublet.core.schema import ObjectId, Schema, Timestamp

MAX_POST = 20_000


class CreatePost(Schema):
    content: Annotated[str, Field(min_length=1, max_length=MAX_POST), NOT_BLANK]
    # Without one the first line of the content is the title.
    title: Title | MISSING = MISSING


class Post(Schema):
    id: ObjectId
    slug: str
    title: str
    rawContent: str
    author: Author | MISSING = MISSING
    publishedAt: Timestamp
    # When it was last commented on; when it was published, if it never was.
    updatedAt: Timestamp
    numComments: int

    @classmethod
    def of(cls, post: Thread, accounts: Accounts, *, base_url: str) -> Self:
        return cls(
            id=post.id,
            slug=post.slug or "",
            title=post.title,
            rawContent=post.body or "",
            author=Author.of_id(post.owner_id, accounts, base_url=base_url),
            publishedAt=post.created_at,
            updatedAt=post.updated_at,
            numComments=post.comment_count,
        )


class Posts(Schema):
    """A part of all posts, and how many there are."""

    socialPosts: list[Post]
    numTotalItems: int
