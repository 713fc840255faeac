"""HTTP for checking the metadata of a README."""

import asyncio

from hublet.core.http.routers import Router
from hublet.repos.cards import metadata
from hublet.repos.cards.schemas import Remark, ValidateYaml, YamlRefused, YamlVerdict

router = Router(prefix="/api", tags=["repos"])

_EMPTY = "There is no metadata at the top of README.md; it helps others to find the repository."


@router.post("/validate-yaml", responses={400: {"model": YamlRefused}})
async def validate_yaml(body: ValidateYaml) -> YamlVerdict:
    """Check the metadata at the top of a README.md, as a commit will."""
    data = await asyncio.to_thread(metadata.parse, body.content)
    return YamlVerdict(errors=[], warnings=[] if data else [Remark(message=_EMPTY)])
