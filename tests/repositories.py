"""Repositories and resource groups for tests, one line each."""

from collections.abc import Mapping, Sequence
from typing import Any

import httpx2

from hublet.accounts.organizations import store as group_members
from hublet.accounts.records import OPERATOR, Organization, ResourceGroupRecord, Role
from hublet.accounts.resource_groups import service as resource_groups
from hublet.accounts.users import service as accounts
from hublet.accounts.users import store as users
from hublet.core.database import Database
from hublet.events import UpdatedRef
from hublet.repos import store
from hublet.repos.git import bare_repos
from hublet.repos.records import MAIN, Card, RefTransaction
from hublet.repos.refs import service as refs
from people import Headers
from repos.git_objects import commit_files


async def a_repo(client: httpx2.AsyncClient, headers: Headers, full_name: str, **body: Any) -> str:
    """Return the id of a new repository, a model unless said otherwise."""
    if body.get("type") == "space":
        body = {"sdk": "static"} | body
    response = await client.post(
        "/api/repos/create", headers=headers, json={"name": full_name} | body
    )
    assert response.status_code == 200, response.text
    repo_id: str = response.json()["id"]
    return repo_id


async def a_resource_group(
    database: Database,
    organization: Organization,
    name: str = "rockets",
    *,
    members: dict[str, Role] | None = None,
) -> ResourceGroupRecord:
    """Return a new resource group with these members of the organization by name."""
    async with database.transaction() as conn:
        group = await resource_groups.create(
            conn, OPERATOR, organization, name=name, description=""
        )
        for member, role in (members or {}).items():
            user = await users.find_by_name(conn, member)
            assert user is not None
            await group_members.set_group_member(conn, group.id, user_id=user.id, role=role)
    return group


async def disable(database: Database, user_name: str) -> None:
    async with database.transaction() as conn:
        await accounts.disable_user(conn, await accounts.get_user(conn, user_name))


async def a_push(
    database: Database,
    repo_id: str,
    files: Mapping[str, bytes],
    *,
    ref: str = MAIN,
    card: Mapping[str, Any] | None = None,
    tags: Sequence[str] = (),
) -> str:
    """Let a ref hold exactly these files, as whatever brings content does; return the commit."""
    folder = bare_repos.folder_of(database.hub.settings.database.data_dir, repo_id)
    commit = commit_files(folder, files)
    shown = Card(data=dict(card) if card else None, tags=tuple(tags))
    await a_ref(database, repo_id, ref, commit, card=shown)
    return commit


async def a_ref(
    database: Database, repo_id: str, ref: str, sha: str, *, card: Card | None = None
) -> None:
    """Let a ref point to what lies in git already."""
    async with database.transaction() as conn:
        repo = await store.find(conn, repo_id)
        assert repo is not None
        old = await refs.find_sha(conn, repo, ref)
        update = UpdatedRef(ref=ref, old_sha=old, new_sha=sha)
        await refs.update_refs(
            conn,
            repo,
            RefTransaction(updates=(update,), actor_id=repo.creator_id, card=card, added_bytes=7),
        )
