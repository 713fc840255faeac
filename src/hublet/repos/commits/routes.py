"""HTTP for commits."""

from typing import Any

from fastapi import Request
from pydantic import MISSING

from hublet.core.http import Db, Router
from hublet.core.http.bodies import streams
from hublet.repos.auth import GIT_REPO, GIT_TAGS, MOVED
from hublet.repos.cards.schemas import YamlRefused
from hublet.repos.commits import preupload, service
from hublet.repos.commits.auth import REVISION, AskedTarget
from hublet.repos.commits.schemas import CommitMade, Preupload, PreuploadAdvice, UploadAdvice
from hublet.tokens.auth import AnyCaller

router = Router(prefix=GIT_REPO, tags=GIT_TAGS, responses=MOVED)

streams("POST", "/api/(models|datasets|spaces|kernels)/[^/]+/[^/]+/commit/.+")

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
        409: {"description": "The branch has moved on from `parentCommit`."},
        413: {"description": "A file is too large, or there are too many operations."},
    },
)
async def create_commit(
    request: Request, database: Db, caller: AnyCaller, target: AskedTarget
) -> CommitMade:
    """Add, replace and delete files of a branch in one commit, all of it or nothing.

    With `create_pr` the commit becomes a pull request instead, which needs no right to write.
    """
    done = await service.commit(database, caller, target, request.stream())
    return CommitMade(
        commitUrl=done.url, commitOid=done.oid, pullRequestUrl=done.pull_request_url or MISSING
    )


@router.post("/preupload" + REVISION)
async def advise_upload(
    database: Db, caller: AnyCaller, target: AskedTarget, body: Preupload
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
