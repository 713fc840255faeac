"""Likes on the wire."""

from typing import Self

from hublet.core.schema import Schema, Timestamp
from hublet.repos.likes import records
from hublet.repos.schemas import RepoTypeName


class LikedRepo(Schema):
    name: str
    type: RepoTypeName


class Like(Schema):
    createdAt: Timestamp
    repo: LikedRepo

    @classmethod
    def of(cls, like: records.Like) -> Self:
        repo = LikedRepo(name=like.repo.full_name, type=like.repo.type.value)
        return cls(createdAt=like.created_at, repo=repo)
