"""HTTP for commits, for advice before an upload, and for the check of a card."""

import asyncio
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from pydantic import MISSING
from starlette.responses import PlainTextResponse

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
from hublet.repos.errors import InvalidCard
from hublet.repos.records import RepoType
from hublet.tokens.auth import AnyCaller

# The end of a path; slashes within a revision may be `%2F`.
REVISION = "/{revision:revision}"


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
    advice = await preupload.advise(database, caller, target, body.offer())
    return PreuploadAdvice(files=[UploadAdvice.of(each) for each in advice])


_REFUSED_CARD: dict[str, Any] = {
    "model": YamlRefused,
    "content": {"text/plain": {"schema": {"type": "string"}}},
    "description": "A line for each error, where the request accepts `text/plain` alone.",
}


@cards_router.post("/validate-yaml", responses={400: _REFUSED_CARD}, response_model=YamlVerdict)
async def validate_yaml(request: Request, body: ValidateYaml) -> Any:
    """Check the metadata at the top of a README.md: what a commit refuses, and what it lets pass.

    A license that nobody knows or an incomplete `model-index` is refused here alone.
    """
    type_ = RepoType.model if body.repoType is MISSING else RepoType(body.repoType)
    try:
        warnings = await asyncio.to_thread(cards.review, body.content, type_)
    except InvalidCard as error:
        # The public Python client shows the text of the response as it is.
        if request.headers.get("accept") != "text/plain":
            raise
        lines = "".join(f"- Error: {problem}\n" for problem in error.problems)
        return PlainTextResponse(lines, status_code=400)
    return YamlVerdict(errors=[], warnings=[Remark(message=each) for each in warnings])
