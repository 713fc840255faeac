"""Permissions of a push: who may push, and to which refs."""

import re

from hublet.core.database import Reader
from hublet.repos import service as repos
from hublet.repos.commits.pull_requests import may_commit_to
from hublet.repos.errors import PushRefused
from hublet.repos.push.commands import Push
from hublet.repos.records import Repo, RepoAddress, Right
from hublet.tokens.records import Caller

_PULL_REQUEST = re.compile(r"refs/pr/([1-9][0-9]{0,17})")


async def get_to_push(conn: Reader, caller: Caller, address: RepoAddress) -> Repo:
    """Return the repository when the caller may push something to it, be it a pull request."""
    repo = await repos.get(conn, caller, address, Right.see)
    if not await _may_propose(conn, caller, repo):
        await repos.check(conn, caller, repo, Right.write)
    return repo


async def check_refs(conn: Reader, caller: Caller, repo: Repo, push: Push) -> None:
    """Refuse a push to refs that are not the caller's to move."""
    if await repos.may(conn, caller, repo, Right.write):
        return
    for command in push.commands:
        if not await _is_own_pull_request(conn, caller, repo, command.ref):
            raise PushRefused(
                f"you have no write access to {repo.full_name}; "
                "without it you can push to your own open pull requests only"
            )


async def _is_own_pull_request(conn: Reader, caller: Caller, repo: Repo, ref: str) -> bool:
    pull_request = _PULL_REQUEST.fullmatch(ref)
    if pull_request is None or not await _may_propose(conn, caller, repo):
        return False
    return await may_commit_to(conn, caller, repo, int(pull_request[1]))


async def _may_propose(conn: Reader, caller: Caller, repo: Repo) -> bool:
    return await repos.may(conn, caller, repo, Right.read) and await repos.may(
        conn, caller, repo, Right.discuss
    )
