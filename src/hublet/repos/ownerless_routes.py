"""HTTP for names without an owner: no repository of this hub has one, whatever is asked of it.

`gpt2` instead of `ada/gpt2` shifts every part of an address by one, so that the routes of another
repository, or none, would answer. The public clients recognize a missing repository by its code.
"""

from typing import NoReturn

from hublet.core.http import Router
from hublet.core.schema import Done
from hublet.repos.auth import GIT_TAGS, GitRepoKind
from hublet.repos.errors import RepoNotFound
from hublet.tokens.auth import AnyCaller, MaybeCaller

_REPO = "/api/{kind:kind}/{name:lone}"
_WRITES = ["POST", "PUT", "PATCH", "DELETE"]

router = Router(tags=GIT_TAGS)
# The description has the addresses with an owner, and these answer as those do.
ends_router = Router(include_in_schema=False)

# Behind all other routes: a repository may be called like an end, as ada/tree is.
ROUTERS: tuple[Router, ...] = (router, ends_router)


@router.get(_REPO)
async def get_repo_without_owner(kind: GitRepoKind, name: str) -> Done:  # noqa: ARG001 - described
    """Answer 404: a repository of this hub has an owner, in the form `owner/name`."""
    raise RepoNotFound


@ends_router.get(f"{_REPO}/{{end:api_end}}", response_model=None)
async def refuse_read(_: MaybeCaller) -> NoReturn:
    raise RepoNotFound


@ends_router.api_route(f"{_REPO}/{{end:api_end}}", methods=_WRITES, response_model=None)
async def refuse_write(_: AnyCaller) -> NoReturn:
    raise RepoNotFound


@ends_router.api_route("/{name}/{end:root_end}", methods=["GET", "POST"], response_model=None)
async def refuse_root() -> NoReturn:
    raise RepoNotFound
