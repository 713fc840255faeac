"""Settings of a repository: visibility, gate, discussions and resource group; its storage."""

from dataclasses import replace

from hublet.accounts.errors import RoleNeeded
from hublet.accounts.organizations import audit_store as audit
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import Actor, ResourceGroupRecord, Role
from hublet.accounts.resource_groups import service as resource_groups
from hublet.core.database import Connection, Reader
from hublet.core.outbox import publish
from hublet.events import RepoConfigUpdated
from hublet.repos import service, store, usage_store
from hublet.repos.access import check_visibility
from hublet.repos.errors import InvalidRepo
from hublet.repos.records import Repo, RepoAddress, Right, SettingsChange, StorageUsage
from hublet.repos.service import snapshot
from hublet.tokens.errors import ScopeNeeded
from hublet.tokens.records import Caller, Scope

# Of an organization, to choose from.
MOST_GROUPS = 1000


async def update_settings(
    conn: Connection, caller: Caller, repo: Repo, change: SettingsChange
) -> Repo:
    """Change settings and publish what changed; return the repository as it is then."""
    _check(repo, change)
    changed = _with_changes(repo, change)
    updated = _differences(repo, changed)
    if not updated:
        return repo
    await store.change_settings(conn, repo.id, change)
    await _publish_update(conn, changed, updated, actor_id=caller.user_id)
    await service.record_change(
        conn, changed, "repo.settings", actor_id=caller.user_id, details=updated
    )
    return changed


def _check(repo: Repo, change: SettingsChange) -> None:
    if change.visibility is not None:
        check_visibility(repo.type, change.visibility)
    if change.gated and not repo.type.has_git:
        raise InvalidRepo(f"gated is not for a {repo.type}.")


def _with_changes(repo: Repo, change: SettingsChange) -> Repo:
    return replace(
        repo,
        visibility=change.visibility or repo.visibility,
        gated=repo.gated if change.gated is None else change.gated or None,
        discussions_disabled=(
            repo.discussions_disabled
            if change.discussions_disabled is None
            else change.discussions_disabled
        ),
    )


def _differences(before: Repo, after: Repo) -> dict[str, str | bool | None]:
    settings: dict[str, tuple[str | bool, str | bool]] = {
        "private": (before.is_private, after.is_private),
        "visibility": (before.visibility, after.visibility),
        "gated": (before.gated or False, after.gated or False),
        "discussionsDisabled": (before.discussions_disabled, after.discussions_disabled),
    }
    return {name: new for name, (old, new) in settings.items() if old != new}


async def _publish_update(
    conn: Connection, repo: Repo, updated: dict[str, str | bool | None], *, actor_id: str
) -> None:
    await publish(
        conn,
        RepoConfigUpdated(repo=snapshot(repo), updated_config=updated, actor_id=actor_id),
    )


async def find_resource_group(
    conn: Reader, caller: Caller, repo: Repo
) -> ResourceGroupRecord | None:
    """Return the resource group of a repository, for its members and for administrators."""
    if repo.resource_group_id is None:
        return None
    organization = await organizations.get_as(
        conn, repo.owner_name, user_id=caller.user_id, needed=Role.read
    )
    return await resource_groups.get_visible(
        conn, organization, repo.resource_group_id, user_id=caller.user_id
    )


async def set_resource_group(
    conn: Connection, actor: Actor, caller: Caller, repo: Repo, group_id: str | None
) -> ResourceGroupRecord | None:
    """Put a repository into a resource group, or out of its group, as an administrator."""
    if not repo.owner.is_organization:
        raise InvalidRepo("Only the repositories of an organization can be in a resource group.")
    caller.check_reaches(repo.owner_id)
    organization = await organizations.get_as(
        conn, repo.owner_name, user_id=caller.user_id, needed=Role.admin
    )
    group = None
    if group_id is not None:
        # Every plan may take a repository out of its group, not every plan may put one in.
        await resource_groups.get_organization(conn, repo.owner_name, user_id=caller.user_id)
        group = await resource_groups.get(conn, organization, group_id)
    if group_id == repo.resource_group_id:
        return group
    await store.set_resource_group(conn, repo.id, group_id)
    await audit.record(
        conn, organization.id, actor, "repo.resource-group", target=repo.full_name,
        details={"resource_group": group.name if group else None},
    )  # fmt: skip
    changed = replace(repo, resource_group_id=group_id)
    await _publish_update(conn, changed, {"resourceGroupId": group_id}, actor_id=caller.user_id)
    return group


async def list_resource_groups(
    conn: Reader, caller: Caller, repo: Repo
) -> list[ResourceGroupRecord] | None:
    """Return the groups that `set_resource_group` would take; None if it would refuse the caller."""
    if not repo.owner.is_organization or caller.is_blocked(repo.owner_id):
        return None
    try:
        organization = await organizations.get_administered(
            conn, repo.owner_name, user_id=caller.user_id
        )
    except RoleNeeded:
        return None
    if not organization.plan.has_resource_groups:
        return []
    return await resource_groups.list_visible(
        conn, organization, user_id=caller.user_id, after="", limit=MOST_GROUPS
    )


async def get_storage(conn: Reader, caller: Caller, address: RepoAddress) -> StorageUsage:
    repo = await service.get(conn, caller, address, Right.manage)
    if repo.owner.is_organization:
        # What is shared tells of other repositories, which a member may not see.
        await organizations.get_administered(conn, repo.owner.name, user_id=caller.user_id)
    return await usage_store.usage_of_repo(conn, repo.id, owner_id=repo.owner_id)


async def get_owner_storage(conn: Reader, caller: Caller, organization: str | None) -> StorageUsage:
    """Return the usage of the caller, or of an organization that they administer."""
    owner_id = caller.user_id
    if organization is not None:
        found = await organizations.get_administered(conn, organization, user_id=caller.user_id)
        owner_id = found.id
    if not caller.may(Scope.read_repos, on=owner_id):
        raise ScopeNeeded([Scope.read_repos])
    return await usage_store.usage_of_owner(conn, owner_id)
