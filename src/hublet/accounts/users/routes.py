"""HTTP routes for public user profiles, for following users, and `whoami`."""

from collections.abc import Sequence
from typing import Any

import msgspec
from fastapi import Security
from starlette.requests import Request

from hublet.accounts.avatars import avatar_url
from hublet.accounts.organizations import store as organization_store
from hublet.accounts.records import User
from hublet.accounts.schemas import AvatarUrl, FollowedOrganization, UserCard
from hublet.accounts.users import service, store
from hublet.accounts.users.schemas import UserOverview, Whoami, render_whoami
from hublet.core.clock import wire
from hublet.core.database import Database, Reader, Row
from hublet.core.http import Conn, ImmediateRoute, ReadConn, Router
from hublet.core.http.paging import PAGED_RESPONSES, PageQuery
from hublet.core.schema import Done
from hublet.tokens.auth import AccountOwner, AnyCaller, MaybeCaller, caller_of, identify

router = Router(prefix="/api/users", tags=["users"])


@router.get("/{name}/overview")
async def get_user_overview(conn: ReadConn, caller: MaybeCaller, name: str) -> UserOverview:
    """Show a user; with a token also whether its holder follows the user."""
    user = await _get_visible(conn, caller, name)
    return UserOverview.of_user(
        user,
        base_url=conn.hub.settings.base_url,
        memberships=await store.memberships_of(conn, user_id=user.id),
        counts=await store.count_public_repos(conn, user.id)
        | {"like": await store.count_public_likes(conn, user.id)},
        followers=await store.count_followers(conn, account_id=user.id),
        following=await store.count_followed_users(conn, follower_id=user.id),
        is_following=await service.is_following(
            conn, viewer_id=caller.user_id if caller else None, account_id=user.id
        ),
    )


@router.get("/{name}/followers", responses=PAGED_RESPONSES)
async def list_user_followers(
    conn: ReadConn, caller: MaybeCaller, name: str, page: PageQuery
) -> list[UserCard]:
    """List who follows a user, page by page."""
    user = await _get_visible(conn, caller, name)
    users = await store.list_followers(conn, account_id=user.id, after=page.after, limit=page.reach)
    base_url = conn.hub.settings.base_url
    return [UserCard.of(u, base_url=base_url) for u in page.cut(users, position=lambda u: u.id)]


@router.get("/{name}/following", responses=PAGED_RESPONSES)
async def list_user_following(
    conn: ReadConn, caller: MaybeCaller, name: str, page: PageQuery
) -> list[UserCard]:
    """List the users whom a user follows, page by page."""
    user = await _get_visible(conn, caller, name)
    users = await store.list_followed_users(
        conn, follower_id=user.id, after=page.after, limit=page.reach
    )
    base_url = conn.hub.settings.base_url
    return [UserCard.of(u, base_url=base_url) for u in page.cut(users, position=lambda u: u.id)]


@router.get("/{name}/following/orgs", responses=PAGED_RESPONSES)
async def list_followed_organizations(
    conn: ReadConn, caller: MaybeCaller, name: str, page: PageQuery
) -> list[FollowedOrganization]:
    """List the organizations that a user follows, page by page."""
    user = await _get_visible(conn, caller, name)
    found = await organization_store.list_followed(
        conn, follower_id=user.id, after=page.after, limit=page.reach
    )
    base_url = conn.hub.settings.base_url
    return [
        FollowedOrganization.of(each, base_url=base_url)
        for each in page.cut(found, position=lambda each: each.id)
    ]


@router.get("/{name}/avatar")
async def get_user_avatar(conn: ReadConn, caller: MaybeCaller, name: str) -> AvatarUrl:
    """Tell where a user's picture is."""
    user = await _get_visible(conn, caller, name)
    return AvatarUrl(avatarUrl=avatar_url(conn.hub.settings.base_url, user.id))


@router.post("/{name}/follow")
async def follow_user(conn: Conn, caller: AccountOwner, name: str) -> Done:
    """Follow a user; doing it again changes nothing."""
    user = await _get_visible(conn, caller, name)
    await service.follow(conn, follower_id=caller.user_id, account_id=user.id)
    return Done()


