"""Revoking what an app holds."""

from functools import partial

from hublet.core.channels import CREDENTIALS
from hublet.core.database import Connection
from hublet.oauth.access import service as accesses
from hublet.oauth.access.records import EndReason
from hublet.oauth.clients import authenticated
from hublet.oauth.grants.desk import Desk
from hublet.oauth.grants.records import TokenRequest
from hublet.tokens import service as tokens
from hublet.tokens import store as token_store
from hublet.tokens.format import Kind


async def revoke(desk: Desk, request: TokenRequest) -> None:
    """Revoke a token of the app's own; any other is left alone, and the answer is the same."""
    value = request.get("token")
    await desk.write(partial(_revoke, request, value))


async def _revoke(request: TokenRequest, value: str, conn: Connection) -> None:
    app = await authenticated(conn, request.presented)
    token = await tokens.find_by_value(conn, value)
    if token is None or token.app_id != app.id:
        return
    if token.kind is Kind.refresh and token.access_id is not None:
        await accesses.end(conn, [token.access_id], EndReason.revoked)
    elif await token_store.revoke(conn, token.id):
        # RFC 7009, 2.1: an access token goes alone, its refresh token works on.
        conn.wake(CREDENTIALS)
