"""Buckets and containers on the wire."""

from typing import Any, Literal, Self

from pydantic import MISSING

from hublet.core.schema import ObjectId, Schema, Timestamp
from hublet.repos.records import Repo
from hublet.repos.schemas import Ignored


class CreateBucket(Schema):
    private: bool | MISSING = MISSING
    visibility: Literal["public", "private"] | MISSING = MISSING
    resourceGroupId: ObjectId | MISSING = MISSING
    region: Ignored = None


class UpdateBucket(Schema):
    """A field that is left out keeps its value."""

    private: bool | MISSING = MISSING
    visibility: Literal["public", "private"] | MISSING = MISSING


class Bucket(Schema):
    """What is known of a bucket; its `id` is owner/name."""

    id: str
    author: str
    private: bool
    visibility: Literal["public", "private"]
    createdAt: Timestamp
    updatedAt: Timestamp
    size: int
    totalFiles: int

    @classmethod
    def of(cls, repo: Repo) -> Self:
        shown: dict[str, Any] = {
            "id": repo.full_name,
            "author": repo.owner_name,
            "private": repo.is_private,
            "visibility": repo.visibility,
            "createdAt": repo.created_at,
            "updatedAt": repo.updated_at,
            "size": repo.size,
            "totalFiles": repo.total_files,
        }
        return cls.model_validate(shown)
