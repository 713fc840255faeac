"""Wire shapes of the quick search."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import MISSING, Field

from hublet.accounts.avatars import avatar_url
from hublet.core.schema import Flag, ObjectId, Schema
from hublet.repos.cards import emoji_of
from hublet.search.records import SearchKind, SearchSection

LONGEST_Q = 1000
MOST_SHOWN = 20
DEFAULT_SHOWN = 10

QuickSearchType = Literal[
    "model", "dataset", "space", "org", "user", "paper", "collection", "bucket", "kernel"
]
ReposFilter = Literal["skip_disabled", "skip_gated", "own", "own_orgs", "granted_access"]
OrgsFilter = Literal["own", "unwatched"]
ExcludedName = Annotated[str, Field(max_length=200, pattern=r"^[^/]+/.+$")]
ShortText = Annotated[str, Field(max_length=200)]


class QuickSearchRequest(Schema):
    """What to look for; the same as the query of GET."""

    q: Annotated[str, Field(max_length=LONGEST_Q)] = ""
    limit: Annotated[int, Field(ge=1, le=MOST_SHOWN)] = DEFAULT_SHOWN
    type: Annotated[tuple[QuickSearchType, ...], Field(max_length=20)] = ()
    namespace: ShortText = ""
    exclude: Annotated[tuple[ExcludedName, ...], Field(max_length=100)] = ()
    reposFilter: Annotated[tuple[ReposFilter, ...], Field(max_length=5)] = ()
    orgsFilter: Annotated[tuple[OrgsFilter, ...], Field(max_length=2)] = ()
    pipelines: Annotated[tuple[ShortText, ...], Field(max_length=20)] = ()
    lang: ShortText = ""
    library: ShortText = ""
    spacesTags: Annotated[tuple[ShortText, ...], Field(max_length=20)] = ()
    # Where a user is looked for: who takes part there comes first on the public service, not here.
    repoName: ShortText = ""
    repoType: ShortText = ""
    discussionId: ShortText = ""
    discussionCollectionName: ShortText = ""
    includeInvitees: Flag = False


class FoundRepo(Schema):
    id: Annotated[str, Field(description="In the form owner/name.")]
    private: bool
    trendingWeight: int


class FoundSpace(Schema):
    id: Annotated[str, Field(description="In the form owner/name.")]
    private: bool
    emoji: str
    trendingWeight: int


class FoundName(Schema):
    """A bucket or a kernel, in the form owner/name."""

    id: str
    private: bool


class FoundOrganization(Schema):
    id: Annotated[ObjectId, Field(alias="_id")]
    name: str
    fullname: str
    avatarUrl: str


class FoundUser(Schema):
    id: Annotated[ObjectId, Field(alias="_id")]
    user: str
    fullname: str
    avatarUrl: str


class FoundPaper(Schema):
    id: str


class FoundCollection(Schema):
    id: Annotated[ObjectId, Field(alias="_id")]
    title: str
    description: str | MISSING = MISSING
    slug: Annotated[str, Field(description="As in ada/wheels-0123456789abcdef01234567.")]


class QuickSearchResult(Schema):
    """The first hits of each kind; a count of 101 means that there are more than 100."""

    q: str
    models: list[FoundRepo]
    modelsCount: int
    datasets: list[FoundRepo]
    datasetsCount: int
    spaces: list[FoundSpace]
    spacesCount: int
    orgs: list[FoundOrganization]
    users: list[FoundUser]
    papers: list[FoundPaper]
    papersCount: int
    collections: list[FoundCollection]
    collectionsCount: int
    buckets: list[FoundName]
    bucketsCount: int
    kernels: list[FoundName]
    kernelsCount: int

    @classmethod
    def of(cls, q: str, sections: Mapping[SearchKind, SearchSection], *, base_url: str) -> Self:
        rendered: dict[str, Any] = {"q": q}
        for kind, render in _RENDERERS.items():
            section = sections.get(kind, SearchSection())
            rendered[f"{kind}s"] = [render(hit.target, base_url) for hit in section.hits]
            if kind not in _WITHOUT_COUNT:
                rendered[f"{kind}sCount"] = section.count
        return cls.model_validate(rendered)


def _render_repo(repo: Any, _base_url: str) -> dict[str, Any]:
    return {"id": repo.full_name, "private": repo.is_private, "trendingWeight": repo.likes}


def _render_space(space: Any, base_url: str) -> dict[str, Any]:
    return {**_render_repo(space, base_url), "emoji": emoji_of(space)}


def _render_name(repo: Any, _base_url: str) -> dict[str, Any]:
    return {"id": repo.full_name, "private": repo.is_private}


def _render_organization(organization: Any, base_url: str) -> dict[str, Any]:
    return {
        "_id": organization.id,
        "name": organization.name,
        "fullname": organization.fullname,
        "avatarUrl": avatar_url(base_url, organization.id),
    }


def _render_user(user: Any, base_url: str) -> dict[str, Any]:
    return {
        "_id": user.id,
        "user": user.name,
        "fullname": user.fullname,
        "avatarUrl": avatar_url(base_url, user.id),
    }


def _render_paper(paper: Any, _base_url: str) -> dict[str, Any]:
    return {"id": paper.paper_id}


def _render_collection(collection: Any, _base_url: str) -> dict[str, Any]:
    return {
        "_id": collection.id,
        "title": collection.title,
        "description": collection.description or MISSING,
        "slug": collection.full_slug,
    }


_RENDERERS: dict[SearchKind, Callable[[Any, str], dict[str, Any]]] = {
    SearchKind.model: _render_repo,
    SearchKind.dataset: _render_repo,
    SearchKind.space: _render_space,
    SearchKind.organization: _render_organization,
    SearchKind.user: _render_user,
    SearchKind.paper: _render_paper,
    SearchKind.collection: _render_collection,
    SearchKind.bucket: _render_name,
    SearchKind.kernel: _render_name,
}
_WITHOUT_COUNT = (SearchKind.organization, SearchKind.user)
QUICK_KINDS = tuple(_RENDERERS)