@router.delete("/{name}/follow")
async def unfollow_user(conn: Conn, caller: AccountOwner, name: str) -> Done:
    """Stop following a user; doing it again changes nothing."""
    user = await _get_visible(conn, caller, name)
    await service.unfollow(conn, follower_id=caller.user_id, account_id=user.id)
    return Done()


async def _get_visible(conn: Reader, caller: MaybeCaller, name: str) -> User:
    is_administrator = caller is not None and caller.is_admin
    return await service.get_visible_user(conn, name, to_administrator=is_administrator)


whoami_router = Router()


async def whoami(request: Request) -> bytes:
    """Tell who the token belongs to, and what it may do.

    The e-mail address needs the scope `email`, the organizations `read-memberships`,
    `canPay` `read-billing`.
    """
    caller = await caller_of(request)
    database: Database = request.app.state.database
    async with database.read() as conn:
        rows = await store.whoami_rows(conn, caller.user_id)
    if (organization_id := caller.token.organization_id) is not None:
        # A token that is confined to an organization shows no other.
        rows = [row for row in rows if row["organization_id"] == organization_id]
    # Rendered once for as long as the same rows come and the caller is remembered.
    base_url = database.hub.settings.base_url
    rendered_from = (base_url, caller.blocked, [tuple(row) for row in rows])
    kept: tuple[Any, bytes] = caller.kept.get("whoami", (None, b""))
    before, body = kept
    if rendered_from != before:
        reached = reached_rows(rows, caller) if caller.blocked else rows
        body = _render(caller, reached, base_url=base_url)
        caller.kept["whoami"] = (rendered_from, body)
    return body


def _render(caller: AnyCaller, rows: Sequence[Row], *, base_url: str) -> bytes:
    auth = _render_auth(caller)
    return msgspec.json.encode(
        render_whoami(rows, base_url=base_url, scopes=caller.scopes, auth=auth)
    )


def reached_rows(rows: Sequence[Row], caller: AnyCaller) -> Sequence[Row]:
    """Leave out organizations that the caller does not reach; one row stays, for the user."""
    kept = [row for row in rows if not caller.is_blocked(row["organization_id"] or "")]
    if kept:
        return kept
    first = dict(rows[0])
    return [first | dict.fromkeys(("role", *(key for key in first if key.startswith("organ"))))]


whoami_router.add_api_route(
    "/api/whoami-v2",
    whoami,
    tags=["auth"],
    response_model=Whoami,
    dependencies=[Security(identify)],
    route_class_override=ImmediateRoute,
)


def _render_auth(caller: AnyCaller) -> msgspec.Raw:
    """Render the token; nothing in it changes, so it is rendered once while it is cached."""
    rendered: msgspec.Raw | None = caller.kept.get("auth")
    if rendered is None:
        rendered = caller.kept["auth"] = msgspec.Raw(msgspec.json.encode(_auth_fields(caller)))
    return rendered


def _auth_fields(caller: AnyCaller) -> dict[str, Any]:
    token = caller.token
    access_token: dict[str, Any] = {
        "displayName": token.name,
        "role": token.role,
        "createdAt": wire(token.created_at),
    }
    if token.role == "fineGrained":
        access_token["fineGrained"] = {
            "global": sorted(token.grants.everywhere),
            "scoped": [
                {
                    "entity": {"_id": g.entity_id, "type": g.entity_type, "name": g.entity_name},
                    "permissions": sorted(g.scopes),
                }
                for g in token.grants.scoped
            ],
            "canReadGatedRepos": "gated-repos" in caller.scopes,
        }
    auth: dict[str, Any] = {"type": "access_token"}
    # Client contract 4.1: without `accessToken` the public CLI names the token after the user.
    if token.kind != "oauth":
        auth["accessToken"] = access_token
    if token.expires_at is not None:
        auth["expiresAt"] = wire(token.expires_at)
    return auth
