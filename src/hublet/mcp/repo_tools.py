"""Tools for repositories: who calls, search, details, files, and creation."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field

from hublet.accounts.users import store as users
from hublet.core.clock import wire
from hublet.core.errors import HubError, InvalidRequest, NotFound
from hublet.core.schema import Flag, Schema
from hublet.mcp.records import CREATE_REPO, DETAILS, FILES, SEARCH, WHO_AM_I
from hublet.mcp.repo_files import (
    MOST_BYTES,
    FileEntry,
    FileUri,
    describe,
    list_folder,
    open_file,
    read_bytes,
    text_of,
)
from hublet.mcp.tools import Tool, ToolCall, cut
from hublet.repos import lifecycle
from hublet.repos import service as repos
from hublet.repos.browse import lists
from hublet.repos.browse.records import ListOrder, ListSort, RepoFilter
from hublet.repos.cards import README
from hublet.repos.errors import RepoNotFound
from hublet.repos.lifecycle import NewRepo
from hublet.repos.records import Repo, RepoType, Right, Visibility
from hublet.search import service as search
from hublet.search.records import SearchFilters, SearchKind, SearchQuery
from hublet.tokens.records import Scope

_MOST_TAGS = 20
_LISTED_FILES = 50
_CARD_CHARACTERS = 8000
# Together they fill what a call may return.
_MOST_OPERATIONS = 10
_SORTS = {
    "created": ListSort.creation,
    "modified": ListSort.update,
    "likes": ListSort.likes,
    "downloads": ListSort.downloads,
}
# Where a name without a type is looked for.
_LIKELY_TYPES = (RepoType.model, RepoType.dataset, RepoType.space)

TypeName = Literal["model", "dataset", "space", "kernel", "bucket", "container"]
Uri = Annotated[str, Field(max_length=5000, examples=["hf://datasets/ada/poems/README.md"])]


class Nothing(Schema):
    """No arguments."""


class Identity(Schema):
    user: Annotated[str | None, Field(description="None: you act without an account.")]
    organizations: list[str]
    token: str | None
    role: str | None
    scopes: list[str]


async def _who_am_i(call: ToolCall, _: Nothing) -> Identity:
    caller = call.caller
    if caller is None:
        return Identity(user=None, organizations=[], token=None, role=None, scopes=[])
    names: list[str] = []
    if Scope.read_memberships in caller.scopes and caller.token.organization_id is None:
        async with call.database.read() as conn:
            found = await users.memberships_of(conn, user_id=caller.user_id)
        names = [each.organization.name for each in found]
    return Identity(
        user=caller.user_name,
        organizations=names,
        token=caller.token.name,
        role=caller.token.role,
        scopes=sorted(caller.scopes),
    )


class SearchRepos(Schema):
    query: Annotated[str, Field(max_length=1000, description="Words, all of them.")] = ""
    repo_types: Annotated[list[TypeName], Field(min_length=1, max_length=6)] = Field(
        default=["model", "dataset"]
    )
    author: Annotated[str, Field(max_length=200, description="A user or an organization.")] = ""
    filters: Annotated[
        list[Annotated[str, Field(max_length=200)]],
        Field(max_length=20, description="Tags, all of them, such as license:mit."),
    ] = Field(default=[])
    sort: Annotated[
        Literal["relevance", "created", "modified", "likes", "downloads"],
        Field(description="Without words, relevance means the newest first."),
    ] = "relevance"
    limit: Annotated[int, Field(ge=1, le=100, description="Of each type.")] = 20


class RepoSummary(Schema):
    id: Annotated[str, Field(description="In the form owner/name.")]
    type: TypeName
    uri: str
    url: str
    private: bool
    gated: bool
    likes: int
    downloads: int
    modified: str
    tags: list[str]

    @classmethod
    def of(cls, repo: Repo, *, base_url: str) -> Self:
        return cls.model_validate(_summary(repo, base_url))


def _summary(repo: Repo, base_url: str) -> dict[str, Any]:
    return {
        "id": repo.full_name,
        "type": repo.type.value,
        "uri": f"hf://{repo.type.prefix}{repo.full_name}",
        "url": repo.url(base_url),
        "private": repo.is_private,
        "gated": bool(repo.gated),
        "likes": repo.likes,
        "downloads": repo.downloads,
        "modified": wire(repo.updated_at),
        "tags": list(repo.tags)[:_MOST_TAGS],
    }


class FoundRepos(Schema):
    repos: list[RepoSummary]
    suggestion: Annotated[str, Field(description="Better words, where there are some.")] = ""


async def _search(call: ToolCall, request: SearchRepos) -> FoundRepos:
    if request.query.strip() and request.sort == "relevance":
        return await _search_words(call, request)
    order = ListOrder(sort=_SORTS.get(request.sort, ListSort.creation))
    found: list[Repo] = []
    async with call.database.read() as conn:
        for name in dict.fromkeys(request.repo_types):
            wanted = RepoFilter(
                type=RepoType(name),
                author=request.author,
                words=tuple(request.query.split()),
                tags=tuple(request.filters),
            )
            found += await lists.list_repos(
                conn, call.caller, wanted, order=order, limit=request.limit
            )
    return FoundRepos(repos=[RepoSummary.of(each, base_url=call.base_url) for each in found])


async def _search_words(call: ToolCall, request: SearchRepos) -> FoundRepos:
    kinds = tuple(SearchKind(name) for name in dict.fromkeys(request.repo_types))
    query = SearchQuery(
        text=request.query,
        kinds=kinds,
        filters=SearchFilters(
            namespace=request.author, tags={kind: tuple(request.filters) for kind in kinds}
        ),
        limit=request.limit,
    )
    async with call.database.read() as conn:
        page = await search.search(conn, call.caller, query)
    found = [hit.target for hit in page.hits if isinstance(hit.target, Repo)]
    return FoundRepos(
        repos=[RepoSummary.of(each, base_url=call.base_url) for each in found],
        suggestion=page.suggestion,
    )


class ShowRepos(Schema):
    repo_ids: Annotated[
        list[Annotated[str, Field(max_length=200, pattern=r"^[^/\s]+/[^/\s]+$")]],
        Field(min_length=1, max_length=10, description="Each in the form owner/name."),
    ]
    repo_type: TypeName | None = None


class RepoDetails(RepoSummary):
    card: Annotated[str | None, Field(description="README.md, or its beginning.")] = None
    card_is_cut: bool = False
    files: list[FileEntry]
    has_more_files: bool


class ShownRepos(Schema):
    repos: list[RepoDetails]
    errors: Annotated[list[str], Field(description="A sentence for each that is not there.")]


async def _show(call: ToolCall, request: ShowRepos) -> ShownRepos:
    shown, errors = list[RepoDetails](), list[str]()
    for repo_id in dict.fromkeys(request.repo_ids):
        try:
            shown.append(await _details(call, repo_id, request.repo_type))
        except HubError as error:
            errors.append(f"{repo_id}: {error.message}")
    if not shown:
        raise NotFound(" ".join(errors))
    return ShownRepos(repos=shown, errors=errors)


async def _details(call: ToolCall, repo_id: str, type_name: str | None) -> RepoDetails:
    repo = await _find(call, repo_id, type_name)
    uri = FileUri(type=repo.type, namespace=repo.owner_name, name=repo.name)
    files, has_more = await list_folder(
        call.database, call.caller, uri, recursive=True, limit=_LISTED_FILES
    )
    card, is_cut = await _card(call, uri)
    return RepoDetails.model_validate(
        _summary(repo, call.base_url)
        | {
            "card": card,
            "card_is_cut": is_cut,
            "files": files,
            "has_more_files": has_more,
        }
    )


async def _find(call: ToolCall, repo_id: str, type_name: str | None) -> Repo:
    types = _LIKELY_TYPES if type_name is None else (RepoType(type_name),)
    namespace, _, name = repo_id.partition("/")
    async with call.database.read() as conn:
        for kind in types:
            uri = FileUri(type=kind, namespace=namespace, name=name)
            try:
                return await repos.get(conn, call.caller, uri.address, Right.see)
            except RepoNotFound:
                continue
    raise RepoNotFound


async def _card(call: ToolCall, uri: FileUri) -> tuple[str | None, bool]:
    """Return the README, if there is one that the caller may read."""
    try:
        file = await open_file(call.database, call.caller, FileUri.parse(uri.below(README)))
    except HubError:
        return None, False
    text, is_cut = cut(text_of(await read_bytes(file)) or "", _CARD_CHARACTERS)
    return text, is_cut or file.size > MOST_BYTES


class FileOperation(Schema):
    op: Literal["ls", "cat", "stat"]
    uri: Uri
    recursive: Annotated[Flag, Field(description="For ls: also what lies in its folders.")] = False
    limit: Annotated[int, Field(ge=1, le=1000, description="For ls: how many at most.")] = 100
    offset: Annotated[int, Field(ge=0, le=2**53, description="For cat: the first byte.")] = 0
    max_bytes: Annotated[int, Field(ge=1, le=MOST_BYTES, description="For cat.")] = 20_000


class UseFiles(Schema):
    operations: Annotated[
        list[FileOperation],
        Field(min_length=1, max_length=_MOST_OPERATIONS, description="Done one after the other."),
    ]


class FileResult(Schema):
    op: str
    uri: str
    error: Annotated[str | None, Field(description="Why it was not done; then there is no more.")]
    entries: list[FileEntry] | None = None
    entry: FileEntry | None = None
    text: str | None = None
    size: Annotated[int | None, Field(description="Of the whole file, in bytes.")] = None
    next_offset: Annotated[int | None, Field(description="Where to read on, if anywhere.")] = None
    has_more: bool = False


class FileResults(Schema):
    results: list[FileResult]


async def _use_files(call: ToolCall, request: UseFiles) -> FileResults:
    results, room = list[FileResult](), MOST_BYTES
    for number, operation in enumerate(request.operations, start=1):
        try:
            result = await _use_file(call, operation, room)
        except HubError as error:
            result = FileResult(op=operation.op, uri=operation.uri, error=error.message)
        room -= len(result.text or "") + 100 * len(result.entries or ())
        results.append(result)
        await call.report(number, len(request.operations), f"{operation.op} {operation.uri}")
    if len(results) == 1 and results[0].error is not None:
        raise InvalidRequest(results[0].error)
    return FileResults(results=results)


async def _use_file(call: ToolCall, operation: FileOperation, room: int) -> FileResult:
    uri = FileUri.parse(operation.uri)
    if room <= 0:
        raise InvalidRequest("A call returns no more than this; ask for the rest in another one.")
    done: dict[str, Any] = {"op": operation.op, "uri": str(uri), "error": None}
    match operation.op:
        case "ls":
            done["entries"], done["has_more"] = await list_folder(
                call.database,
                call.caller,
                uri,
                recursive=operation.recursive,
                limit=min(operation.limit, max(1, room // 100)),
            )
        case "stat":
            done["entry"] = await describe(call.database, call.caller, uri)
        case "cat":
            done |= await _read(call, uri, operation, min(operation.max_bytes, room))
    return FileResult.model_validate(done)


async def _read(
    call: ToolCall, uri: FileUri, operation: FileOperation, count: int
) -> dict[str, Any]:
    file = await open_file(call.database, call.caller, uri)
    data = await read_bytes(file, offset=operation.offset, count=count)
    text = text_of(data)
    if text is None:
        raise InvalidRequest(
            f"{uri} is no text: it has {file.size} bytes. A program downloads it with "
            "hf download, or hf_hub_download."
        )
    end = operation.offset + len(data)
    more = end < file.size
    return {
        "text": text,
        "size": file.size,
        "next_offset": end if more else None,
        "has_more": more,
    }


class CreateRepository(Schema):
    uri: Annotated[str, Field(max_length=300, examples=["hf://datasets/ada/poems"])]
    private: Flag = True
    sdk: Literal["gradio", "streamlit", "docker", "static"] | None = None


class CreatedRepository(Schema):
    id: str
    type: TypeName
    uri: str
    url: str


async def _create(call: ToolCall, request: CreateRepository) -> CreatedRepository:
    uri = FileUri.parse(request.uri)
    if uri.path or uri.revision is not None:
        raise InvalidRequest("uri must name a repository, without a revision and a path.")
    new = NewRepo(
        type=uri.type,
        namespace=uri.namespace,
        name=uri.name,
        visibility=Visibility.private if request.private else Visibility.public,
        sdk=request.sdk,
    )
    repo = await lifecycle.create(call.database, call.get_caller(), new)
    return CreatedRepository(
        id=repo.full_name,
        type=repo.type.value,
        uri=f"hf://{repo.type.prefix}{repo.full_name}",
        url=repo.url(call.base_url),
    )


REPO_TOOLS: tuple[Tool[Any], ...] = (
    Tool(info=WHO_AM_I, arguments=Nothing, result=Identity, run=_who_am_i),
    Tool(info=SEARCH, arguments=SearchRepos, result=FoundRepos, run=_search),
    Tool(info=DETAILS, arguments=ShowRepos, result=ShownRepos, run=_show),
    Tool(info=FILES, arguments=UseFiles, result=FileResults, run=_use_files),
    Tool(info=CREATE_REPO, arguments=CreateRepository, result=CreatedRepository, run=_create),
)
