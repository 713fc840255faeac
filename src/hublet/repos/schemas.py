"""Repositories on the wire."""

from typing import Annotated, Literal

from pydantic import MISSING, Field, StringConstraints

from hublet.core.schema import ObjectId, Schema

RepoTypeName = Literal["model", "dataset", "space", "kernel", "bucket", "container"]
VisibilityName = Literal["public", "private", "protected"]
# Long enough for every valid name; the rules give the sentence for one that is not.
RepoName = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class CreateRepo(Schema):
    type: RepoTypeName = "model"
    name: RepoName
    organization: str | None = None
    visibility: VisibilityName | MISSING = MISSING
    private: bool | MISSING = MISSING
    sdk: Annotated[str, Field(pattern="^(gradio|streamlit|docker|static)$")] | MISSING = MISSING
    resourceGroupId: ObjectId | MISSING = MISSING


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
