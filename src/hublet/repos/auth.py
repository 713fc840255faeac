"""Parameters of requests as annotated types: the repository that a path names, and the body."""

from collections.abc import Collection
from enum import Enum, StrEnum
from typing import Annotated, Any

from fastapi import Depends, Request
from starlette.convertors import Convertor, register_url_convertor

from hublet.accounts.names import RESERVED
from hublet.core.http.exchange import exchange_of
from hublet.core.http.request_bodies import RequestBody
from hublet.core.http.routers import DeferredRoute, Router, mirror_routes
from hublet.login.auth import MaybeSession
from hublet.login.sessions import caller_of
from hublet.repos.download_counter import DownloadCounter
from hublet.repos.errors import InvalidUpload
from hublet.repos.records import RepoAddress, RepoType
from hublet.repos.schemas import Moved
from hublet.tokens.auth import MaybeCaller, reaching
from hublet.tokens.records import Caller


class GitRepoKind(StrEnum):
    """The four types that have git, as they stand in an address."""

    models = "models"
    datasets = "datasets"
    spaces = "spaces"
    kernels = "kernels"

    @property
    def type(self) -> RepoType:
        return RepoType(self.removesuffix("s"))


class RepoKind(StrEnum):
    """All six types, as they stand in an address."""

    models = "models"
    datasets = "datasets"
    spaces = "spaces"
    kernels = "kernels"
    buckets = "buckets"
    containers = "containers"

    @property
    def type(self) -> RepoType:
        return RepoType(self.removesuffix("s"))


class _Text(Convertor[str]):
    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


class _KindConvertor(_Text):
    regex = "models|datasets|spaces|kernels"


class _AnyKindConvertor(_Text):
    regex = "models|datasets|spaces|kernels|buckets|containers"


class _PrefixConvertor(_Text):
    regex = "datasets|spaces|kernels"


class _OwnerConvertor(_Text):
    # The public service has `/api/spaces/zero-gpu/quota`, which names no owner.
    regex = "(?!zero-gpu/)[^/]+"


class _LoneNameConvertor(_Text):
    # The public service has these below /api/spaces, where they name no repository.
    regex = "(?!(?:featured|hardware|templates|semantic-search)$)[^/]+"


class _PageRepoConvertor(_Text):
    # Where a model's owner stands, other pages have words of their own; no owner has these names.
    regex = (
        "(?:(?:datasets|spaces|kernels|buckets|containers)/)?"
        f"(?!(?i:{'|'.join(sorted(RESERVED))})/)[^/]+/[^/]+"
    )


class _RootRepoConvertor(_Text):
    # Models are at the root of the hub, the other types below their own word.
    regex = "(?:(?:datasets|spaces|kernels)/[^/]+|(?!api/)[^/]+)/[^/]+"


class _ApiEndConvertor(_Text):
    """What stands behind the name of a repository in the addresses of its API."""

    regex = (
        "(?:auth-check|branch|commits?|compare|discussions|duplicate|first-rows|jwt|leaderboard|lfs-files|like"
        "|likers|notebook|parquet|paths-info|preupload|refs|resource-group|revision|safetensors-metadata"
        "|scan|schema|settings|sql-console|statistics|storage|super-squash|tag"
        "|tree|treesize|trusted-publishers|user-access-request|xet-(?:read|write)-token)(?:/.*)?"
    )


class _RootEndConvertor(_Text):
    """What stands behind the name of a repository at the root of the hub."""

    regex = "(?:ask-access|git-receive-pack|git-upload-pack|info/.*|raw/.*|resolve/.*|user-access-report)"


class _RevisionConvertor(_Text):
    # Like `path`, with line breaks: what ends in one must not pass for what it is without.
    regex = "(?s:.*)"


register_url_convertor("kind", _KindConvertor())
register_url_convertor("any_kind", _AnyKindConvertor())
register_url_convertor("repo", _RootRepoConvertor())
register_url_convertor("page_repo", _PageRepoConvertor())
register_url_convertor("prefix", _PrefixConvertor())
register_url_convertor("owner", _OwnerConvertor())
register_url_convertor("lone", _LoneNameConvertor())
register_url_convertor("api_end", _ApiEndConvertor())
register_url_convertor("root_end", _RootEndConvertor())
register_url_convertor("revision", _RevisionConvertor())

# The tags of a route that serves all four types.
GIT_TAGS: list[str | Enum] = ["models", "datasets", "spaces", "kernels"]

# For the `responses` of a router whose routes name a repository in their path.
MOVED: dict[int | str, dict[str, Any]] = {
    307: {
        "model": Moved,
        "description": "The repository has another name now; `Location` is its new address.",
        "headers": {
            "Location": {
                "description": "The same request at the new address, without the host.",
                "required": True,
                "schema": {"type": "string"},
            }
        },
    }
}

# The path of the list of all repositories of a type with git.
GIT_REPOS = "/api/{kind:kind}"
# The path of a repository with git.
GIT_REPO = "/api/{kind:kind}/{namespace:owner}/{name}"


async def _git_repo(request: Request, kind: GitRepoKind, namespace: str, name: str) -> RepoAddress:
    return RepoAddress(
        type=kind.type, namespace=namespace, name=name, request_url=raw_url_of(request)
    )


