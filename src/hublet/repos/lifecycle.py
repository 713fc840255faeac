"""Lifecycle of a repository: creation under a namespace, renaming and transfer to another owner."""

import asyncio
from dataclasses import replace

from hublet.accounts.errors import OrganizationNotFound
from hublet.accounts.names import name_key
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import Role
from hublet.accounts.resource_groups import service as resource_groups
from hublet.core.clock import now
from hublet.core.database import Connection, Database, Reader, UniqueViolation
from hublet.core.ids import new_object_id
from hublet.core.light_dataclasses import dataclass
from hublet.core.outbox import publish
from hublet.events import RepoMoved, UpdatedRef
from hublet.repos import service, store
from hublet.repos.access import check_visibility
from hublet.repos.errors import CannotCreateThere, InvalidRepo, RepoExists, RepoNotFound
from hublet.repos.git import bare_repos
from hublet.repos.names import check_repo_name
from hublet.repos.records import MAIN, Repo, RepoAddress, RepoType, Visibility
from hublet.repos.refs import store as refs
from hublet.tokens.records import Caller, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespace:
    """A user or an organization, as the owner of repositories."""

    id: str
    name: str
    # Either "user" or "org".
    type: str


async def get_namespace(
    conn: Reader, caller: Caller, name: str, *, resource_group_id: str | None = None
) -> Namespace:
    """Return the owner of that name when the caller may create repositories there."""
    if name_key(name) == name_key(caller.user_name):
        if resource_group_id is not None:
            raise CannotCreateThere(name, "only organizations have resource groups.")
        namespace = Namespace(id=caller.user_id, name=caller.user_name, type="user")
    else:
        namespace = await _organization(conn, caller, name, resource_group_id=resource_group_id)
    if not any(
        caller.may(scope, on=namespace.id) for scope in (Scope.manage_repos, Scope.contribute_repos)
    ):
        raise CannotCreateThere(name, f"the token lacks the scope {Scope.manage_repos}.")
    return namespace


async def _organization(
    conn: Reader, caller: Caller, name: str, *, resource_group_id: str | None
) -> Namespace:
    # In a resource group the role there decides, as long as one is a member at all.
    needed = Role.contributor if resource_group_id is None else Role.read
    try:
        organization = await organizations.get_as(conn, name, user_id=caller.user_id, needed=needed)
    except OrganizationNotFound:
        raise CannotCreateThere(name, "it is neither you nor one of your organizations.") from None
    if resource_group_id is not None:
        role = await resource_groups.role_in(
            conn, organization, resource_group_id, user_id=caller.user_id
        )
        if role is None or not role.covers(Role.contributor):
            raise CannotCreateThere(name, "you cannot create repositories in that resource group.")
    return Namespace(id=organization.id, name=organization.name, type="org")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRepo:
    type: RepoType
    # None: the caller's own.
    namespace: str | None = None
    name: str
    visibility: Visibility = Visibility.public
    sdk: str | None = None
    resource_group_id: str | None = None


async def create(database: Database, caller: Caller, wanted: NewRepo) -> Repo:
    """Create a repository; one with git starts with a commit that holds .gitattributes."""
    _check_request(wanted)
    async with database.read() as conn:
        repo = await _new_record(conn, caller, wanted)
        if await store.find_by_name(conn, repo.address) is not None:
            raise _name_taken(conn, repo)
    if not repo.type.has_git:
        async with database.transaction() as conn:
            await _add_or_refuse(conn, repo)
        return repo
    folder = bare_repos.folder_of(database.hub.settings.database.data_dir, repo.id)
    head = await asyncio.to_thread(
        bare_repos.create_with_first_commit, folder, author=caller.user_name, at=now()
    )
    repo = replace(repo, head_sha=head)
    try:
        async with database.transaction() as conn:
            await _add_or_refuse(conn, repo)
            await refs.update_ref(conn, repo.id, UpdatedRef(ref=MAIN, old_sha=None, new_sha=head))
    except BaseException:
        await asyncio.to_thread(bare_repos.remove, folder)
        raise
    return repo


def _check_request(wanted: NewRepo) -> None:
    check_repo_name(wanted.name, wanted.type)
    check_visibility(wanted.type, wanted.visibility)
    if wanted.type is RepoType.space and wanted.sdk is None:
        raise InvalidRepo("sdk is required for a space: gradio, streamlit, docker or static.")
    if wanted.type is not RepoType.space and wanted.sdk is not None:
        raise InvalidRepo(f"sdk is for spaces only, not for a {wanted.type}.")


async def _add_or_refuse(conn: Connection, repo: Repo) -> None:
    if not await service.add(conn, repo):
        raise _name_taken(conn, repo)


def _name_taken(conn: Reader, repo: Repo) -> RepoExists:
    return RepoExists(repo.full_name, url=repo.url(conn.hub.settings.base_url))


async def _new_record(conn: Reader, caller: Caller, wanted: NewRepo) -> Repo:
    namespace = await get_namespace(
        conn,
        caller,
        wanted.namespace or caller.user_name,
        resource_group_id=wanted.resource_group_id,
    )
    at = now()
    return Repo(
        id=new_object_id(),
        type=wanted.type,
        owner_id=namespace.id,
        owner_name=namespace.name,
        owner_type=namespace.type,
        name=wanted.name,
        visibility=wanted.visibility,
        sdk=wanted.sdk,
        resource_group_id=wanted.resource_group_id,
        creator_id=caller.user_id,
        created_with=caller.origin,
        created_at=at,
        updated_at=at,
    )


async def move(conn: Connection, caller: Caller, repo: Repo, target: RepoAddress) -> Repo:
    """Move a repository that the caller manages; whoever uses its old names is led to it."""
    check_repo_name(target.name, repo.type)
    moved = _with_name(repo, await _new_owner(conn, caller, repo, target), target.name)
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


async def _new_owner(
    conn: Connection, caller: Caller, repo: Repo, target: RepoAddress
) -> Namespace | None:
    """Return the new owner, where the caller must be allowed to create; None when it stays."""
    if name_key(target.namespace) == name_key(repo.owner_name):
        return None
    return await get_namespace(conn, caller, target.namespace)


def _with_name(repo: Repo, owner: Namespace | None, name: str) -> Repo:
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
