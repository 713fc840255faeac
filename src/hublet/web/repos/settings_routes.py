"""HTTP for the settings of a repository: who sees it, its gate, its group, its name, its end."""

from collections.abc import Awaitable, Callable

from fastapi import Response

from hublet.accounts.errors import ResourceGroupNotFound
from hublet.core.database import Connection
from hublet.core.errors import HubError
from hublet.core.pages import PageRouter
from hublet.login.auth import FormFields
from hublet.repos import lifecycle, settings
from hublet.repos import service as repos
from hublet.repos.auth import PAGE_REPO, PageRepo
from hublet.repos.errors import InvalidRepo
from hublet.repos.names import split_name
from hublet.repos.records import Gated, Repo, RepoAddress, Right, SettingsChange, Visibility
from hublet.tokens.auth import actor_of
from hublet.web.auth import FreshVisit, PageVisit, SignedInVisit
from hublet.web.pages import go_to, render
from hublet.web.repo_head import PURPOSE, RepoTab, get_head, path_of

router = PageRouter()

_SETTINGS = f"{PAGE_REPO}/settings"


@router.get(_SETTINGS)
async def get_settings_page(visit: SignedInVisit, address: PageRepo) -> Response:
    return await _show(visit, address)


@router.post(f"{_SETTINGS}/access")
async def change_access(visit: SignedInVisit, address: PageRepo, form: FormFields) -> Response:
    """Change who sees it, who may read it, and whether it has discussions."""

    async def change(conn: Connection, repo: Repo) -> Repo:
        return await settings.update_settings(conn, visit.person, repo, _change_of(form))

    return await _do(visit, address, form, change, toast="The settings are saved.")


@router.post(f"{_SETTINGS}/resource-group")
async def set_resource_group(visit: SignedInVisit, address: PageRepo, form: FormFields) -> Response:
    """Put it into a resource group of its organization, or out of one."""

    async def change(conn: Connection, repo: Repo) -> Repo:
        actor = actor_of(visit.request, visit.person)
        group_id = form.get("group") or None
        await settings.set_resource_group(conn, actor, visit.person, repo, group_id)
        return repo

    return await _do(visit, address, form, change, toast="The resource group is saved.")


@router.post(f"{_SETTINGS}/move")
async def move_repo(visit: FreshVisit, address: PageRepo, form: FormFields) -> Response:
    async def move(conn: Connection, repo: Repo) -> Repo:
        namespace, name = split_name(form.get("to", "").strip())
        target = RepoAddress(type=repo.type, namespace=namespace or repo.owner_name, name=name)
        return await lifecycle.move(conn, visit.person, repo, target)

    return await _do(visit, address, form, move, toast="It has its new name. Old links lead here.")


@router.post(f"{_SETTINGS}/delete")
async def delete_repo(visit: FreshVisit, address: PageRepo, form: FormFields) -> Response:
    async def delete(conn: Connection, repo: Repo) -> None:
        if form.get("confirm", "").strip() != repo.full_name:
            raise InvalidRepo(f"confirm must be the full name, {repo.full_name}.")
        await repos.delete(conn, visit.person, repo)

    return await _do(visit, address, form, delete, toast="The repository is deleted.")


def _change_of(form: FormFields) -> SettingsChange:
    visibility, gated = form.get("visibility", ""), form.get("gated", "")
    if visibility not in set(Visibility):
        raise InvalidRepo("visibility must be public, private or protected.")
    if gated not in {"", *Gated}:
        raise InvalidRepo("gated must be auto, manual or nothing.")
    return SettingsChange(
        visibility=Visibility(visibility),
        gated=Gated(gated) if gated else False,
        discussions_disabled=form.get("discussions") != "on",
    )


async def _do(
    visit: PageVisit,
    address: RepoAddress,
    form: FormFields,
    change: Callable[[Connection, Repo], Awaitable[Repo | None]],
    *,
    toast: str,
) -> Response:
    """Make a change, and show the page again with what was typed if it is refused."""
    try:
        async with visit.database.transaction() as conn:
            repo = await repos.get(conn, visit.person, address, Right.manage)
            visit.check(form, f"{PURPOSE} {repo.id}")
            changed = await change(conn, repo)
    except (InvalidRepo, ResourceGroupNotFound) as error:
        return await _show(visit, address, typed=dict(form), problem=error)
    path = f"/{visit.person.user_name}" if changed is None else f"{path_of(changed)}/settings"
    return go_to(visit, path, toast=toast)


async def _show(
    visit: PageVisit,
    address: RepoAddress,
    *,
    typed: dict[str, str] | None = None,
    problem: HubError | None = None,
) -> Response:
    async with visit.database.read() as conn:
        head = await get_head(conn, visit, address, tab=RepoTab.settings, right=Right.manage)
        groups = await settings.list_resource_groups(conn, visit.person, head.repo)
    return await render(
        visit,
        "repos/settings.html",
        frame=head.frame,
        status=200 if problem is None else 422,
        head=head,
        groups=groups,
        typed=typed or {},
        problem=None if problem is None else problem.message,
    )
