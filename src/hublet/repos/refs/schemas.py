"""Schemas of branches and tags."""

from collections.abc import Iterable
from typing import Annotated, Self

from pydantic import MISSING, Field

from hublet.core.schema import Flag, Schema
from hublet.repos import records
from hublet.repos.records import HEADS, PULL_REQUESTS, TAGS
from hublet.repos.schemas import Sha1


class CreateBranch(Schema):
    # A branch, a tag or the id of a commit; main when it is missing.
    startingPoint: str | MISSING = MISSING
    # Start with nothing at all instead.
    emptyBranch: Flag = False
    # Move the branch there when it exists.
    overwrite: Flag = False


class CreateTag(Schema):
    tag: str
    # Accepted, but not kept: a tag here is a name for a commit and nothing more.
    message: Annotated[str, Field(max_length=65536)] | MISSING | None = MISSING


class SuperSquash(Schema):
    # What the one commit is to say.
    message: Annotated[str, Field(min_length=1, max_length=65536)] | MISSING = MISSING


class GitRef(Schema):
    name: str
    ref: str
    targetCommit: Sha1


class Refs(Schema):
    """What points into the history of a repository, by kind."""

    branches: list[GitRef]
    # The public service keeps converted files under refs of their own; this hub has none.
    converts: list[GitRef]
    tags: list[GitRef]
    pullRequests: list[GitRef] | MISSING = MISSING

    @classmethod
    def of(cls, refs: Iterable[records.Ref], *, with_pull_requests: bool) -> Self:
        listed = list(refs)
        return cls(
            branches=_under(listed, HEADS),
            converts=[],
            tags=_under(listed, TAGS),
            pullRequests=_under(listed, PULL_REQUESTS) if with_pull_requests else MISSING,
        )


def _under(refs: list[records.Ref], prefix: str) -> list[GitRef]:
    # The name of a pull request's ref is the whole of it, as clients have to write it.
    short = "" if prefix == PULL_REQUESTS else prefix
    return [
        GitRef(name=ref.name.removeprefix(short), ref=ref.name, targetCommit=ref.sha)
        for ref in refs
        if ref.name.startswith(prefix)
    ]
