"""The answer to `whoami`, built straight from rows: clients ask it before nearly every call."""

from collections.abc import Sequence
from typing import Any

from hublet.accounts.avatars import avatar_url
from hublet.accounts.records import Plan
from hublet.core.database import Row

# The public clients' word for the largest plan; the free plan is not shown at all.
PLAN_ON_THE_WIRE = {
    Plan.team.value: "team",
    Plan.enterprise.value: "enterprise",
    Plan.enterprise_plus.value: "plus",
}


def whoami_answer(
    rows: Sequence[Row], *, base_url: str, scopes: frozenset[str], auth: object
) -> dict[str, Any]:
    """Show the user of these rows (one per membership) as far as the scopes reach."""
    user = rows[0]
    answer: dict[str, Any] = {
        "type": user["type"],
        "id": user["id"],
        "name": user["name"],
        "fullname": user["fullname"],
        "avatarUrl": avatar_url(base_url, user["id"]),
        "isPro": False,
        "orgs": [],
        "auth": auth,
    }
    if "email" in scopes:
        answer["email"] = user["email"]
        answer["emailVerified"] = user["email_verified_at"] is not None
    if "read-billing" in scopes:
        answer["canPay"] = False
    if "read-memberships" in scopes:
        answer["orgs"] = [
            _organization(row, base_url) for row in rows if row["organization_id"] is not None
        ]
    return answer


def _organization(row: Row, base_url: str) -> dict[str, Any]:
    shown = {
        "type": "org",
        "id": row["organization_id"],
        "name": row["organization_name"],
        "fullname": row["organization_fullname"],
        "avatarUrl": avatar_url(base_url, row["organization_id"]),
        "roleInOrg": row["role"],
    }
    if plan := PLAN_ON_THE_WIRE.get(row["plan"]):
        shown["plan"] = plan
    return shown
