"""Schemas of repositories, their settings, likes and access requests."""

from typing import Annotated, Any, Literal, Self

from pydantic import MISSING, Field, StringConstraints

from hublet.accounts import records as groups
from hublet.accounts.avatars import avatar_url
from hublet.accounts.records import Account, OwnerType
from hublet.accounts.schemas import UserCard
from hublet.core.schema import Flag, ObjectId, Schema, Timestamp
from hublet.repos import records
from hublet.repos.evaluations import is_error
from hublet.repos.records import RankedModel, Repo

RepoTypeName = Literal["model", "dataset", "space", "kernel", "bucket", "container"]
VisibilityName = Literal["public", "private", "protected"]
GatedName = Literal["auto", "manual"]
GateName = Literal["auto", "manual", False]
AccessStatusName = Literal["pending", "accepted", "rejected"]
SdkName = Literal["gradio", "streamlit", "docker", "static"]
# Long enough for every valid name; the rules give the sentence for one that is not.
RepoName = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Ignored = Annotated[
    Any, Field(description="Accepted and ignored: this hub runs no apps and has one place only.")
]
# Ids of git objects, and digests of contents.
Sha1 = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
NoFiles = Annotated[
    tuple[Any, ...],
    Field(max_length=0, description="Must be empty: files come with a commit."),
]


class _SpaceOptions(Schema):
    """What concerns the running of a space's app: accepted, and not used here."""

    hardware: Ignored = None
    sleepTimeSeconds: Ignored = None
    secrets: Ignored = None
    variables: Ignored = None
    volumes: Ignored = None
    region: Ignored = None
    devMode: Ignored = None


class CreateRepo(_SpaceOptions):
    type: RepoTypeName = "model"
    name: RepoName
    organization: str | None = None
    visibility: VisibilityName | MISSING = MISSING
    private: Flag | MISSING = MISSING
    sdk: SdkName | MISSING = MISSING
    resourceGroupId: ObjectId | MISSING = MISSING
    files: NoFiles = ()
    license: Ignored = None
    template: Ignored = None


class RepoUrl(Schema):
    """Where a repository is: its address, its name as owner/name, its id."""

    url: str
    name: str
    id: ObjectId


class RepoTaken(Schema):
    """The name is taken, by the repository at this address."""

    error: str
    url: str


class DeleteRepo(Schema):
    type: RepoTypeName = "model"
    name: RepoName
    organization: str | None = None


class MoveRepo(Schema):
    type: RepoTypeName = "model"
    fromRepo: RepoName
    toRepo: RepoName


class DuplicateRepo(_SpaceOptions):
    # The name of the copy; the original's name in the caller's account when it is missing.
    repository: RepoName | MISSING = MISSING
    # As the original when both are missing.
    visibility: VisibilityName | MISSING = MISSING
    private: Flag | MISSING = MISSING
    resourceGroupId: ObjectId | MISSING | None = MISSING
    storageTier: Ignored = None


class DuplicatedRepo(Schema):
    """Where the copy is."""

    url: str


class DuplicateStatus(Schema):
    """How far a copy is: whoever sees it sees all of it."""

    status: Literal["completed"]


class Moved(Schema):
    """The repository has another name now."""

    error: str


class UpdateRepoSettings(Schema):
    """A field that is left out keeps its value."""

    visibility: VisibilityName | MISSING = MISSING
    private: Flag | MISSING = MISSING
    gated: GateName | MISSING = MISSING
    discussionsDisabled: Flag | MISSING = MISSING


class RepoSettings(Schema):
    visibility: VisibilityName
    private: bool
    gated: GateName
    discussionsDisabled: bool

    @classmethod
    def of(cls, repo: Repo) -> Self:
        return cls.model_validate(
            {
                "visibility": repo.visibility.value,
                "private": repo.is_private,
                "gated": repo.gated.value if repo.gated else False,
                "discussionsDisabled": repo.discussions_disabled,
            }
        )


class SetRepoResourceGroup(Schema):
    # Null takes the repository out of its group.
    resourceGroupId: ObjectId | None


class RepoTokenResponse(Schema):
    """A token for one repository."""

    accessToken: Annotated[str, Field(description="As it stands in a header: with `Bearer`.")]
    token: str
    exp: Annotated[int, Field(description="When it ends, in seconds since 1970.")]


class RepoResourceGroup(Schema):
    id: ObjectId
    name: str


class RepoResourceGroupEnvelope(Schema):
    resourceGroup: RepoResourceGroup | None

    @classmethod
    def of(cls, group: groups.ResourceGroupRecord | None) -> Self:
        if group is None:
            return cls(resourceGroup=None)
        return cls(resourceGroup=RepoResourceGroup(id=group.id, name=group.name))


class LikedRepo(Schema):
    name: str
    type: RepoTypeName


class Like(Schema):
    createdAt: Timestamp
    repo: LikedRepo

    @classmethod
    def of(cls, like: records.UserLike) -> Self:
        repo = LikedRepo(name=like.repo.full_name, type=like.repo.type.value)
        return cls(createdAt=like.created_at, repo=repo)


_FieldValue = Annotated[str, StringConstraints(max_length=2000)] | bool | int | float | None
# What a person filled in, by the name of the field.
AccessFields = Annotated[
    dict[Annotated[str, StringConstraints(max_length=200)], _FieldValue], Field(max_length=50)
]


