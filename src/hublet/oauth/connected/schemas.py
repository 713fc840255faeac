"""Accesses on the wire."""

from typing import Self

from pydantic import MISSING

from hublet.core.schema import ObjectId, Schema, Timestamp
from hublet.oauth.apps.store import logo_url
from hublet.oauth.connected import records
from hublet.oauth.records import Via
from hublet.tokens.records import Scope


class ConnectedApp(Schema):
    clientId: str
    name: str
    logoUrl: str | MISSING = MISSING


class ReachedOrganization(Schema):
    id: ObjectId
    name: str


class OAuthAccess(Schema):
    id: ObjectId
    app: ConnectedApp
    # How the person came to allow it.
    via: Via
    scopes: list[Scope]
    organizations: list[ReachedOrganization]
    createdAt: Timestamp
    lastUsedAt: Timestamp
    # However often it is refreshed, it ends then.
    expiresAt: Timestamp
    # From where and with what it was allowed, as far as that is known.
    address: str | MISSING = MISSING
    agent: str | MISSING = MISSING

    @classmethod
    def of(cls, connected: records.ConnectedAccess, *, base_url: str) -> Self:
        access, app = connected.access, connected.app
        logo = logo_url(base_url, app.id) if app.has_logo else MISSING
        return cls(
            id=access.id,
            app=ConnectedApp(clientId=app.client_id, name=app.name, logoUrl=logo),
            via=access.via,
            scopes=[scope for scope in Scope if scope in access.permission.scopes],
            organizations=[
                ReachedOrganization(id=each, name=name)
                for each, name in connected.organizations.items()
            ],
            createdAt=access.created_at,
            lastUsedAt=access.last_used_at,
            expiresAt=access.expires_at,
            address=access.address or MISSING,
            agent=access.agent or MISSING,
        )
