"""HTTP for commits, for advice before an upload, and for the check of a card."""

import asyncio
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from pydantic import MISSING

from hublet.core.http import Db, Router
from hublet.core.http.exchange import allow_streaming
from hublet.repos import cards
from hublet.repos.auth import GIT_REPO, GIT_TAGS, MOVED, GitRepo
from hublet.repos.commits import preupload, service
from hublet.repos.commits.schemas import (
    CommitMade,
    Preupload,
    PreuploadAdvice,
    Remark,
    UploadAdvice,
    ValidateYaml,
    YamlRefused,
    YamlVerdict,
)
from hublet.repos.commits.targets import CommitAddress
from hublet.tokens.auth import AnyCaller

# The end of a path; slashes within a revision may be `%2F`.
REVISION = "/{revision:revision}"


_NO_METADATA = (
    "There is no metadata at the top of README.md; it helps others to find the repository."
)


async def _commit_address(
    address: GitRepo,
    revision: str,
    *,
    create_pr: Annotated[bool, Query(description="Make it a pull request.")] = False,
) -> CommitAddress:
    return CommitAddress(repo=address, revision=revision, create_pr=create_pr)


RequestedTarget = Annotated[CommitAddress, Depends(_commit_address)]


router = Router(prefix=GIT_REPO, tags=GIT_TAGS, responses=MOVED)
cards_router = Router(prefix="/api", tags=["repos"])

allow_streaming("POST", "/api/(models|datasets|spaces|kernels)/[^/]+/[^/]+/commit/.+")

_NDJSON: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": (
            "One JSON object a line, each with a `key` and a `value`. The first is the `header` "
            "with `summary`, `description` and `parentCommit`; then `file` (`path`, `content` in "
            "base64, `encoding`), `lfsFile` (`path`, `oid`, `size`), `deletedFile` and "
            "`deletedFolder` (`path`)."
        ),
        "content": {"application/x-ndjson": {"schema": {"type": "string"}}},
    }
}


@router.post(
    "/commit" + REVISION,
    openapi_extra=_NDJSON,
    responses={
        400: {"model": YamlRefused, "description": "A line breaks a rule, or README.md does."},
        409: {"description": "The branch keeps moving; repeat the request."},
        412: {"description": "The branch has moved on from `parentCommit`."},
        413: {"description": "A file is too large, or there are too many operations."},
        422: {"description": "A path is relative, or breaks another rule for paths."},
    },
)
async def create_commit(
    request: Request, database: Db, caller: AnyCaller, target: RequestedTarget
) -> CommitMade:
    """Add, replace and delete files of a branch in one commit, all of it or nothing.

    With `create_pr` the commit becomes a pull request instead, which needs no right to write.
    """
    result = await service.commit(database, caller, target, request.stream())
    return CommitMade(
        commitUrl=result.url,
        commitOid=result.oid,
        pullRequestUrl=result.pull_request_url or MISSING,
    )


@router.post("/preupload" + REVISION)
async def advise_upload(
    database: Db, caller: AnyCaller, target: RequestedTarget, body: Preupload
) -> PreuploadAdvice:
    """Tell how to upload files, which of them to leave out, and what is there already."""
    ignore = None if body.gitIgnore is MISSING else body.gitIgnore
    paths = [file.path for file in body.files]
    advice = await preupload.advise(database, caller, target, paths, ignore=ignore)
    return PreuploadAdvice(
        files=[
            UploadAdvice(path=each.path, shouldIgnore=each.is_ignored, oid=each.git_sha1 or MISSING)
            for each in advice
        ]
    )


@cards_router.post("/validate-yaml", responses={400: {"model": YamlRefused}})
async def validate_yaml(body: ValidateYaml) -> YamlVerdict:
    """Check the metadata at the top of a README.md, as a commit will."""
    data = await asyncio.to_thread(cards.parse_metadata, body.content)
    return YamlVerdict(errors=[], warnings=[] if data else [Remark(message=_NO_METADATA)])
