"""HTTP for the pages of people and organizations, and for following them."""

from collections.abc import Awaitable, Callable
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Query, Response

from hublet.accounts import socials
from hublet.accounts.errors import AccountNotFound, OrganizationNotFound, UserNotFound
from hublet.accounts.organizations import service as organizations
from hublet.accounts.organizations import store as organization_store
from hublet.accounts.records import Organization, Role, User
from hublet.accounts.users import service as users
from hublet.accounts.users import store as user_store
from hublet.community.threads.records import ThreadKind
from hublet.core.database import Reader
from hublet.core.pages import PageRouter
from hublet.core.paging import read_cursor, write_cursor
from hublet.jobs.access import sees_jobs
from hublet.login.auth import FormFields
from hublet.login.browser import safe_path
from hublet.repos.auth import GitRepoKind
from hublet.repos.browse import lists
from hublet.repos.browse.records import ListOrder, RepoFilter
from hublet.repos.records import RepoType
from hublet.web.auth import PageVisit, SignedInVisit, Visit
from hublet.web.discovery.collection_routes import list_of_owner
from hublet.web.discovery.views import (
    PeoplePage,
    PeopleTab,
    PersonRow,
    ProfilePage,
    RepoRow,
    repo_row,
)
from hublet.web.pages import frame_for, go_to, next_page_url, render
from hublet.web.publications import FOLDERS, list_rows

router = PageRouter()
# Before the pages of repositories, which have addresses of the same form.
lists_router = PageRouter()

_MOST_REPOS = 12
_MOST_PEOPLE = 30
_PAGE_SIZE = 30
_MOST_PUBLICATIONS = 5
_MOST_COLLECTIONS = 6
_PURPOSE = "profile"

_Cursor = Annotated[str, Query(max_length=200)]
# A person in a list, and the role that they have there.
_Found = tuple[User, Role | None]


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


@lists_router.get("/{name}/collections")
async def get_collections_of_owner(visit: Visit, name: str) -> Response:
    """Lead to the list of all collections, filtered by its owner."""
    return go_to(visit, f"/collections?{urlencode({'owner': name})}")


@lists_router.get("/{name}/followers")
async def get_followers_page(visit: Visit, name: str, cursor: _Cursor = "") -> Response:
    """Show who follows a person or an organization."""

    async def find(conn: Reader, account: User | Organization, after: str) -> list[_Found]:
        found = await user_store.list_followers(
            conn, account_id=account.id, after=after, limit=_PAGE_SIZE + 1
        )
        return [(user, None) for user in found]

    return await _show_people(visit, name, PeopleTab.followers, find, cursor)


@lists_router.get("/{name}/following")
async def get_following_page(visit: Visit, name: str, cursor: _Cursor = "") -> Response:
    """Show whom a person follows; an organization follows nobody."""

    async def find(conn: Reader, account: User | Organization, after: str) -> list[_Found]:
        if isinstance(account, Organization):
            raise UserNotFound(name)
        found = await user_store.list_followed_users(
            conn, follower_id=account.id, after=after, limit=_PAGE_SIZE + 1
        )
        return [(user, None) for user in found]

    return await _show_people(visit, name, PeopleTab.following, find, cursor)


@lists_router.get("/organizations/{name}/members")
async def get_members_page(visit: Visit, name: str, cursor: _Cursor = "") -> Response:
    """Show who belongs to an organization, as what."""

    async def find(conn: Reader, account: User | Organization, after: str) -> list[_Found]:
        if isinstance(account, User):
            raise OrganizationNotFound(name)
        found = await organization_store.list_members(
            conn, account.id, after=after, limit=_PAGE_SIZE + 1
        )
        return [(member.user, member.role) for member in found]

    return await _show_people(visit, name, PeopleTab.members, find, cursor)


