"""Repository settings on the wire."""

from typing import Literal, Self

from pydantic import MISSING

from hublet.accounts.resource_groups import records as groups
from hublet.core.schema import ObjectId, Schema
from hublet.repos.records import Repo
from hublet.repos.schemas import VisibilityName

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
    def of(cls, group: groups.ResourceGroup | None) -> Self:
        shown = None if group is None else RepoResourceGroup(id=group.id, name=group.name)
        return cls(resourceGroup=shown)
