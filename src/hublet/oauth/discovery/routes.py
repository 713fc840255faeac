"""HTTP for discovery and the public keys."""

from typing import Annotated, Any

import msgspec
from fastapi import Depends, Request, Response

from hublet.core.http import Router
from hublet.core.http.pages import Document, answer
from hublet.core.http.transactions import Db
from hublet.oauth.discovery.document import discovery_at
from hublet.oauth.discovery.schemas import Discovery, Jwks
from hublet.oauth.keys import service as keys

router = Router(tags=["oauth"])

_KEPT: dict[int | str, dict[str, Any]] = {
    304: {"description": "The version in `If-None-Match` is current."}
}


def _discovery_of(request: Request) -> Document:
    # Settings do not change while a hub runs, so its first reader pays for all.
    if not hasattr(request.app.state, "discovery"):
        settings = request.app.state.settings
        body = discovery_at(settings.base_url, registration=settings.oauth.registration)
        request.app.state.discovery = Document(
            body=msgspec.json.encode(body), media_type="application/json"
        )
    document: Document = request.app.state.discovery
    return document


_Found = Annotated[Document, Depends(_discovery_of)]


@router.get("/.well-known/openid-configuration", response_model=Discovery, responses=_KEPT)
async def get_openid_configuration(request: Request, document: _Found) -> Response:
    """Tell OpenID Connect clients where everything is, and what this hub can do."""
    return answer(request, document)


@router.get("/.well-known/oauth-authorization-server", response_model=Discovery, responses=_KEPT)
async def get_authorization_server(request: Request, document: _Found) -> Response:
    """Tell OAuth clients the same, at the address of RFC 8414."""
    return answer(request, document)


@router.get("/oauth/jwks", response_model=Jwks, responses=_KEPT)
async def get_jwks(request: Request, database: Db) -> Response:
    """Get the public keys that check ID tokens; the next one is shown a day before it signs."""
    body = msgspec.json.encode({"keys": await keys.public_keys(database)})
    return answer(request, Document(body=body, media_type="application/json"))