class AccessState(Schema):
    status: AccessStatusName


class HandleAccessRequest(Schema):
    """Which request, by its user or by its id, and what becomes of it."""

    user: str | MISSING = MISSING
    requestId: ObjectId | MISSING = MISSING
    status: AccessStatusName
    rejectionReason: Annotated[str, StringConstraints(max_length=200)] | None = None


class GrantAccess(Schema):
    user: str


class Requester(UserCard):
    # Absent for somebody who never asked.
    email: str | MISSING = MISSING


class AccessRequest(Schema):
    requestId: ObjectId
    status: AccessStatusName
    timestamp: Timestamp
    user: Requester
    fields: dict[str, Any] | MISSING = MISSING
    rejectionReason: str | MISSING = MISSING

    @classmethod
    def of(cls, requester: records.GateRequester, *, base_url: str) -> Self:
        request = requester.request
        # Access that was granted without a request does not share the address.
        email = None if request.fields is None else requester.email
        card = UserCard.of(requester.user, base_url=base_url).model_dump(by_alias=True)
        return cls.model_validate(
            {
                "requestId": request.id,
                "status": request.status.value,
                "timestamp": request.created_at,
                "user": card | {"email": email or MISSING},
                "fields": request.fields or MISSING,
                "rejectionReason": request.rejection_reason or MISSING,
            }
        )


class RepoStorage(Schema):
    """Bytes of a repository, or of all repositories of an owner."""

    raw: Annotated[int, Field(description="Bytes of content outside git; what a quota counts.")]
    stored: Annotated[
        int, Field(description="Bytes at rest that one repository of its owner needs.")
    ]
    shared: Annotated[int, Field(description="Bytes at rest that several of its owner's need.")]

    @classmethod
    def of(cls, usage: records.StorageUsage) -> Self:
        return cls(raw=usage.raw, stored=usage.stored, shared=usage.shared)


class OwnerStorage(RepoStorage):
    limit: Annotated[int | None, Field(description="The most raw bytes; null: there is no limit.")]


class LeaderboardAuthor(Schema):
    """The owner of a model."""

    id: Annotated[ObjectId, Field(alias="_id")]
    name: str
    fullname: str
    avatarUrl: str
    type: Literal["user", "org"]
    # The public service knows people of its own; this hub has none of these.
    isHf: bool = False
    isHfAdmin: bool = False
    isMod: bool = False
    # Of users.
    isPro: bool | MISSING = MISSING

    @classmethod
    def of(cls, account: Account, *, base_url: str) -> Self:
        is_organization = account.type is OwnerType.organization
        return cls.model_validate(
            {
                "_id": account.id,
                "name": account.name,
                "fullname": account.fullname,
                "avatarUrl": avatar_url(base_url, account.id),
                "type": "org" if is_organization else "user",
                "isPro": MISSING if is_organization else False,
            }
        )


class ResultSource(Schema):
    """Where a result comes from, as the model states it."""

    url: str
    name: str | MISSING = MISSING
    isExternal: Annotated[bool, Field(description="The address is none of this hub.")]


class LeaderboardEntry(Schema):
    """A model with its best result; equal results share a rank."""

    rank: int
    modelId: str
    author: LeaderboardAuthor
    value: float
    verified: Annotated[bool, Field(description="Always false: this hub verifies no results.")] = (
        False
    )
    source: ResultSource | MISSING = MISSING
    filename: Annotated[str, Field(description="The file of the model that states the result.")]
    notes: str | MISSING = MISSING
    lower_is_better: Literal[True] | MISSING = MISSING
    num_parameters: int | MISSING = MISSING

    @classmethod
    def of(cls, ranked: RankedModel, owner: Account, *, base_url: str) -> Self:
        best, result = ranked.best, ranked.best.result
        return cls(
            rank=ranked.rank,
            modelId=best.model.full_name,
            author=LeaderboardAuthor.of(owner, base_url=base_url),
            value=result.value,
            source=_source(result.source, base_url),
            filename=result.filename,
            notes=result.notes or MISSING,
            lower_is_better=True if is_error(result.task_id) else MISSING,
            num_parameters=MISSING if best.parameters is None else best.parameters,
        )


def _source(source: dict[str, str], base_url: str) -> Any:
    url = source.get("url")
    if url is None:
        return MISSING
    return ResultSource(
        url=url,
        name=source.get("name") or MISSING,
        isExternal=url != base_url and not url.startswith(f"{base_url}/"),
    )


class NotebookView(Schema):
    """Where a notebook is shown."""

    url: str


class SafetensorsMetadata(Schema):
    """What the header of a safetensors file says, or those of all files that an index names."""

    sharded: bool
    header: Annotated[
        dict[str, Any] | MISSING,
        Field(description="Of one file: by name each tensor with dtype, shape and data_offsets."),
    ] = MISSING
    headers: Annotated[
        dict[str, dict[str, Any]] | MISSING, Field(description="Of an index: the same by file.")
    ] = MISSING
    index: Annotated[dict[str, Any] | MISSING, Field(description="The index itself.")] = MISSING
    parameterCount: Annotated[dict[str, int], Field(description="By the type of the numbers.")]
    parameterTotal: int
