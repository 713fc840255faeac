"""HTTP for the settings of a repository."""

from fastapi import Request
from pydantic import MISSING

from hublet.core.http import Conn, ReadConn, Router
from hublet.repos import service as repos
from hublet.repos.auth import GIT_REPO, GIT_TAGS, MOVED, GitRepo
from hublet.repos.records import Gated, Right
from hublet.repos.settings import service
from hublet.repos.settings.records import SettingsChange
from hublet.repos.settings.schemas import (
    RepoResourceGroupEnvelope,
    RepoSettings,
    SetRepoResourceGroup,
    UpdateRepoSettings,
)
from hublet.repos.visibility import asked_visibility
from hublet.tokens.auth import AnyCaller, actor_of

router = Router(prefix=GIT_REPO, tags=GIT_TAGS, responses=MOVED)


@router.put("/settings")
async def update_repo_settings(
    conn: Conn, caller: AnyCaller, address: GitRepo, body: UpdateRepoSettings
) -> RepoSettings:
    """Change who sees a repository, who may read it, and whether it has discussions.

    A private repository may be gated too; the gate counts once it is public.
    """
    repo = await repos.get(conn, caller, address, Right.manage)
    return RepoSettings.of(await service.update_settings(conn, caller, repo, _wanted(body)))


def _wanted(body: UpdateRepoSettings) -> SettingsChange:
    gated = None if body.gated is MISSING else body.gated
    return SettingsChange(
        visibility=asked_visibility(
            visibility=None if body.visibility is MISSING else body.visibility,
            private=None if body.private is MISSING else body.private,
        ),
        gated=Gated(gated) if gated else gated,
        discussions_disabled=(
            None if body.discussionsDisabled is MISSING else body.discussionsDisabled
        ),
    )


@router.get("/resource-group")
async def get_repo_resource_group(
    conn: ReadConn, caller: AnyCaller, address: GitRepo
) -> RepoResourceGroupEnvelope:
    """Show the resource group of a repository, to its members and to administrators."""
    repo = await repos.get(conn, caller, address, Right.see)
    return RepoResourceGroupEnvelope.of(await service.find_resource_group(conn, caller, repo))


@router.post("/resource-group")
async def set_repo_resource_group(
    request: Request, conn: Conn, caller: AnyCaller, address: GitRepo, body: SetRepoResourceGroup
) -> RepoResourceGroupEnvelope:
    """Put a repository into a resource group, or out of one, as the organization's administrator."""
    repo = await repos.get(conn, caller, address, Right.manage)
    actor = actor_of(request, caller)
    group = await service.set_resource_group(conn, actor, caller, repo, body.resourceGroupId)
    return RepoResourceGroupEnvelope.of(group)
