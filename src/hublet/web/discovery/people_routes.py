"""HTTP for the pages of people and organizations, and for following them."""

from urllib.parse import urlencode

from fastapi import Response

from hublet.accounts.errors import AccountNotFound, OrganizationNotFound, UserNotFound
from hublet.accounts.organizations import service as organizations
from hublet.accounts.organizations import store as organization_store
from hublet.accounts.records import Organization, User
from hublet.accounts.users import service as users
from hublet.accounts.users import store as user_store
from hublet.community.threads.records import ThreadKind
from hublet.core.database import Reader
from hublet.core.pages import PageRouter
from hublet.login.auth import FormFields
from hublet.repos.auth import GitRepoKind
from hublet.repos.browse import lists
from hublet.repos.browse.records import ListOrder, RepoFilter
from hublet.repos.records import RepoType
from hublet.web.auth import PageVisit, SignedInVisit, Visit
from hublet.web.discovery.views import ProfilePage, RepoRow, repo_row
from hublet.web.pages import frame_for, go_to, render
from hublet.web.publications import FOLDERS, list_rows

router = PageRouter()
# Before the pages of repositories, which have addresses of the same form.
lists_router = PageRouter()

_MOST_REPOS = 12
_MOST_PEOPLE = 30
_MOST_PUBLICATIONS = 5
_PURPOSE = "profile"


async def _find_account(conn: Reader, visit: PageVisit, name: str) -> User | Organization:
    is_administrator = visit.caller is not None and visit.caller.is_admin
    try:
        return await users.get_visible_user(conn, name, to_administrator=is_administrator)
    except UserNotFound:
        pass
    try:
        return await organizations.get(conn, name)
    except OrganizationNotFound:
        raise AccountNotFound(name) from None


@lists_router.get("/{name}/{kind:kind}")
async def get_list_of_owner(visit: Visit, name: str, kind: GitRepoKind) -> Response:
    """Lead to the list of all, filtered by its owner."""
    return go_to(visit, f"/{kind}?{urlencode({'author': name})}")


@router.get("/{name}")
async def get_profile_page(visit: Visit, name: str) -> Response:
    async with visit.database.read() as conn:
        account = await _find_account(conn, visit, name)
        frame = await frame_for(visit, conn)
        page = await _profile(conn, visit, account)
    return await render(visit, "discovery/profile.html", frame=frame, page=page)


async def _profile(conn: Reader, visit: PageVisit, account: User | Organization) -> ProfilePage:
    viewer_id = visit.caller.user_id if visit.caller else None
    return ProfilePage(
        name=account.name,
        fullname=account.fullname,
        is_organization=isinstance(account, Organization),
        sections=[
            (type_, rows)
            for type_ in RepoType
            if type_.has_git and (rows := await _repos(conn, visit, account.name, type_))
        ],
        publications=[
            (title, f"/{FOLDERS[kind]}", newest)
            for kind, title in ((ThreadKind.post, "Posts"), (ThreadKind.blog, "Blog"))
            if (newest := await list_rows(conn, kind, owner=account.name, limit=_MOST_PUBLICATIONS))
        ],
        people=await _people(conn, account),
        followers=await user_store.count_followers(conn, account_id=account.id),
        is_following=await users.is_following(conn, viewer_id=viewer_id, account_id=account.id),
        is_own=account.id == viewer_id,
        form_token=visit.form_token(f"{_PURPOSE} {account.id}"),
    )


async def _repos(conn: Reader, visit: PageVisit, owner: str, type_: RepoType) -> list[RepoRow]:
    found = await lists.list_repos(
        conn,
        visit.caller,
        RepoFilter(type=type_, author=owner),
        order=ListOrder(),
        limit=_MOST_REPOS,
    )
    return [repo_row(repo) for repo in found]


async def _people(conn: Reader, account: User | Organization) -> list[str]:
    if isinstance(account, Organization):
        members = await organization_store.list_members(conn, account.id, limit=_MOST_PEOPLE)
        return [member.user.name for member in members]
    memberships = await user_store.memberships_of(conn, user_id=account.id)
    return [membership.organization.name for membership in memberships][:_MOST_PEOPLE]


@router.post("/{name}/follow")
async def change_following(visit: SignedInVisit, name: str, form: FormFields) -> Response:
    async with visit.database.transaction() as conn:
        account = await _find_account(conn, visit, name)
        visit.check(form, f"{_PURPOSE} {account.id}")
        change = users.follow if form.get("follow") == "yes" else users.unfollow
        await change(conn, follower_id=visit.person.user_id, account_id=account.id)
    return go_to(visit, f"/{account.name}")
