"""Dynamic registration on the wire; the names are those of RFC 7591."""

from typing import Any, Literal, Self

from pydantic import MISSING

from hublet.core.schema import Schema
from hublet.oauth.registration.records import Registration
from hublet.oauth.scopes import written

AuthMethod = Literal["none", "client_secret_basic", "client_secret_post"]

_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
# Open, as the RFC wants it: fields that nobody here knows are passed over.
METADATA: dict[str, Any] = {
    "security": [],
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "properties": {
                        "redirect_uris": _TEXTS,
                        "client_name": _TEXT,
                        "client_uri": _TEXT,
                        "token_endpoint_auth_method": _TEXT,
                        "grant_types": _TEXTS,
                        "response_types": _TEXTS,
                        "scope": _TEXT,
                    },
                    "required": ["redirect_uris"],
                }
            }
        },
    },
}


class RegisteredClient(Schema):
    """What an app learns about itself (RFC 7591, 3.2.1)."""

    client_id: str
    # Seconds since the epoch.
    client_id_issued_at: int
    # Shown this once; it does not expire, which the RFC writes as 0.
    client_secret: str | MISSING = MISSING
    client_secret_expires_at: Literal[0] | MISSING = MISSING
    client_name: str
    client_uri: str | MISSING = MISSING
    redirect_uris: list[str]
    token_endpoint_auth_method: AuthMethod
    grant_types: list[str]
    response_types: list[str]
    scope: str

    @classmethod
    def of(cls, registered: Registration) -> Self:
        app = registered.app
        has_secret = registered.secret is not None
        shown: dict[str, Any] = {
            "client_id": app.client_id,
            "client_id_issued_at": int(app.created_at.timestamp()),
            "client_secret": registered.secret if has_secret else MISSING,
            "client_secret_expires_at": 0 if has_secret else MISSING,
            "client_name": app.name,
            "client_uri": app.client_uri or MISSING,
            "redirect_uris": list(app.redirect_uris),
            "token_endpoint_auth_method": registered.auth_method,
            "grant_types": list(registered.grant_types),
            "response_types": ["code"],
            "scope": written(app.scopes),
        }
        return cls.model_validate(shown)
