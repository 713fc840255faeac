"""Claims about a user, the same in an ID token and in the response of userinfo."""

from collections.abc import Collection
from typing import Any

from hublet.accounts.avatars import avatar_url
from hublet.accounts.schemas import WIRE_PLANS
from hublet.accounts.users import store as users
from hublet.core.database import Reader, Row
from hublet.tokens.records import Scope


async def claims_of(
    conn: Reader, user_id: str, scopes: frozenset[Scope], organization_ids: Collection[str]
) -> dict[str, Any]:
    """Return the claims about a user as far as the scopes reach.

    With `read-memberships` all organizations are included, with the role in each; without it, only
    the selected ones, by name.
    """
    rows = await users.whoami_rows(conn, user_id)
    base_url = conn.hub.settings.base_url
    claims: dict[str, Any] = {"sub": user_id}
    if Scope.profile in scopes:
        claims |= _profile_claims(rows[0], base_url)
    if Scope.email in scopes and rows[0]["email"] is not None:
        claims["email"] = rows[0]["email"]
        claims["email_verified"] = rows[0]["email_verified_at"] is not None
    if Scope.read_billing in scopes:
        claims["canPay"] = False
    if scopes & {Scope.profile, Scope.read_memberships}:
        claims["orgs"] = [
            _organization_claims(
                row, scopes, base_url, selected=row["organization_id"] in organization_ids
            )
            for row in rows
            if row["organization_id"] in organization_ids
            or (row["organization_id"] is not None and Scope.read_memberships in scopes)
        ]
    return claims


def _profile_claims(user: Row, base_url: str) -> dict[str, Any]:
    return {
        "name": user["fullname"],
        "preferred_username": user["name"],
        "profile": f"{base_url}/{user['name']}",
        "picture": avatar_url(base_url, user["id"]),
        "isPro": False,
    }


def _organization_claims(
    row: Row, scopes: frozenset[Scope], base_url: str, *, selected: bool
) -> dict[str, Any]:
    claims: dict[str, Any] = {
        "sub": row["organization_id"],
        "name": row["organization_fullname"],
        "preferred_username": row["organization_name"],
        "picture": avatar_url(base_url, row["organization_id"]),
    }
    if plan := WIRE_PLANS.get(row["plan"]):
        claims["plan"] = plan
    if Scope.read_memberships in scopes:
        claims["roleInOrg"] = row["role"]
    if Scope.read_billing in scopes and selected:
        claims["canPay"] = False
    return claims
