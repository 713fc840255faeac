"""Parameters of requests as annotated types: the thread that a path names."""

from typing import Annotated

from fastapi import Path

from hublet.repos.auth import PAGE_REPO

THREADS = f"{PAGE_REPO}/discussions"
THREAD = f"{THREADS}/{{num:int}}"
Number = Annotated[int, Path(ge=1, le=2**31 - 1)]
