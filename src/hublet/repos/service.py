"""Repositories: lookup by name, check of rights, creation and deletion of the record."""

import json
from collections.abc import Collection, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from hublet.accounts.names import name_key
from hublet.accounts.organizations import audit_store as audit
from hublet.accounts.records import Actor, Role
from hublet.accounts.users import store as users
from hublet.core.database import Connection, Database, Reader
from hublet.core.outbox import publish
from hublet.core.queue import NewTask
from hublet.core.queue import add as add_task
from hublet.events import RepoCreated, RepoDeleted, RepoSnapshot
from hublet.repos import access, store
from hublet.repos.errors import AccessNotGranted, RepoMoved, RepoNotFound, RightNeeded
from hublet.repos.names import repo_name_key
from hublet.repos.packs import cache as pack_cache
from hublet.repos.records import Repo, RepoAddress, RepoViewer, Right
from hublet.tokens.records import Caller, Scope

REMOVE_FOLDER = "repos.remove-folder"


def snapshot(repo: Repo) -> RepoSnapshot:
    """Return the repository as events carry it."""
    return RepoSnapshot(
        id=repo.id,
        type=repo.type,
        name=repo.full_name,
        owner_id=repo.owner_id,
        private=repo.is_private,
        resource_group_id=repo.resource_group_id,
        head_sha=repo.head_sha,
        tags=repo.tags,
    )


async def open_folder(database: Database, repo_id: str) -> Path:
    """Return the folder of the bare git repository that holds a repository's content of this moment.

    Call it after the refs were read, and with no transaction open: with a shared store, this node may
    have to fetch packs first.
    """
    return await pack_cache.open_folder(database, repo_id)


async def get(conn: Reader, caller: Caller | None, address: RepoAddress, right: Right) -> Repo:
    """Return the repository that a request names when the caller has this right to it.

    Raises RepoNotFound also for a repository that the caller may not see, after the same steps:
    neither the response nor the time that it takes tells which of the two it is.
    """
    repo = await store.find_public(conn, address)
    if repo is None:
        repo = await _find_guarded(conn, caller, address, right)
    if repo is None:
        if caller is not None:
            caller.check_reaches_name(address.namespace)
        raise RepoNotFound
    if not is_named(repo, address) and (path := _new_path(address, repo)) is not None:
        raise RepoMoved(repo.full_name, path=path)
    if right is not Right.see:
        await check(conn, caller, repo, right)
    return repo


async def _find_guarded(
    conn: Reader, caller: Caller | None, address: RepoAddress, right: Right
) -> Repo | None:
    """Return a repository that is private or was moved, if the caller may know of it.

    Nothing of it is read before that is decided: the size of a card would take its time.
    """
    guard = await store.guard_of(conn, address, user_id=caller.user_id if caller else "")
    return await store.find(conn, guard.repo_id) if access.lets_pass(guard, caller, right) else None


async def get_as_named(
    conn: Reader, caller: Caller | None, address: RepoAddress, right: Right
) -> Repo:
    """Like `get`, for what cannot be undone: a former name of the repository is not enough."""
    repo = await get(conn, caller, address, right)
    if not is_named(repo, address):
        raise RepoNotFound
    return repo


def is_named(repo: Repo, address: RepoAddress) -> bool:
    return (name_key(repo.owner_name), repo_name_key(repo.name)) == (
        name_key(address.namespace),
        repo_name_key(address.name),
    )


def _new_path(address: RepoAddress, moved: Repo) -> str | None:
    """Return the URL of the request with the new name; None when the old one is not in it."""
    path, mark, query = address.request_url.partition("?")
    segments = path.split("/")
    for index, (owner, name) in enumerate(pairwise(segments)):
        bare = name.removesuffix(".git")
        if (unquote(owner), unquote(bare)) == (address.namespace, address.name):
            new_name = moved.name + name.removeprefix(bare)
            segments[index : index + 2] = [moved.owner_name, new_name]
            return "/".join(segments) + mark + query
    return None


async def may(conn: Reader, caller: Caller | None, repo: Repo, right: Right) -> bool:
    """Tell whether the caller has this right; to read a gated repository needs access to it."""
    if access.is_open(repo, right):
        return True
    if caller is None or access.publishes(repo, caller, right):
        return caller is not None
    if access.token_reaches(repo, caller, right) and await may_user(
        conn, caller.user_id, repo, right
    ):
        return True
    if right is Right.read and _may_pass_gate(repo, caller):
        return await store.access_status(conn, repo.id, user_id=caller.user_id) == "accepted"
    if right is Right.discuss:
        return access.is_open(repo, Right.see) and access.token_reaches(repo, caller, right)
    return False


