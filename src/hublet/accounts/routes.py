"""HTTP for accounts."""

from typing import Any

import msgspec
from fastapi import Security
from starlette.requests import Request

from hublet.accounts import store
from hublet.accounts.schemas import Whoami
from hublet.accounts.whoami import whoami_answer
from hublet.core.clock import wire
from hublet.core.database import Database
from hublet.core.http import HotRoute, Router
from hublet.tokens.auth import AnyCaller, caller_of, identify

router = Router()


async def whoami(request: Request) -> bytes:
    """Tell who the token belongs to, and what it may do.

    The e-mail address needs the scope `email`, the organizations `read-memberships`,
    `canPay` `read-billing`.
    """
    caller = await caller_of(request)
    database: Database = request.app.state.database
    async with database.read() as conn:
        rows = await store.whoami_rows(conn, caller.user_id)
    if (place := caller.token.organization_id) is not None:
        # A token that is confined to an organization tells of no other.
        rows = [row for row in rows if row["organization_id"] == place]
    answer = whoami_answer(
        rows,
        base_url=database.hub.settings.base_url,
        scopes=caller.scopes,
        auth=_auth(caller),
    )
    return msgspec.json.encode(answer)


router.add_api_route(
    "/api/whoami-v2",
    whoami,
    tags=["auth"],
    response_model=Whoami,
    dependencies=[Security(identify)],
    route_class_override=HotRoute,
)


def _auth(caller: AnyCaller) -> msgspec.Raw:
    """Show the token; nothing in it changes, so it is rendered once while it is remembered."""
    rendered: msgspec.Raw | None = caller.kept.get("auth")
    if rendered is None:
        rendered = caller.kept["auth"] = msgspec.Raw(msgspec.json.encode(_shown_auth(caller)))
    return rendered


def _shown_auth(caller: AnyCaller) -> dict[str, Any]:
    token = caller.token
    shown: dict[str, Any] = {
        "displayName": token.name,
        "role": token.role,
        "createdAt": wire(token.created_at),
    }
    if token.role == "fineGrained":
        shown["fineGrained"] = {
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
        auth["accessToken"] = shown
    if token.expires_at is not None:
        auth["expiresAt"] = wire(token.expires_at)
    return auth
