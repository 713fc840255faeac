"""Wire shapes of search: quick search, full text, trending lists and lists of spaces."""

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal, Self
from urllib.parse import quote

from pydantic import MISSING, Field

from hublet.accounts.avatars import avatar_url
from hublet.core.schema import Flag, ObjectId, Schema, Timestamp
from hublet.repos.browse.schemas import SpaceRuntime
from hublet.repos.cards import emoji_of
from hublet.repos.records import Repo, RepoType
from hublet.repos.schemas import GateName, RepoTypeName, VisibilityName
from hublet.search.records import SearchKind, SearchSection, TextHit, TextKind, TrendingRepo, sdk_of

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
TrendingTypeName = Literal["model", "dataset", "space"]
TextKindName = Literal["model", "dataset", "space", "kernel", "discussion", "paper"]
README = "README.md"
MOST_TEXTS = 50
DEFAULT_TEXTS = 20


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
    # Where a user is looked for: who takes part there comes first.
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
    return {"id": repo.full_name, "private": repo.is_private, "trendingWeight": repo.trending_score}


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


class TextRepo(Schema):
    """The repository to which a text belongs."""

    type: RepoTypeName
    name: Annotated[str, Field(description="In the form owner/name.")]
    private: bool


class SnippetText(Schema):
    text: str
    isHit: Annotated[bool, Field(description="Whether it is one of the words of the query.")]


class FoundText(Schema):
    """A text with all words of a query, and the place where they stand, as plain text in parts."""

    type: TextKindName
    title: str
    url: Annotated[str, Field(description="Its page.")]
    snippet: list[SnippetText]
    # Of files and discussions.
    repo: TextRepo | MISSING = MISSING
    # README.md, or app.py of a space.
    file: str | MISSING = MISSING
    num: Annotated[int | MISSING, Field(description="The number of a discussion.")] = MISSING
    isPullRequest: bool | MISSING = MISSING
    paperId: str | MISSING = MISSING
    # Absent when the words stand in the title or in what opens the discussion.
    commentId: ObjectId | MISSING = MISSING

    @classmethod
    def of(cls, hit: TextHit, *, base_url: str) -> Self:
        fields: dict[str, Any] = {
            "type": hit.kind.value,
            "title": hit.title,
            "url": base_url + path_of_text(hit),
            "snippet": [{"text": each.text, "isHit": each.is_hit} for each in hit.snippet],
        }
        if hit.repo is not None:
            repo = hit.repo
            fields["repo"] = {
                "type": repo.type.value,
                "name": repo.full_name,
                "private": repo.is_private,
            }
        if hit.file:
            fields["file"] = hit.file
        if hit.comment_id is not None:
            fields["commentId"] = hit.comment_id
        if hit.thread is not None and hit.kind is TextKind.discussion:
            fields |= {"num": hit.thread.number, "isPullRequest": hit.thread.is_pull_request}
        elif hit.thread is not None:
            fields["paperId"] = hit.thread.paper_id
        return cls.model_validate(fields)


def path_of_text(hit: TextHit) -> str:
    """Return the page of a text: a card is on the first page of its repository."""
    anchor = f"#{hit.comment_id}" if hit.comment_id else ""
    root = f"/{hit.repo.type.prefix}{quote(hit.repo.full_name)}" if hit.repo else ""
    if hit.file:
        return root if hit.file == README else f"{root}/blob/main/{hit.file}"
    assert hit.thread is not None  # noqa: S101 - what has no file is a thread
    if hit.kind is TextKind.discussion:
        return f"{root}/discussions/{hit.thread.number}{anchor}"
    return f"/papers/{quote(hit.thread.paper_id or '')}{anchor}"


class TrendingRepoData(Schema):
    """A repository of the moment; each type has some of the fields, as on the public service."""

    id: Annotated[str, Field(description="In the form owner/name.")]
    author: str
    repoType: TrendingTypeName
    private: bool
    gated: GateName
    likes: int
    downloads: int
    isLikedByUser: bool
    lastModified: Timestamp
    createdAt: Timestamp
    trendingScore: int
    # Of models.
    pipeline_tag: str | MISSING = MISSING
    availableInferenceProviders: tuple[str, ...] | MISSING = MISSING
    # Of spaces.
    title: str | MISSING = MISSING
    emoji: str | MISSING = MISSING
    colorFrom: str | MISSING = MISSING
    colorTo: str | MISSING = MISSING
    pinned: bool | MISSING = MISSING
    sdk: str | MISSING = MISSING
    runtime: SpaceRuntime | MISSING = MISSING
    disabled: bool | MISSING = MISSING
    featured: bool | MISSING = MISSING
    visibility: VisibilityName | MISSING = MISSING
    tags: tuple[str, ...] | MISSING = MISSING
    shortDescription: str | MISSING = MISSING

    @classmethod
    def of(cls, found: TrendingRepo) -> Self:
        repo, card = found.repo, found.repo.card or {}
        fields: dict[str, Any] = {
            "id": repo.full_name,
            "author": repo.owner_name,
            "repoType": repo.type.value,
            "private": repo.is_private,
            "gated": repo.gated.value if repo.gated else False,
            "likes": repo.likes,
            "downloads": repo.downloads,
            "isLikedByUser": found.is_liked,
            "lastModified": repo.updated_at,
            "createdAt": repo.created_at,
            "trendingScore": repo.trending_score,
        }
        if repo.type is RepoType.model:
            fields |= {"pipeline_tag": _card_text(card, "pipeline_tag") or MISSING}
            fields |= {"availableInferenceProviders": ()}
        elif repo.type is RepoType.space:
            fields |= _space_fields(repo)
        return cls.model_validate(fields)


def _space_fields(space: Repo) -> dict[str, Any]:
    card = space.card or {}
    return {
        "title": _card_text(card, "title") or space.name,
        "emoji": emoji_of(space),
        "colorFrom": _card_text(card, "colorFrom") or "",
        "colorTo": _card_text(card, "colorTo") or "",
        "pinned": card.get("pinned") is True,
        "sdk": sdk_of(space) or MISSING,
        "runtime": {"stage": "STOPPED", "hardware": {"current": None, "requested": None}},
        "disabled": False,
        "featured": False,
        "visibility": space.visibility.value,
        "tags": space.tags,
        "shortDescription": _card_text(card, "short_description") or MISSING,
    }


def _card_text(card: Mapping[str, Any], key: str) -> str | None:
    value = card.get(key)
    return value if isinstance(value, str) else None


class TrendingEntry(Schema):
    repoType: TrendingTypeName
    repoData: TrendingRepoData


class TrendingList(Schema):
    recentlyTrending: list[TrendingEntry]

    @classmethod
    def of(cls, found: Iterable[TrendingRepo]) -> Self:
        entries = [
            {"repoType": each.repo.type.value, "repoData": TrendingRepoData.of(each)}
            for each in found
        ]
        return cls.model_validate({"recentlyTrending": entries})


class SpaceHardwareFlavor(Schema):
    """A machine for spaces; this hub has none, as it does not run spaces."""

    name: str
    prettyName: str


class SpaceTemplate(Schema):
    """A space to begin with; this hub has none: a new space begins with its card alone."""

    sdk: str
    name: str
    repoId: str
    preferredPrivate: bool


class SpaceTemplates(Schema):
    templates: list[SpaceTemplate]
