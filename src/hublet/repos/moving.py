"""How a repository gets another name or another owner."""

from dataclasses import replace

from hublet.accounts.names import name_key
from hublet.core.database import Connection, UniqueViolation
from hublet.core.outbox import publish
from hublet.events import RepoMoved
from hublet.repos import service, store
from hublet.repos.errors import RepoExists, RepoNotFound
from hublet.repos.names import check_repo_name
from hublet.repos.namespaces import Namespace, get_namespace
from hublet.repos.records import Repo, RepoAddress
from hublet.tokens.records import Caller


async def move(conn: Connection, caller: Caller, repo: Repo, target: RepoAddress) -> Repo:
    """Move a repository that the caller manages; whoever uses its old names is led to it."""
    check_repo_name(target.name, repo.type)
    moved = _renamed(repo, await _target(conn, caller, repo, target), target.name)
    if moved == repo:
        return repo
    try:
        if not await store.set_name(conn, before=repo, after=moved):
            # Somebody else moved or deleted it at the same moment.
            raise RepoNotFound(repo.type, repo.full_name)
    except UniqueViolation:
        url = moved.url(conn.hub.settings.base_url)
        raise RepoExists(moved.full_name, url=url) from None
    await store.add_redirect(conn, repo)
    await store.remove_redirect(conn, moved)
    await publish(
        conn,
        RepoMoved(
            repo=service.snapshot(repo),
            moved_to_name=moved.full_name,
            moved_to_owner_id=moved.owner_id,
            actor_id=caller.user_id,
        ),
    )
    return moved


async def _target(
    conn: Connection, caller: Caller, repo: Repo, target: RepoAddress
) -> Namespace | None:
    """Return the new owner, where the caller must be allowed to create; None when it stays."""
    if name_key(target.namespace) == name_key(repo.owner_name):
        return None
    return await get_namespace(conn, caller, target.namespace)


def _renamed(repo: Repo, owner: Namespace | None, name: str) -> Repo:
    if owner is None:
        return replace(repo, name=name)
    # A resource group is a part of the organization that the repository leaves.
    return replace(
        repo,
        name=name,
        owner_id=owner.id,
        owner_name=owner.name,
        owner_type=owner.type,
        resource_group_id=None,
    )
