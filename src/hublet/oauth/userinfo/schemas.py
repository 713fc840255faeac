"""The answer of userinfo on the wire."""

from pydantic import MISSING

from hublet.core.schema import ObjectId, Schema


class UserinfoOrganization(Schema):
    sub: ObjectId
    name: str
    preferred_username: str
    picture: str
    plan: str | MISSING = MISSING
    # With `read-memberships`.
    roleInOrg: str | MISSING = MISSING
    # With `read-billing`, for the organizations that were selected.
    canPay: bool | MISSING = MISSING


class Userinfo(Schema):
    """Claims about a user, as far as the scopes of the token reach."""

    sub: ObjectId
    # With `profile`.
    name: str | MISSING = MISSING
    preferred_username: str | MISSING = MISSING
    profile: str | MISSING = MISSING
    picture: str | MISSING = MISSING
    isPro: bool | MISSING = MISSING
    # With `email`.
    email: str | MISSING = MISSING
    email_verified: bool | MISSING = MISSING
    # With `read-billing`.
    canPay: bool | MISSING = MISSING
    # All with `read-memberships`, else those that were selected.
    orgs: list[UserinfoOrganization] | MISSING = MISSING
