"""Which repository a request is about, as a type that a route names."""

from enum import StrEnum
from typing import Annotated, Any

from fastapi import Depends, Request
from starlette.convertors import Convertor, register_url_convertor

from hublet.repos.records import RepoAddress, RepoType


class GitRepoKind(StrEnum):
    """The four types that have git, as they stand in an address."""

    models = "models"
    datasets = "datasets"
    spaces = "spaces"
    kernels = "kernels"

    @property
    def type(self) -> RepoType:
        return RepoType(self.removesuffix("s"))


class _GitRepoKindConvertor(Convertor[str]):
    regex = "models|datasets|spaces|kernels"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("kind", _GitRepoKindConvertor())

# For the `responses` of a router whose routes name a repository in their path.
MOVED: dict[int | str, dict[str, Any]] = {
    307: {"description": "The repository has another name now; `Location` is its new address."}
}

# The address of a repository with git, in front of what is asked of it.
GIT_REPO = "/api/{kind:kind}/{namespace}/{name}"


async def _git_repo(request: Request, kind: GitRepoKind, namespace: str, name: str) -> RepoAddress:
    return RepoAddress(type=kind.type, namespace=namespace, name=name, requested=requested(request))


GitRepo = Annotated[RepoAddress, Depends(_git_repo)]


def requested(request: Request) -> str:
    """Return the address of the request as it came, from the path on."""
    path: str = request.scope["raw_path"].decode("latin-1")
    query: str = request.scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path
