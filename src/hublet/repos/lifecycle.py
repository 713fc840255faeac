"""Lifecycle of a repository: creation, renaming and transfer to another owner."""

import asyncio
from dataclasses import replace

from hublet.accounts.errors import OrganizationNotFound
from hublet.accounts.names import name_key
from hublet.accounts.organizations import service as organizations
from hublet.accounts.organizations import store as organizations_store
from hublet.accounts.records import Owner, OwnerType, Role
from hublet.accounts.resource_groups import service as resource_groups
from hublet.core.clock import now
from hublet.core.database import Connection, Database, Reader, UniqueViolation
from hublet.core.dataclasses import dataclass
from hublet.core.ids import new_object_id
from hublet.core.outbox import publish
from hublet.events import RepoMoved, UpdatedRef
from hublet.repos import service, store, usage_store
from hublet.repos.access import check_visibility
from hublet.repos.cards import README, parse_card, space_readme
from hublet.repos.errors import CannotCreateThere, InvalidRepo, RepoExists, RepoNotFound
from hublet.repos.git import bare_repos
from hublet.repos.git.patterns import (
    GIT_ATTRIBUTES_FILE,
    NEW_ATTRIBUTES,
    NEW_DATASET_ATTRIBUTES,
)
from hublet.repos.names import check_repo_name
from hublet.repos.packs import store as packs_store
from hublet.repos.packs.workspaces import open_workspace
from hublet.repos.records import MAIN, Card, NewPacks, Repo, RepoAddress, RepoType, Visibility
from hublet.repos.refs import store as ref_store
from hublet.repos.usage import check_quota
from hublet.tokens.records import Caller, Scope


async def get_owner(
    conn: Reader, caller: Caller, name: str, *, resource_group_id: str | None = None
) -> Owner:
    """Return the owner of that name when the caller may create repositories there."""
    if name_key(name) == name_key(caller.user_name):
        if resource_group_id is not None:
            raise CannotCreateThere(name, "only organizations have resource groups.")
        owner = Owner(id=caller.user_id, name=caller.user_name, type=OwnerType.user)
    else:
        owner = await _organization(conn, caller, name, resource_group_id=resource_group_id)
    if not any(
        caller.may(scope, on=owner.id) for scope in (Scope.manage_repos, Scope.contribute_repos)
    ):
        raise CannotCreateThere(name, f"the token lacks the scope {Scope.manage_repos}.")
    return owner


async def _organization(
    conn: Reader, caller: Caller, name: str, *, resource_group_id: str | None
) -> Owner:
    # In a resource group the role there counts, for members of the organization.
    needed = Role.contributor if resource_group_id is None else Role.read
    try:
        organization = await organizations.get_as(conn, name, user_id=caller.user_id, needed=needed)
    except OrganizationNotFound:
        raise CannotCreateThere(name, "it is neither you nor one of your organizations.") from None
    caller.check_reaches(organization.id)
    if resource_group_id is not None:
        role = await resource_groups.role_in(
            conn, organization, resource_group_id, user_id=caller.user_id
        )
        if role is None or not role.covers(Role.contributor):
            raise CannotCreateThere(name, "you cannot create repositories in that resource group.")
    return Owner(id=organization.id, name=organization.name, type=OwnerType.organization)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRepo:
    type: RepoType
    # None: the caller's own.
    namespace: str | None = None
    name: str
    # None: public, or what the organization has set for new repositories.
    visibility: Visibility | None = None
    sdk: str | None = None
    resource_group_id: str | None = None


async def create(database: Database, caller: Caller, new: NewRepo) -> Repo:
    """Create a repository; one with git starts with a commit, which gives a space its card."""
    check_request(new)
    async with database.read() as conn:
        repo = await new_record(conn, caller, new)
    if not repo.type.has_git:
        async with database.transaction() as conn:
            await add_or_refuse(conn, repo)
        return repo
    readme = space_readme(repo) if repo.type is RepoType.space else None
    async with open_workspace(database, repo.id, is_new=True) as work:
        head = await asyncio.to_thread(
            bare_repos.create_with_first_commit,
            work.folder,
            author=caller.user_name,
            at=now(),
            files=_first_files(repo.type, readme),
        )
        repo = _with_first_commit(repo, head, readme)
        try:
            packs = await work.upload()
            async with database.transaction() as conn:
                await _add_with_first_commit(conn, repo, head, packs)
        except BaseException:
            await asyncio.to_thread(bare_repos.remove, work.folder)
            raise
    return repo


