"""Repositories on the wire."""

from typing import Annotated, Any, Literal

from pydantic import MISSING, Field, StringConstraints

from hublet.core.schema import ObjectId, Schema

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
