"""What the token endpoint does, whatever the grant."""

from typing import Any

from hublet.oauth.errors import OAuthError
from hublet.oauth.grants import GRANTS
from hublet.oauth.grants.desk import Desk
from hublet.oauth.grants.records import Answer, TokenRequest
from hublet.oauth.id_tokens import id_token_for
from hublet.oauth.scopes import written
from hublet.tokens.records import Scope


async def answer_to(desk: Desk, request: TokenRequest) -> dict[str, Any]:
    grant = GRANTS.get(request.get("grant_type"))
    if grant is None:
        raise OAuthError("unsupported_grant_type", "grant_type must be one of: " + _names())
    answer = await grant(desk, request)
    shown = _shown(answer)
    if Scope.openid in answer.issued.scopes:
        shown["id_token"] = await _id_token(desk, answer)
    return shown


def _names() -> str:
    return ", ".join(GRANTS)


def _shown(answer: Answer) -> dict[str, Any]:
    issued = answer.issued
    shown: dict[str, Any] = {
        "access_token": issued.access_token,
        "token_type": "bearer",
        "expires_in": issued.expires_in,
        "scope": written(issued.scopes),
    }
    if issued.refresh_token is not None:
        shown["refresh_token"] = issued.refresh_token
    if answer.issued_token_type is not None:
        shown["issued_token_type"] = answer.issued_token_type
    return shown


async def _id_token(desk: Desk, answer: Answer) -> str:
    # After the commit: signing takes longer than everything else together.
    return await id_token_for(
        desk.database,
        app=answer.app,
        user_id=answer.user_id,
        scopes=answer.issued.scopes - answer.untold,
        organization_ids=answer.organization_ids,
        nonce=answer.nonce,
        authenticated_at=answer.authenticated_at,
        access_token=answer.issued.access_token,
        session_id=answer.session_id,
    )
