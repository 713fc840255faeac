"""Which blog a request is about, as a type that a route names."""

from typing import Annotated

from fastapi import Depends

from hublet.community.blogs import service
from hublet.community.threads.records import Thread
from hublet.core.http import Conn

# The address of a blog: the user or organization under whose name it stands, and its slug.
BLOG = "/api/blog/{author}/{slug}"


async def _asked_blog(conn: Conn, author: str, slug: str) -> Thread:
    return await service.get(conn, owner=author, slug=slug)


# For routes that change something: the blog is read in their own transaction.
AskedBlog = Annotated[Thread, Depends(_asked_blog)]
