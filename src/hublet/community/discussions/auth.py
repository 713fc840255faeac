"""Which discussion a request is about, as a type that a route names."""

from typing import Annotated, Any

from fastapi import Path

from hublet.repos.auth import GIT_REPO

DISCUSSIONS = f"{GIT_REPO}/discussions"

LARGEST = 2**31 - 1
Num = Annotated[int, Path(ge=1, le=LARGEST, description="The number of the discussion.")]

# For the `responses` of a route that not every state of a discussion allows.
STANDS: dict[int | str, dict[str, Any]] = {
    409: {"description": "The discussion is not in a state in which this can be done."}
}
