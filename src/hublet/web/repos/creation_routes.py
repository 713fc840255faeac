"""HTTP for the page on which a person creates a repository of any type."""

from fastapi import Response

from hublet.accounts.records import Role
from hublet.accounts.users import store as users
from hublet.core.database import Reader
from hublet.core.errors import HubError
from hublet.core.pages import PageRouter
from hublet.login.auth import FormFields
from hublet.repos import lifecycle
from hublet.repos.card_rules import SDKS
from hublet.repos.lifecycle import NewRepo
from hublet.repos.records import RepoType, Visibility
from hublet.web.auth import PageVisit, SignedInVisit
from hublet.web.pages import frame_for, go_to, render
from hublet.web.repo_head import path_of

router = PageRouter()

_PURPOSE = "new repository"


@router.get("/new")
async def get_new_model_page(visit: SignedInVisit) -> Response:
    return await _show(visit, {"type": RepoType.model})


@router.get("/new-{type_}")
async def get_new_repo_page(visit: SignedInVisit, type_: RepoType) -> Response:
    return await _show(visit, {"type": type_})


@router.post("/new")
async def create_repo(visit: SignedInVisit, form: FormFields) -> Response:
    visit.check(form, _PURPOSE)
    typed = dict(form)
    type_, visibility = form.get("type", ""), form.get("visibility", "")
    if type_ not in set(RepoType):
        typed["type"] = RepoType.model
        return await _show(visit, typed, problem="type must be one of those in the list.")
    new = NewRepo(
        type=RepoType(type_),
        namespace=form.get("owner") or None,
        name=form.get("name", "").strip(),
        visibility=Visibility(visibility) if visibility in set(Visibility) else None,
        sdk=form.get("sdk") if type_ == RepoType.space else None,
    )
    try:
        repo = await lifecycle.create(visit.database, visit.person, new)
    except HubError as error:
        return await _show(visit, typed, problem=error.message)
    return go_to(visit, path_of(repo), toast=f"{repo.full_name} is there.")


async def _show(visit: PageVisit, typed: dict[str, str], *, problem: str | None = None) -> Response:
    async with visit.database.read() as conn:
        frame = await frame_for(visit, conn)
        owners = await _list_owners(conn, visit)
    return await render(
        visit,
        "repos/new.html",
        frame=frame,
        status=200 if problem is None else 422,
        form_token=visit.form_token(_PURPOSE),
        owners=owners,
        types=list(RepoType),
        sdks=SDKS,
        typed=typed,
        problem=problem,
    )


async def _list_owners(conn: Reader, visit: PageVisit) -> list[str]:
    """Return the person, and the organizations where they may create repositories."""
    memberships = await users.memberships_of(conn, user_id=visit.person.user_id)
    may = [each for each in memberships if each.role.covers(Role.contributor)]
    return [visit.person.user_name, *(each.organization.name for each in may)]