async def _show_people(
    visit: PageVisit,
    name: str,
    tab: PeopleTab,
    find: Callable[[Reader, User | Organization, str], Awaitable[list[_Found]]],
    cursor: str,
) -> Response:
    after = read_cursor(cursor) if cursor else ""
    async with visit.database.read() as conn:
        frame = await frame_for(visit, conn)
        account = await _find_account(conn, visit, name)
        found = await find(conn, account, after)
        shown = found[:_PAGE_SIZE]
        page = PeoplePage(
            name=account.name,
            tab=tab,
            counts=await _count_people(conn, account),
            rows=await _person_rows(conn, visit, shown),
            next_url=(
                next_page_url(visit, write_cursor(shown[-1][0].id))
                if len(found) > len(shown)
                else None
            ),
        )
    return await render(visit, "discovery/people.html", frame=frame, page=page)


async def _count_people(conn: Reader, account: User | Organization) -> dict[PeopleTab, int]:
    followers = await user_store.count_followers(conn, account_id=account.id)
    if isinstance(account, Organization):
        members = await organization_store.count_members(conn, account.id)
        return {PeopleTab.members: members, PeopleTab.followers: followers}
    following = await user_store.count_followed_users(conn, follower_id=account.id)
    return {PeopleTab.followers: followers, PeopleTab.following: following}


async def _person_rows(conn: Reader, visit: PageVisit, found: list[_Found]) -> list[PersonRow]:
    followed: set[str] = set()
    if visit.caller is not None:
        followed = await user_store.list_followed_among(
            conn, follower_id=visit.caller.user_id, account_ids=[user.id for user, _ in found]
        )
    return [
        PersonRow(
            name=user.name,
            fullname=user.fullname,
            role=role,
            is_following=user.id in followed,
            may_follow=visit.caller is not None and user.id != visit.caller.user_id,
            form_token=visit.form_token(f"{_PURPOSE} {user.id}"),
        )
        for user, role in found
    ]


@router.get("/{name}")
async def get_profile_page(visit: Visit, name: str) -> Response:
    async with visit.database.read() as conn:
        account = await _find_account(conn, visit, name)
        frame = await frame_for(visit, conn)
        page = await _profile(conn, visit, account)
    return await render(visit, "discovery/profile.html", frame=frame, page=page)


async def _profile(conn: Reader, visit: PageVisit, account: User | Organization) -> ProfilePage:
    viewer_id = visit.caller.user_id if visit.caller else None
    role = None
    if isinstance(account, Organization) and viewer_id is not None:
        role = await organization_store.role_of(conn, account.id, user_id=viewer_id)
    collections, collection_count = await list_of_owner(
        conn, visit, account.id, limit=_MOST_COLLECTIONS
    )
    return ProfilePage(
        name=account.name,
        fullname=account.fullname,
        is_organization=isinstance(account, Organization),
        sections=[
            (type_, rows)
            for type_ in RepoType
            if type_ is not RepoType.bucket
            and (rows := await _repos(conn, visit, account.name, type_))
        ],
        publications=[
            (title, f"/{FOLDERS[kind]}", newest)
            for kind, title in ((ThreadKind.post, "Posts"), (ThreadKind.blog, "Blog"))
            if (newest := await list_rows(conn, kind, owner=account.name, limit=_MOST_PUBLICATIONS))
        ],
        collections=collections,
        collection_count=collection_count,
        people=await _people(conn, account),
        counts=await _count_people(conn, account),
        socials=await _socials(conn, account),
        is_following=await users.is_following(conn, viewer_id=viewer_id, account_id=account.id),
        is_own=account.id == viewer_id,
        has_jobs=visit.caller is not None and await sees_jobs(conn, visit.caller, account.name),
        is_administrator=role is Role.admin,
        may_join=isinstance(account, Organization) and viewer_id is not None and role is None,
        form_token=visit.form_token(f"{_PURPOSE} {account.id}"),
    )


async def _socials(conn: Reader, account: User | Organization) -> list[tuple[str, str, str]]:
    is_organization = isinstance(account, Organization)
    return [
        (
            socials.NETWORKS[network][0],
            handle,
            socials.link_of(network, handle, is_organization=is_organization),
        )
        for network, handle in (await socials.get(conn, account.id)).items()
    ]


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
    return go_to(visit, safe_path(form.get("next") or f"/{account.name}"))