async def _add_with_first_commit(
    conn: Connection, repo: Repo, head: str, packs: NewPacks | None
) -> None:
    await add_or_refuse(conn, repo)
    await ref_store.update_ref(conn, repo.id, UpdatedRef(ref=MAIN, old_sha=None, new_sha=head))
    if repo.type is RepoType.space:
        card = Card(data=repo.card, tags=repo.tags)
        await ref_store.set_card(conn, repo.id, card)
    if packs is not None:
        await packs_store.add_first(conn, repo.id, packs.packs, created_by=repo.creator_id)


def _first_files(type_: RepoType, readme: bytes | None) -> dict[str, bytes]:
    is_dataset = type_ is RepoType.dataset
    attributes = NEW_DATASET_ATTRIBUTES if is_dataset else NEW_ATTRIBUTES
    files = {GIT_ATTRIBUTES_FILE: attributes.encode()}
    return files if readme is None else {**files, README: readme}


def _with_first_commit(repo: Repo, head: str, readme: bytes | None) -> Repo:
    if readme is None:
        return replace(repo, head_sha=head)
    card = parse_card(readme, repo.type)
    return replace(repo, head_sha=head, card=card.data, tags=card.tags)


def check_request(new: NewRepo) -> None:
    check_repo_name(new.name, new.type)
    if new.visibility is not None:
        check_visibility(new.type, new.visibility)
    if new.type is RepoType.space and new.sdk is None:
        raise InvalidRepo("sdk is required for a space: gradio, streamlit, docker or static.")
    if new.type is not RepoType.space and new.sdk is not None:
        raise InvalidRepo(f"sdk is for spaces only, not for a {new.type}.")


async def add_or_refuse(conn: Connection, repo: Repo) -> None:
    """Store a new repository and publish it; raise RepoExists when the name is taken."""
    if not await service.add(conn, repo):
        raise _name_taken(conn, repo)


def _name_taken(conn: Reader, repo: Repo) -> RepoExists:
    return RepoExists(repo.type, repo.full_name, url=repo.url(conn.hub.settings.base_url))


async def new_record(conn: Reader, caller: Caller, new: NewRepo) -> Repo:
    """Return the record of a repository that the caller may create and whose name is free."""
    owner = await get_owner(
        conn,
        caller,
        new.namespace or caller.user_name,
        resource_group_id=new.resource_group_id,
    )
    at = now()
    repo = Repo(
        id=new_object_id(),
        type=new.type,
        owner=owner,
        name=new.name,
        visibility=new.visibility or await _default_visibility(conn, owner),
        sdk=new.sdk,
        resource_group_id=new.resource_group_id,
        creator_id=caller.user_id,
        created_with=caller.origin,
        created_at=at,
        updated_at=at,
    )
    if await store.find_by_name(conn, repo.address) is not None:
        raise _name_taken(conn, repo)
    return repo


async def _default_visibility(conn: Reader, owner: Owner) -> Visibility:
    if not owner.is_organization:
        return Visibility.public
    return Visibility(await organizations_store.default_visibility_of(conn, owner.id))


async def move(conn: Connection, caller: Caller, repo: Repo, target: RepoAddress) -> Repo:
    """Rename or transfer a repository that the caller manages; its old names redirect to it."""
    check_repo_name(target.name, repo.type)
    moved = _with_name(repo, await _new_owner(conn, caller, repo, target), target.name)
    if moved == repo:
        return repo
    await _check_room(conn, repo, moved)
    try:
        if not await store.set_name(conn, before=repo, after=moved):
            # Another request moved or deleted it at the same moment.
            raise RepoNotFound
    except UniqueViolation:
        raise _name_taken(conn, moved) from None
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
    for each in {repo.owner_id: repo, moved.owner_id: moved}.values():
        await service.record_change(
            conn, each, "repo.move", actor_id=caller.user_id,
            details={"from": repo.full_name, "to": moved.full_name},
        )  # fmt: skip
    return moved


async def _check_room(conn: Connection, repo: Repo, moved: Repo) -> None:
    """Refuse a transfer to an owner who has no room for what the repository holds."""
    if moved.owner_id == repo.owner_id:
        return
    held = await usage_store.raw_of_repo(conn, repo.id)
    if held:
        await check_quota(conn, moved.owner_id, held, what="this repository")


async def _new_owner(
    conn: Connection, caller: Caller, repo: Repo, target: RepoAddress
) -> Owner | None:
    """Return the new owner, when the caller may create repositories there; None: it stays."""
    if name_key(target.namespace) == name_key(repo.owner_name):
        return None
    return await get_owner(conn, caller, target.namespace)


def _with_name(repo: Repo, owner: Owner | None, name: str) -> Repo:
    if owner is None:
        return replace(repo, name=name)
    # A resource group is a part of the organization that the repository leaves.
    return replace(repo, name=name, owner=owner, resource_group_id=None)