GitRepo = Annotated[RepoAddress, Depends(_git_repo)]


# The path of a repository of any type, with git or without.
ANY_REPO = "/api/{kind:any_kind}/{namespace:owner}/{name}"


async def _any_repo(request: Request, kind: RepoKind, namespace: str, name: str) -> RepoAddress:
    return RepoAddress(
        type=kind.type, namespace=namespace, name=name, request_url=raw_url_of(request)
    )


AnyRepo = Annotated[RepoAddress, Depends(_any_repo)]


async def _git_repo_type(kind: GitRepoKind) -> RepoType:
    return kind.type


GitRepoType = Annotated[RepoType, Depends(_git_repo_type)]


# The path of a repository's pages, downloads and git; `ada/engine.git` is the same repository.
ROOT_REPO = "/{repo:repo}"


async def _root_repo(request: Request, repo: str) -> RepoAddress:
    *kind, namespace, name = repo.split("/")
    return RepoAddress(
        type=GitRepoKind(kind[0]).type if kind else RepoType.model,
        namespace=namespace,
        name=name.removesuffix(".git"),
        request_url=raw_url_of(request),
    )


RootRepo = Annotated[RepoAddress, Depends(_root_repo)]


# The path of a repository's page, of any type.
PAGE_REPO = "/{repo:page_repo}"


async def _page_repo(request: Request, repo: str) -> RepoAddress:
    *kind, namespace, name = repo.split("/")
    return RepoAddress(
        type=RepoKind(kind[0]).type if kind else RepoType.model,
        namespace=namespace,
        name=name.removesuffix(".git"),
        request_url=raw_url_of(request),
    )


PageRepo = Annotated[RepoAddress, Depends(_page_repo)]


# The path of a bucket in the API, and the path of its page.
BUCKET = "/api/buckets/{namespace}/{name}"
BUCKET_PAGE = "/buckets/{namespace}/{name}"


def type_of(request: Request) -> RepoType:
    """Return from the path of a request whether it is for buckets or containers."""
    path: str = request.scope["path"]
    return RepoType(path.removeprefix("/api").split("/")[1].removesuffix("s"))


async def _files_repo(request: Request, namespace: str, name: str) -> RepoAddress:
    return RepoAddress(
        type=type_of(request), namespace=namespace, name=name, request_url=raw_url_of(request)
    )


FilesRepo = Annotated[RepoAddress, Depends(_files_repo)]


def mirror_for_containers(buckets: Router, *, without: Collection[str] = ()) -> Router:
    """Return the same routes for containers, except for functions that the registry has itself.

    Interface 1: the file endpoints of containers mirror the bucket ones.
    """
    mirrored = Router()
    mirrored.routes.extend(
        route
        for route in buckets.routes
        if isinstance(route, DeferredRoute) and route.endpoint.__name__ not in without
    )
    return mirror_routes(
        mirrored,
        tag="containers",
        path=("/buckets", "/containers"),
        name=("bucket", "container"),
        describe=lambda text: text.replace("bucket", "container"),
    )


class PrefixedKind(StrEnum):
    """The types whose pages and downloads have the type in their address; models have none."""

    datasets = "datasets"
    spaces = "spaces"
    kernels = "kernels"

    @property
    def type(self) -> RepoType:
        return RepoType(self.removesuffix("s"))


async def _model_page(request: Request, namespace: str, name: str) -> RepoAddress:
    return RepoAddress(
        type=RepoType.model, namespace=namespace, name=name, request_url=raw_url_of(request)
    )


async def _repo_page(
    request: Request, kind: PrefixedKind, namespace: str, name: str
) -> RepoAddress:
    return RepoAddress(
        type=kind.type, namespace=namespace, name=name, request_url=raw_url_of(request)
    )


# The paths of pages: `/ada/engine` and `/datasets/ada/engine`.
MODEL_PAGE = "/{namespace:owner}/{name}"
REPO_PAGE = "/{kind:prefix}/{namespace:owner}/{name}"
ModelPage = Annotated[RepoAddress, Depends(_model_page)]
RepoPage = Annotated[RepoAddress, Depends(_repo_page)]


async def _downloader(
    request: Request, caller: MaybeCaller, session: MaybeSession
) -> Caller | None:
    """Return who downloads: by a token, or by the session of the browser that shows a page.

    Only where nothing is changed and what is sent is inert, and never below /api.
    """
    if caller is None and session is not None:
        return reaching(request, caller_of(session))
    return caller


Downloader = Annotated[Caller | None, Depends(_downloader)]


def body_of(request: Request) -> RequestBody:
    """Return the body of an upload; a client that disconnects is its own fault."""
    return RequestBody(request, broken=_broken_upload)


def _broken_upload() -> InvalidUpload:
    return InvalidUpload("The body broke off before its end; nothing of it was kept.")


def raw_url_of(request: Request) -> str:
    """Return path and query of the request as they came."""
    path: str = request.scope["raw_path"].decode("latin-1")
    query: str = request.scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


def count_download(request: Request, repo_id: str) -> None:
    """Count a download of whoever sent this request."""
    exchange = exchange_of(request)
    counter: DownloadCounter = request.app.state.downloads
    counter.count(repo_id, who=exchange.user or exchange.address)
