"""Wire schemas of posts and of community blogs."""

from typing import Annotated, Any, Self

from pydantic import MISSING, Field

from hublet.community.comment_schemas import NOT_BLANK, Author, Title
from hublet.community.threads.records import Accounts, Thread
from hublet.core.schema import ObjectId, Schema, Timestamp

MAX_BLOG = 500_000

BlogContent = Annotated[str, Field(min_length=1, max_length=MAX_BLOG), NOT_BLANK]


class CreateBlog(Schema):
    title: Title
    content: BlogContent
    # The name of the organization that owns it; without one the caller does.
    organization: str | MISSING = MISSING


class UpdateBlog(Schema):
    title: Title | MISSING = MISSING
    content: BlogContent | MISSING = MISSING


class BlogCard(Schema):
    """A blog in a list."""

    id: ObjectId
    slug: str
    title: str
    # Blogs of the hub itself would be canonical; those of its users never are.
    canonical: bool = False
    # Who wrote it.
    author: Author | MISSING = MISSING
    # Its owner, if that is not the author.
    organization: Author | MISSING = MISSING
    publishedAt: Timestamp
    # When it was last changed or commented on.
    updatedAt: Timestamp
    numComments: int

    @classmethod
    def of(cls, blog: Thread, accounts: Accounts, *, base_url: str) -> Self:
        return cls.model_validate(_card_fields(blog, accounts, base_url))


class Blog(BlogCard):
    content: str

    @classmethod
    def of(cls, blog: Thread, accounts: Accounts, *, base_url: str) -> Self:
        return cls.model_validate(
            _card_fields(blog, accounts, base_url) | {"content": blog.body or ""}
        )


def _card_fields(blog: Thread, accounts: Accounts, base_url: str) -> dict[str, Any]:
    organization_id = None if blog.owner_id == blog.author_id else blog.owner_id
    return {
        "id": blog.id,
        "slug": blog.slug,
        "title": blog.title,
        "author": Author.of_id(blog.author_id, accounts, base_url=base_url),
        "organization": Author.of_id(organization_id, accounts, base_url=base_url),
        "publishedAt": blog.created_at,
        "updatedAt": blog.updated_at,
        "numComments": blog.comment_count,
    }


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
