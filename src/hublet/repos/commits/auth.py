"""What a commit goes to, as a type that a route names."""

from typing import Annotated

from fastapi import Depends, Query

from hublet.repos.auth import GitRepo
from hublet.repos.commits.targets import Wanted

# Behind the word for what is done; slashes within a revision may be `%2F`.
REVISION = "/{revision:path}"


async def _target(
    address: GitRepo,
    revision: str,
    *,
    create_pr: Annotated[bool, Query(description="Make it a pull request.")] = False,
) -> Wanted:
    return Wanted(address=address, revision=revision, create_pr=create_pr)


AskedTarget = Annotated[Wanted, Depends(_target)]