async def get_viewer(conn: Reader, caller: Caller | None, repo: Repo) -> RepoViewer:
    """Return all rights that the caller has: those for which `may` is true, with one look."""
    rights = {right for right in Right if access.is_open(repo, right)}
    if caller is None:
        return RepoViewer(rights=frozenset(rights))
    found = await store.find_viewer(conn, repo, user_id=caller.user_id)
    role = access.role_in_repo(
        repo,
        organization=Role(found["organization"]) if found["organization"] else None,
        group=Role(found["resource_group"]) if found["resource_group"] else None,
    )
    reached = {right for right in Right if access.token_reaches(repo, caller, right)}
    rights |= {
        right
        for right in reached
        if access.may_as_member(repo, caller.user_id, role, right)
        or access.publishes(repo, caller, right)
    }
    if Right.discuss in reached and access.is_open(repo, Right.see):
        rights.add(Right.discuss)
    if found["status"] == "accepted" and _may_pass_gate(repo, caller):
        rights.add(Right.read)
    return RepoViewer(rights=frozenset(rights), is_liked=found["liked_by"] is not None)


async def may_user(conn: Reader, user_id: str, repo: Repo, right: Right) -> bool:
    """Tell whether a user has this right as owner or member, whatever the token."""
    if repo.owner_id == user_id:
        # Nobody is a member of oneself: a look for roles would find none.
        return True
    organization, group = await store.roles_of(conn, repo, user_id=user_id)
    role = access.role_in_repo(repo, organization=organization, group=group)
    return access.may_as_member(repo, user_id, role, right)


async def who_may_see(
    conn: Reader, repo: RepoSnapshot, account_ids: Collection[str]
) -> frozenset[str]:
    """Return those of these users and organizations who may see a repository.

    An organization sees its own repositories; a disabled member of one sees none of them.
    """
    if not repo.private:
        return frozenset(account_ids)
    others = [account for account in account_ids if account != repo.owner_id]
    seen_by = set(account_ids) - set(others)
    roles = await store.list_roles(conn, repo, user_ids=others) if others else {}
    for user_id, (organization, group) in roles.items():
        if access.role_in_repo(repo, organization=organization, group=group) is not None:
            seen_by.add(user_id)
    return frozenset(seen_by)


def _may_pass_gate(repo: Repo, caller: Caller) -> bool:
    # Interface 5.3: gated-repos reads public gated repositories, never private ones.
    return access.is_open(repo, Right.see) and (
        caller.may(Scope.gated_repos, on=repo.owner_id)
        or access.token_reaches(repo, caller, Right.read)
    )


async def check(conn: Reader, caller: Caller | None, repo: Repo, right: Right) -> None:
    """Refuse, with the reason, a caller who may see the repository but lacks this right to it."""
    if await may(conn, caller, repo, right):
        return
    if caller is not None:
        caller.check_reaches(repo.owner_id)
    if right is Right.read:
        user_id = caller.user_id if caller else ""
        status = await store.access_status(conn, repo.id, user_id=user_id)
        raise AccessNotGranted(repo.type, repo.full_name, access.gate_reason(repo, status))
    if caller is None:
        raise RightNeeded(repo.full_name, "it needs a token.")
    if not access.token_reaches(repo, caller, right):
        raise RightNeeded(repo.full_name, f"the token lacks the scope {access.scope_for(right)}.")
    raise RightNeeded(repo.full_name, f"you have no {right} access to it.")


async def add(conn: Connection, repo: Repo) -> bool:
    """Store a new repository and publish it; False when the name is taken."""
    if not await store.add(conn, repo):
        return False
    await store.remove_redirect(conn, repo)
    await publish(conn, RepoCreated(repo=snapshot(repo), actor_id=repo.creator_id))
    await record_change(conn, repo, "repo.create", actor_id=repo.creator_id)
    return True


async def delete(conn: Connection, caller: Caller, repo: Repo) -> None:
    """Delete a repository; a task removes its folder after the transaction."""
    if not await store.remove(conn, repo.id):
        raise RepoNotFound
    await add_task(conn, NewTask(kind=REMOVE_FOLDER, body=json.dumps({"repo_id": repo.id})))
    await publish(conn, RepoDeleted(repo=snapshot(repo), actor_id=caller.user_id))
    await record_change(conn, repo, "repo.delete", actor_id=caller.user_id)


async def record_change(
    conn: Connection,
    repo: Repo,
    action: str,
    *,
    actor_id: str,
    details: Mapping[str, Any] | None = None,
) -> None:
    """Write a line into the audit log of the organization that a repository belongs to."""
    if not repo.owner.is_organization:
        return
    user = await users.find(conn, actor_id)
    await audit.record(
        conn, repo.owner_id, Actor(id=actor_id, name=user.name if user else actor_id), action,
        target=repo.full_name, details={"type": repo.type, **(details or {})},
    )  # fmt: skip
