"""Schemas of repositories, their settings, likes and access requests."""

from typing import Annotated, Any, Literal, Self

from pydantic import MISSING, Field, StringConstraints

from hublet.accounts import records as groups
from hublet.accounts.schemas import UserCard
from hublet.core.schema import ObjectId, Schema, Timestamp
from hublet.repos import records
from hublet.repos.records import Repo

RepoTypeName = Literal["model", "dataset", "space", "kernel", "bucket", "container"]
VisibilityName = Literal["public", "private", "protected"]
GatedName = Literal["auto", "manual"]
SdkName = Literal["gradio", "streamlit", "docker", "static"]
# Long enough for every valid name; the rules give the sentence for one that is not.
RepoName = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Ignored = Annotated[
    Any, Field(description="Accepted and ignored: this hub runs no apps and has one place only.")
]


NoFiles = Annotated[
    tuple[Any, ...],
    Field(max_length=0, description="Must be empty: files come with a commit."),
]


class CreateRepo(Schema):
    type: RepoTypeName = "model"
    name: RepoName
    organization: str | None = None
    visibility: VisibilityName | MISSING = MISSING
    private: bool | MISSING = MISSING
    sdk: SdkName | MISSING = MISSING
    resourceGroupId: ObjectId | MISSING = MISSING
    files: NoFiles = ()
    license: Ignored = None
    template: Ignored = None
    hardware: Ignored = None
    sleepTimeSeconds: Ignored = None
    secrets: Ignored = None
    variables: Ignored = None
    volumes: Ignored = None
    region: Ignored = None
    devMode: Ignored = None


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


class Moved(Schema):
    """The repository has another name now."""

    error: str


GateName = Literal["auto", "manual", False]


class UpdateRepoSettings(Schema):
    """A field that is left out keeps its value."""

    visibility: VisibilityName | MISSING = MISSING
    private: bool | MISSING = MISSING
    gated: GateName | MISSING = MISSING
    discussionsDisabled: bool | MISSING = MISSING


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


class RepoResourceGroup(Schema):
    id: ObjectId
    name: str


class RepoResourceGroupEnvelope(Schema):
    resourceGroup: RepoResourceGroup | None

    @classmethod
    def of(cls, group: groups.ResourceGroupRecord | None) -> Self:
        shown = None if group is None else RepoResourceGroup(id=group.id, name=group.name)
        return cls(resourceGroup=shown)


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


AccessStatusName = Literal["pending", "accepted", "rejected"]

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
    def of(cls, found: records.GateRequester, *, base_url: str) -> Self:
        request = found.request
        asked = request.fields is not None
        card = UserCard.of(found.user, base_url=base_url).model_dump(by_alias=True)
        return cls.model_validate(
            {
                "requestId": request.id,
                "status": request.status.value,
                "timestamp": request.created_at,
                "user": card | {"email": (found.email if asked else None) or MISSING},
                "fields": request.fields or MISSING,
                "rejectionReason": request.rejection_reason or MISSING,
            }
        )
