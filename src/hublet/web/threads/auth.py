"""Parameters of requests as annotated types: the thread that a path names."""

from typing import Annotated

from fastapi import Depends, Path, Query
from starlette.convertors import Convertor, register_url_convertor

from hublet.community import blogs, posts
from hublet.community.papers import service as papers
from hublet.community.threads.records import Thread, ThreadKind
from hublet.core.database import Reader
from hublet.core.dataclasses import dataclass
from hublet.repos.auth import PAGE_REPO
from hublet.tokens.records import Caller
from hublet.web.threads.views import ThreadQuery

THREADS = f"{PAGE_REPO}/discussions"
THREAD = f"{THREADS}/{{num:int}}"
Number = Annotated[int, Path(ge=1, le=2**31 - 1)]

_Id = Annotated[str, Query(max_length=24)]


async def _thread_query(
    entries: Annotated[str, Query(max_length=10)] = "",
    edit: _Id = "",
    quote: _Id = "",
    reply: _Id = "",
) -> ThreadQuery:
    return ThreadQuery(is_whole=entries == "all", edit=edit, quote=quote, reply=reply)


RequestedThreadQuery = Annotated[ThreadQuery, Depends(_thread_query)]


class _FolderConvertor(Convertor[str]):
    regex = "papers|posts|blog"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


class _OwnedFolderConvertor(_FolderConvertor):
    regex = "posts|blog"


class _PublicPlaceConvertor(_FolderConvertor):
    # All that stands before the last part of the address of a paper, post or blog.
    regex = "papers|posts/[^/]+|blog/[^/]+"


register_url_convertor("public_folder", _FolderConvertor())
register_url_convertor("owned_folder", _OwnedFolderConvertor())
register_url_convertor("public_place", _PublicPlaceConvertor())
PUBLIC_THREAD = "/{place:public_place}/{slug}"

_KINDS = {"papers": ThreadKind.paper, "posts": ThreadKind.post, "blog": ThreadKind.blog}


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicAddress:
    """The address of a paper, post or blog."""

    kind: ThreadKind
    # The owner of a post or blog.
    owner: str
    # The id of a paper.
    slug: str

    async def find(self, conn: Reader) -> Thread:
        """Return the thread; otherwise it is not found."""
        if self.kind is ThreadKind.paper:
            return (await papers.get(conn, self.slug)).thread
        if self.kind is ThreadKind.post:
            return await posts.get(conn, user=self.owner, slug=self.slug)
        return await blogs.get(conn, owner=self.owner, slug=self.slug)


async def owns(conn: Reader, caller: Caller | None, thread: Thread) -> bool:
    """Tell whether a post or blog is the caller's; a paper is nobody's here."""
    if caller is None or thread.kind is ThreadKind.paper:
        return False
    if thread.kind is ThreadKind.post:
        return posts.owns(caller, thread)
    return await blogs.owns(conn, caller, thread)


async def _public_address(place: str, slug: str) -> PublicAddress:
    folder, _, owner = place.partition("/")
    return PublicAddress(kind=_KINDS[folder], owner=owner, slug=slug)


PublicThreadAddress = Annotated[PublicAddress, Depends(_public_address)]
