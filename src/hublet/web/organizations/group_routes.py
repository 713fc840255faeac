"""HTTP for the resource groups of an organization: members, roles, and repositories."""

from collections.abc import Mapping

from fastapi import Response

from hublet.accounts.organizations import store as organizations
from hublet.accounts.records import Actor, Organization
from hublet.accounts.resource_groups import service, store
from hublet.accounts.resource_groups.schemas import CreateResourceGroup, UpdateResourceGroup
from hublet.accounts.users import service as users
from hublet.core.database import Connection
from hublet.core.errors import HubError
from hublet.core.pages import PageRouter
from hublet.login.auth import FormFields
from hublet.repos import usage_store
from hublet.web.auth import FreshVisit, PageVisit, SignedInVisit
from hublet.web.organizations.pages import (
    SETTINGS,
    Change,
    Show,
    apply_form,
    open_settings,
    render_settings,
    role_in,
)
from hublet.web.pages import read_as
from hublet.web.repo_head import path_of

router = PageRouter()

_PAGE = "resource-groups"
_GROUPS = f"{SETTINGS}/{_PAGE}"
_GROUP = f"{_GROUPS}/{{group_id}}"
_MOST = 1000


@router.get(_GROUPS)
async def get_resource_groups_page(visit: SignedInVisit, organization: str) -> Response:
    return await _show_groups(visit, organization)


@router.post(_GROUPS)
async def create_resource_group(
    visit: SignedInVisit, organization: str, form: FormFields
) -> Response:
    async def change(conn: Connection, found: Organization, actor: Actor) -> None:
        owner = await service.get_organization(conn, found.name, user_id=visit.person.user_id)
        new = read_as(
            CreateResourceGroup,
            name=form.get("name", ""),
            description=form.get("description", ""),
        )
        await service.create(conn, actor, owner, name=new.name, description=new.description)

    return await apply_form(
        visit, organization, form, change,
        show=_show_groups, page=_PAGE, toast="The resource group is there. Add its members.",
    )  # fmt: skip


@router.get(_GROUP)
async def get_resource_group_page(
    visit: SignedInVisit, organization: str, group_id: str
) -> Response:
    return await _show_group(group_id)(visit, organization)


@router.post(_GROUP)
async def update_resource_group(
    visit: SignedInVisit, organization: str, group_id: str, form: FormFields
) -> Response:
    async def change(conn: Connection, found: Organization, actor: Actor) -> None:
        owner = await service.get_organization(conn, found.name, user_id=visit.person.user_id)
        group = await service.get(conn, owner, group_id)
        wanted = read_as(
            UpdateResourceGroup,
            name=form.get("name", ""),
            description=form.get("description", ""),
        )
        await service.update(
            conn, actor, group, name=str(wanted.name), description=str(wanted.description)
        )

    return await _change_group(
        visit, organization, group_id, form, change, toast="The resource group is saved."
    )


@router.post(f"{_GROUP}/delete")
async def delete_resource_group(
    visit: FreshVisit, organization: str, group_id: str, form: FormFields
) -> Response:
    async def change(conn: Connection, found: Organization, actor: Actor) -> None:
        owner = await service.get_organization(conn, found.name, user_id=visit.person.user_id)
        await service.delete(conn, actor, await service.get(conn, owner, group_id))

    return await apply_form(
        visit, organization, form, change,
        show=_show_group(group_id), page=_PAGE, toast="The resource group is deleted.",
    )  # fmt: skip


@router.post(f"{_GROUP}/members")
async def set_resource_group_member(
    visit: FreshVisit, organization: str, group_id: str, form: FormFields
) -> Response:
    """Add a member of the organization to the group, or change the role of one there."""
    name = form.get("user", "").strip()

    async def change(conn: Connection, found: Organization, actor: Actor) -> None:
        owner = await service.get_organization(conn, found.name, user_id=visit.person.user_id)
        group = await service.get(conn, owner, group_id)
        role = role_in(form)
        user = await users.get_visible_user(conn, name, to_administrator=False)
        await service.set_member(conn, actor, owner, group, user, role)

    return await _change_group(
        visit, organization, group_id, form, change, toast=f"{name} is in the group."
    )


@router.post(f"{_GROUP}/members/{{member}}/remove")
async def remove_resource_group_member(
    visit: FreshVisit, organization: str, group_id: str, member: str, form: FormFields
) -> Response:
    async def change(conn: Connection, found: Organization, actor: Actor) -> None:
        owner = await service.get_organization(conn, found.name, user_id=visit.person.user_id)
        group = await service.get(conn, owner, group_id)
        await service.remove_member(conn, actor, group, await users.get_user(conn, member))

    return await _change_group(
        visit, organization, group_id, form, change, toast=f"{member} is out of the group."
    )


async def _change_group(
    visit: PageVisit,
    name: str,
    group_id: str,
    form: FormFields,
    change: Change,
    *,
    toast: str,
) -> Response:
    return await apply_form(
        visit, name, form, change,
        show=_show_group(group_id), page=f"{_PAGE}/{group_id}", toast=toast,
    )  # fmt: skip


async def _show_groups(
    visit: PageVisit,
    name: str,
    *,
    typed: Mapping[str, str] | None = None,
    problem: HubError | None = None,
) -> Response:
    async with visit.database.read() as conn:
        head = await open_settings(conn, visit, name, _PAGE)
        groups = await store.list_with_counts(conn, head.organization.id, limit=_MOST)
    return await render_settings(visit, head, groups=groups, typed=typed, problem=problem)


def _show_group(group_id: str) -> Show:
    async def show(
        visit: PageVisit,
        name: str,
        *,
        typed: Mapping[str, str] | None = None,
        problem: HubError | None = None,
    ) -> Response:
        async with visit.database.read() as conn:
            head = await open_settings(conn, visit, name, _PAGE)
            group = await service.get(conn, head.organization, group_id)
            members = await organizations.list_group_members(conn, group.id)
            repos = await usage_store.list_raw_by_repo(
                conn, head.organization.id, group_id=group.id
            )
        return await render_settings(
            visit,
            head,
            template="resource_group",
            group=group,
            members=members,
            repos=[(repo, path_of(repo), size) for repo, size in repos],
            typed=typed,
            problem=problem,
        )

    return show
