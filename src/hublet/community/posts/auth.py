"""Which post a request is about, as a type that a route names."""

from typing import Annotated

from fastapi import Depends

from hublet.community.posts import service
from hublet.community.threads.records import Thread
from hublet.core.http import Conn

# The address of a post.
POST = "/api/posts/{user}/{slug}"


async def _asked_post(conn: Conn, user: str, slug: str) -> Thread:
    return await service.get(conn, user=user, slug=slug)


# For routes that change something: the post is read in their own transaction.
AskedPost = Annotated[Thread, Depends(_asked_post)]
