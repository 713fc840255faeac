"""An owner's repositories on the wire."""

from typing import Self

from hublet.core.schema import Schema, Timestamp
from hublet.repos.records import Repo
from hublet.repos.schemas import RepoTypeName, VisibilityName

_WHOLE = 100


class OwnRepo(Schema):
    """A repository in the list of its owner, with the bytes it takes."""

    id: str
    type: RepoTypeName
    visibility: VisibilityName
    updatedAt: Timestamp
    storage: int
    # Of everything the owner stores.
    storagePercent: float

    @classmethod
    def of(cls, repo: Repo, *, all_bytes: int) -> Self:
        return cls.model_validate(
            {
                "id": repo.full_name,
                "type": repo.type.value,
                "visibility": repo.visibility.value,
                "updatedAt": repo.updated_at,
                "storage": repo.size,
                "storagePercent": round(_WHOLE * repo.size / all_bytes, 2) if all_bytes else 0,
            }
        )
